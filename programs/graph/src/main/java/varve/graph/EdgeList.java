package varve.graph;

import java.util.ArrayList;
import java.util.List;

/** Edges in the order in which they came, in pieces, so that growing copies nothing. */
final class EdgeList implements EdgeConsumer {
    private static final int PIECE_EDGES = 1 << 14;

    private static final class Piece {
        private final int[] ends = new int[2 * PIECE_EDGES];
        /** Where all are 0, none. */
        private double[] values;
        private int size;
    }

    private final List<Piece> pieces = new ArrayList<>();
    private Piece last;
    private int vertices;
    private int firstTarget = Integer.MAX_VALUE;
    private int lastSource = -1;
    private int size;

    @Override
    public void edge(int source, int target, double value) {
        Piece piece = last;
        if (piece == null || piece.size == PIECE_EDGES) {
            piece = new Piece();
            pieces.add(piece);
            last = piece;
        }
        int at = piece.size++;
        piece.ends[2 * at] = source;
        piece.ends[2 * at + 1] = target;
        if (value != 0) {
            if (piece.values == null) {
                piece.values = new double[PIECE_EDGES];
            }
            piece.values[at] = value;
        }
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
            int[] ends = piece.ends;
            double[] values = piece.values;
            int size = piece.size;
            for (int i = 0; i < size; i++) {
                consumer.edge(ends[2 * i], ends[2 * i + 1], values == null ? 0 : values[i]);
            }
        }
    }
}
