package varve.graph;

import java.util.Arrays;

/**
 * Some edges of a shard in bytes, as a disk would hold them: for each edge the distances of source and target from those of the edge
 * before, seven bits in a byte, and apart from them eight bytes for each value.
 */
final class Block {
    static final int MOST_EDGES = 4096;
    private static final int VALUE_BYTES = Double.BYTES;
    private static final int MOST_NUMBER_BYTES = 5;

    private final int size;
    private final int firstSource;
    private final int lastSource;
    private final byte[] adjacency;
    private final byte[] values;
    /** The values while they are loaded: an interval's own shard and its window may meet in one block. */
    private Chunk loaded;

    Block(int[] sources, int[] targets, double[] edgeValues, int from, int to) {
        size = to - from;
        firstSource = sources[from];
        lastSource = sources[to - 1];
        byte[] bytes = new byte[2 * MOST_NUMBER_BYTES * size];
        int used = 0;
        int source = firstSource;
        int target = 0;
        double[] plain = new double[size];
        for (int i = from; i < to; i++) {
            used = put(bytes, used, sources[i] - source);
            if (sources[i] != source) {
                target = 0;
            }
            used = put(bytes, used, targets[i] - target);
            source = sources[i];
            target = targets[i];
            plain[i - from] = edgeValues[i];
        }
        adjacency = Arrays.copyOf(bytes, used);
        values = new byte[VALUE_BYTES * size];
        store(plain);
    }

    private static int put(byte[] bytes, int at, int number) {
        while (number >= 0x80) {
            bytes[at++] = (byte) (number | 0x80);
            number >>>= 7;
        }
        bytes[at++] = (byte) number;
        return at;
    }

    int firstSource() {
        return firstSource;
    }

    int lastSource() {
        return lastSource;
    }

    int bytes() {
        return adjacency.length + values.length;
    }

    /** Loads the values, unless they are loaded. */
    Chunk open() {
        if (loaded == null) {
            double[] numbers = new double[size];
            for (int i = 0; i < size; i++) {
                long bits = 0;
                for (int b = VALUE_BYTES - 1; b >= 0; b--) {
                    bits = bits << Byte.SIZE | values[VALUE_BYTES * i + b] & 0xff;
                }
                numbers[i] = Double.longBitsToDouble(bits);
            }
            loaded = new Chunk(this, numbers);
        }
        return loaded;
    }

    /** Forgets the loaded values. */
    void close() {
        loaded = null;
    }

    void store(double[] numbers) {
        for (int i = 0; i < size; i++) {
            long bits = Double.doubleToRawLongBits(numbers[i]);
            for (int b = 0; b < VALUE_BYTES; b++) {
                values[VALUE_BYTES * i + b] = (byte) (bits >>> Byte.SIZE * b);
            }
        }
    }

    /** Shows the edges whose source is in a range. */
    void decode(Chunk chunk, int first, int last, EdgeVisitor visitor) {
        int at = 0;
        int source = firstSource;
        int target = 0;
        for (int i = 0; i < size; i++) {
            int step = 0;
            int shift = 0;
            byte b;
            do {
                b = adjacency[at++];
                step |= (b & 0x7f) << shift;
                shift += 7;
            } while (b < 0);
            if (step != 0) {
                target = 0;
                source += step;
            }
            step = 0;
            shift = 0;
            do {
                b = adjacency[at++];
                step |= (b & 0x7f) << shift;
                shift += 7;
            } while (b < 0);
            target += step;
            if (source > last) {
                return;
            }
            if (source >= first) {
                visitor.edge(source, target, chunk, i);
            }
        }
    }
}
