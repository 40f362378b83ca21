package varve.graph;

/** A block that is in memory. */
final class MemoryBlock implements BlockHome {
    private final byte[] adjacency;
    private final double[] values;

    MemoryBlock(byte[] adjacency, double[] values) {
        this.adjacency = adjacency;
        this.values = values;
    }

    @Override
    public byte[] adjacency() {
        return adjacency;
    }

    @Override
    public double[] values() {
        return values.clone();
    }

    @Override
    public void store(double[] numbers) {
        System.arraycopy(numbers, 0, values, 0, numbers.length);
    }

    @Override
    public int bytes() {
        return adjacency.length + Double.BYTES * values.length;
    }
}
