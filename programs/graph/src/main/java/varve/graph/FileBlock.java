package varve.graph;

/** A block that is in a file: what of it is needed is read each time. */
final class FileBlock implements BlockHome {
    private final ShardFile file;
    private final int adjacencyAt;
    private final int adjacencyBytes;
    private final int valuesAt;
    private final int size;

    FileBlock(ShardFile file, byte[] adjacency, double[] values) {
        this.file = file;
        adjacencyBytes = adjacency.length;
        size = values.length;
        adjacencyAt = file.reserve(adjacencyBytes);
        valuesAt = file.reserve(Double.BYTES * size);
        file.write(adjacencyAt, adjacency, adjacencyBytes);
        store(values);
    }

    @Override
    public byte[] adjacency() {
        return file.read(adjacencyAt, adjacencyBytes);
    }

    @Override
    public double[] values() {
        byte[] bytes = file.read(valuesAt, Double.BYTES * size);
        double[] values = new double[size];
        for (int i = 0; i < size; i++) {
            int at = Double.BYTES * i;
            int low = bytes[at] & 0xff | (bytes[at + 1] & 0xff) << 8 | (bytes[at + 2] & 0xff) << 16 | bytes[at + 3] << 24;
            int high = bytes[at + 4] & 0xff | (bytes[at + 5] & 0xff) << 8 | (bytes[at + 6] & 0xff) << 16 | bytes[at + 7] << 24;
            values[i] = Double.longBitsToDouble((long) high << 32 | low & 0xffffffffL);
        }
        return values;
    }

    @Override
    public void store(double[] values) {
        byte[] bytes = file.buffer(Double.BYTES * size);
        for (int i = 0; i < size; i++) {
            int at = Double.BYTES * i;
            long bits = Double.doubleToRawLongBits(values[i]);
            int low = (int) bits;
            int high = (int) (bits >>> 32);
            bytes[at] = (byte) low;
            bytes[at + 1] = (byte) (low >> 8);
            bytes[at + 2] = (byte) (low >> 16);
            bytes[at + 3] = (byte) (low >> 24);
            bytes[at + 4] = (byte) high;
            bytes[at + 5] = (byte) (high >> 8);
            bytes[at + 6] = (byte) (high >> 16);
            bytes[at + 7] = (byte) (high >> 24);
        }
        file.write(valuesAt, bytes, Double.BYTES * size);
    }

    @Override
    public int bytes() {
        return adjacencyBytes + Double.BYTES * size;
    }
}
