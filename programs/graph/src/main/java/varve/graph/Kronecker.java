package varve.graph;

import varve.common.Rng;

/** A power-law graph by recursive choice of a quadrant of the adjacency matrix (R-MAT), with Graph500's probabilities. */
final class Kronecker implements EdgeSource {
    private static final int A = part(0.57);
    private static final int B = part(0.19);
    private static final int C = part(0.19);

    private final int scale;
    private final int edgesPerVertex;
    private final long seed;

    Kronecker(int scale, int edgesPerVertex, long seed) {
        this.scale = scale;
        this.edgesPerVertex = edgesPerVertex;
        this.seed = seed;
    }

    @Override
    public void forEach(EdgeConsumer consumer) {
        Rng rng = new Rng(seed);
        int vertices = 1 << scale;
        int[] names = shuffled(vertices, rng);
        long edges = (long) edgesPerVertex * vertices;
        for (long i = 0; i < edges; i++) {
            int source = 0;
            int target = 0;
            long drawn = 0;
            for (int bit = 0; bit < scale; bit++) {
                // One number is good for four draws.
                drawn = bit % 4 == 0 ? rng.next() : drawn >>> Short.SIZE;
                int at = (int) drawn & 0xffff;
                source = source << 1 | (at >= A + B ? 1 : 0);
                target = target << 1 | (at >= A && at < A + B || at >= A + B + C ? 1 : 0);
            }
            if (source != target) {
                consumer.edge(names[source], names[target], 0);
            }
        }
    }

    private static int part(double probability) {
        return (int) Math.round(probability * (1 << Short.SIZE));
    }

    /** Else the vertices of many edges would all have small numbers. */
    private static int[] shuffled(int n, Rng rng) {
        int[] names = new int[n];
        for (int i = 0; i < n; i++) {
            int other = rng.below(i + 1);
            names[i] = names[other];
            names[other] = i;
        }
        return names;
    }
}
