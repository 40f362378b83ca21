package varve.graph;

/** The values of a block's edges, loaded for a while. */
final class Chunk {
    private final Block block;
    private final double[] values;
    private boolean changed;

    Chunk(Block block, double[] values) {
        this.block = block;
        this.values = values;
    }

    double get(int slot) {
        return values[slot];
    }

    void set(int slot, double value) {
        values[slot] = value;
        changed = true;
    }

    /** Brings what was changed back to where it was loaded from, and lets go. */
    void close() {
        if (changed) {
            block.store(values);
            changed = false;
        }
        block.close();
    }
}
