package varve.graph;

import java.util.Arrays;
import java.util.List;

/**
 * Some edges of a shard as a disk would hold them: for each edge the distances of source and target from those of the edge
 * before, seven bits in a byte, and apart from them the values.
 */
final class Block {
    static final int MOST_EDGES = 1024;
    private static final int CLOSED = -1;
    private static final int MOST_NUMBER_BYTES = 5;

    private final int size;
    private final int firstSource;
    private final int lastSource;
    private final BlockHome home;
    /** The number of the chunk with the values while they are loaded: an interval's own shard and its window may meet in one block. */
    private int loaded = CLOSED;

    /** Some edges of an order by source, which are put into a file if there is one. */
    Block(int[] sources, int[] targets, double[] edgeValues, int from, int to, ShardFile file) {
        size = to - from;
        firstSource = sources[from];
        lastSource = sources[to - 1];
        byte[] bytes = new byte[2 * MOST_NUMBER_BYTES * size];
        int used = 0;
        int source = firstSource;
        int target = 0;
        for (int i = from; i < to; i++) {
            used = put(bytes, used, sources[i] - source);
            if (sources[i] != source) {
                target = 0;
            }
            used = put(bytes, used, targets[i] - target);
            source = sources[i];
            target = targets[i];
        }
        byte[] adjacency = Arrays.copyOf(bytes, used);
        double[] values = Arrays.copyOfRange(edgeValues, from, to);
        home = file == null ? new MemoryBlock(adjacency, values) : new FileBlock(file, adjacency, values);
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
        return home.bytes();
    }

    /** Loads the values as one more chunk, unless they are loaded; the chunk's number. */
    int open(List<Chunk> chunks) {
        if (loaded == CLOSED) {
            loaded = chunks.size();
            chunks.add(new Chunk(this, home.values()));
        }
        return loaded;
    }

    /** Forgets the loaded values. */
    void close() {
        loaded = CLOSED;
    }

    void store(double[] numbers) {
        home.store(numbers);
    }

    /** Shows the edges whose source is in a range. */
    void decode(int chunk, int first, int last, EdgeVisitor visitor) {
        byte[] adjacency = home.adjacency();
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
