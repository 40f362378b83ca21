package varve.graph;

/** An edge as one of its ends sees it, for as long as somebody looks. Both ends share the value. */
final class Edge {
    private final int neighbour;
    private final Chunk chunk;
    private final int slot;

    Edge(int neighbour, Chunk chunk, int slot) {
        this.neighbour = neighbour;
        this.chunk = chunk;
        this.slot = slot;
    }

    int neighbour() {
        return neighbour;
    }

    double value() {
        return chunk.get(slot);
    }

    void setValue(double value) {
        chunk.set(slot, value);
    }
}
