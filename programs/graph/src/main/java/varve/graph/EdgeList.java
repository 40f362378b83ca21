package varve.graph;

import java.util.ArrayList;
import java.util.List;

/** Edges in the order in which they came, in pieces, so that growing copies nothing. */
final class EdgeList implements EdgeConsumer {
    private static final int PIECE_EDGES = 1 << 14;

    private static final class Piece {
        private final int[] sources = new int[PIECE_EDGES];
        private final int[] targets = new int[PIECE_EDGES];
        private final double[] values = new double[PIECE_EDGES];
        private int size;
    }

    private final List<Piece> pieces = new ArrayList<>();
    private int vertices;
    private int firstTarget = Integer.MAX_VALUE;
    private int lastSource = -1;
    private int size;

    @Override
    public void edge(int source, int target, double value) {
        Piece piece = pieces.isEmpty() ? null : pieces.get(pieces.size() - 1);
        if (piece == null || piece.size == PIECE_EDGES) {
            piece = new Piece();
            pieces.add(piece);
        }
        piece.sources[piece.size] = source;
        piece.targets[piece.size] = target;
        piece.values[piece.size] = value;
        piece.size++;
        size++;
        vertices = Math.max(vertices, Math.max(source, target) + 1);
        lastSource = Math.max(lastSource, source);
        firstTarget = Math.min(firstTarget, target);
    }

    int size() {
        return size;
    }

    /** One more than the greatest number of a vertex. */
    int vertices() {
        return vertices;
    }

    /** Whether every target comes after every source, as in a list of ratings. */
    boolean isBipartite() {
        return lastSource < firstTarget;
    }

    /** Where the targets are numbered on their own: puts them after the sources. */
    EdgeList withTargetsAfterSources() {
        EdgeList apart = new EdgeList();
        forEach((source, target, value) -> apart.edge(source, lastSource + 1 + target, value));
        return apart;
    }

    void forEach(EdgeConsumer consumer) {
        for (Piece piece : pieces) {
            for (int i = 0; i < piece.size; i++) {
                consumer.edge(piece.sources[i], piece.targets[i], piece.values[i]);
            }
        }
    }
}
