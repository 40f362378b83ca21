package varve.jvm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * A graph in files, cut as GraphChi does (Kyrola, Blelloch, Guestrin, OSDI 2012): a shard for each interval of vertices, with the edges into
 * it ordered by their source, so that the edges out of an interval are a window of every shard. Values of edges are in two files of which
 * an iteration reads one and writes the other.
 */
final class Shards implements AutoCloseable {
    /** Bytes of an edge's ends, and of its value. */
    static final int ENDS = 2 * Integer.BYTES;
    static final int VALUE = Double.BYTES;

    final int vertices;
    final int intervals;
    private final FileChannel[] ends;
    private final FileChannel[][] values;
    /** By shard and interval of the sources: the number of the first edge; with one more at the end. */
    private final int[][] windows;

    Shards(Path folder, int scale, int edges, int intervals, Random random) throws IOException {
        vertices = 1 << scale;
        this.intervals = intervals;
        ends = new FileChannel[intervals];
        values = new FileChannel[2][intervals];
        windows = new int[intervals][intervals + 1];
        long[][] all = new long[intervals][edges / intervals + 16];
        int[] sizes = new int[intervals];
        for (int i = 0; i < edges; i++) {
            int source = 0;
            int target = 0;
            for (int bit = 0; bit < scale; bit++) {
                // The quadrants of a Kronecker graph as Graph 500 has them: 57, 19, 19 and 5 %.
                int at = random.below(100);
                source = source << 1 | (at >= 76 ? 1 : 0);
                target = target << 1 | (at >= 57 && at < 76 || at >= 95 ? 1 : 0);
            }
            // Odd numbers have an inverse, so that this only deals the vertices out again.
            source = source * 0x9e3779b1 & vertices - 1;
            target = target * 0x9e3779b1 & vertices - 1;
            int shard = interval(target);
            if (sizes[shard] == all[shard].length) {
                all[shard] = Arrays.copyOf(all[shard], 2 * sizes[shard]);
            }
            all[shard][sizes[shard]++] = (long) source << 32 | target;
        }
        for (int shard = 0; shard < intervals; shard++) {
            Arrays.sort(all[shard], 0, sizes[shard]);
            ByteBuffer bytes = ByteBuffer.allocate(ENDS * sizes[shard]);
            int next = 0;
            for (int i = 0; i < sizes[shard]; i++) {
                int source = (int) (all[shard][i] >>> 32);
                while (next <= interval(source)) {
                    windows[shard][next++] = i;
                }
                bytes.putInt(source).putInt((int) all[shard][i]);
            }
            Arrays.fill(windows[shard], next, intervals + 1, sizes[shard]);
            ends[shard] = file(folder, "ends", shard, bytes.flip());
            values[0][shard] = file(folder, "values0", shard, ByteBuffer.allocate(VALUE * sizes[shard]));
            values[1][shard] = file(folder, "values1", shard, ByteBuffer.allocate(VALUE * sizes[shard]));
        }
    }

    private static FileChannel file(Path folder, String name, int shard, ByteBuffer bytes) throws IOException {
        FileChannel file = FileChannel.open(folder.resolve(name + "-" + shard), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
        while (bytes.hasRemaining()) {
            file.write(bytes);
        }
        return file;
    }

    private int interval(int vertex) {
        return (int) ((long) vertex * intervals / vertices);
    }

    int first(int interval) {
        return (int) ((long) interval * vertices / intervals);
    }

    /** Ends of a shard's edges whose sources are in some intervals. */
    ByteBuffer ends(int shard, int from, int to) throws IOException {
        return read(ends[shard], ENDS, windows[shard][from], windows[shard][to]);
    }

    /** Their values. */
    ByteBuffer values(int side, int shard, int from, int to) throws IOException {
        return read(values[side][shard], VALUE, windows[shard][from], windows[shard][to]);
    }

    /** Writes the values of a window. */
    void write(int side, int shard, int interval, ByteBuffer bytes) throws IOException {
        long at = (long) VALUE * windows[shard][interval];
        bytes.rewind();
        while (bytes.hasRemaining()) {
            at += values[side][shard].write(bytes, at);
        }
    }

    private static ByteBuffer read(FileChannel file, int width, int from, int to) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(width * (to - from));
        long at = (long) width * from;
        while (bytes.hasRemaining()) {
            at += file.read(bytes, at);
        }
        return bytes.flip();
    }

    @Override
    public void close() throws IOException {
        for (int shard = 0; shard < intervals; shard++) {
            ends[shard].close();
            values[0][shard].close();
            values[1][shard].close();
        }
    }
}
