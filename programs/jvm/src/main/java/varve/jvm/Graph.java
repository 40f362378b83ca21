package varve.jvm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * Vertex programs on a graph whose shards are in files, by sliding windows as in GraphChi: an operation is an interval, which is loaded,
 * updated and written back. Threads have intervals of their own and meet after each sweep over all of them. What an iteration writes is
 * seen by the next one, so that answers do not depend on who was first.
 */
final class Graph implements Work {
    /** What a vertex does. */
    enum Task {
        PAGERANK {
            @Override
            double update(Vertex vertex) {
                double sum = 0;
                for (Edge edge : vertex.incoming) {
                    sum += edge.get();
                }
                double rank = 0.15 + 0.85 * sum;
                double part = rank / Math.max(1, vertex.outgoing.size());
                for (Edge edge : vertex.outgoing) {
                    edge.set(part);
                }
                return rank;
            }
        },
        COMPONENTS {
            @Override
            double update(Vertex vertex) {
                // Labels count down from that of the last vertex, so that 0, which all edges have at first, says nothing.
                double label = vertex.value;
                for (Edge edge : vertex.incoming) {
                    label = Math.max(label, edge.get());
                }
                for (Edge edge : vertex.outgoing) {
                    edge.set(label);
                }
                return label;
            }
        };

        abstract double update(Vertex vertex);
    }

    /** An edge of a loaded vertex: its value is in the block that was loaded. */
    private record Edge(int neighbour, ByteBuffer block, int at) {
        double get() {
            return block.getDouble(at);
        }

        void set(double value) {
            block.putDouble(at, value);
        }
    }

    private static final class Vertex {
        private final double value;
        private final List<Edge> incoming = new ArrayList<>();
        private final List<Edge> outgoing = new ArrayList<>();

        Vertex(double value) {
            this.value = value;
        }
    }

    private static final int SCALE = 15;
    private static final int EDGES = 8 << SCALE;
    private static final int INTERVALS = 64;

    private final Task task;
    private final int threads;
    private final Shards shards;
    private final double[] values;
    private final CyclicBarrier sweep;

    Graph(Task task, int threads, long seed, Path folder) throws IOException {
        if (INTERVALS % threads != 0) {
            throw new IllegalArgumentException("--threads of a graph divide " + INTERVALS);
        }
        this.task = task;
        this.threads = threads;
        shards = new Shards(folder, SCALE, EDGES, INTERVALS, new Random(seed));
        values = new double[shards.vertices];
        sweep = new CyclicBarrier(threads);
        start();
    }

    private void start() throws IOException {
        for (int i = 0; i < values.length; i++) {
            values[i] = i + 1;
        }
        for (int shard = 0; shard < INTERVALS; shard++) {
            for (int interval = 0; interval < INTERVALS; interval++) {
                shards.write(0, shard, interval, ByteBuffer.allocate(shards.values(0, shard, interval, interval + 1).remaining()));
            }
        }
    }

    @Override
    public long run(int thread, Random random, int size) throws IOException, InterruptedException, BrokenBarrierException {
        int own = INTERVALS / threads;
        long digest = 0;
        for (int number = 0; number < size; number++) {
            if (number > 0 && number % own == 0) {
                sweep.await();
            }
            int side = number / own % 2;
            digest += interval(thread * own + number % own, side);
        }
        return digest;
    }

    private long interval(int interval, int side) throws IOException {
        int first = shards.first(interval);
        Vertex[] loaded = new Vertex[shards.first(interval + 1) - first];
        for (int i = 0; i < loaded.length; i++) {
            loaded[i] = new Vertex(values[first + i]);
        }
        ByteBuffer ends = shards.ends(interval, 0, INTERVALS);
        ByteBuffer block = shards.values(side, interval, 0, INTERVALS);
        for (int i = 0; ends.hasRemaining(); i++) {
            int source = ends.getInt();
            loaded[ends.getInt() - first].incoming.add(new Edge(source, block, Shards.VALUE * i));
        }
        ByteBuffer[] windows = new ByteBuffer[INTERVALS];
        for (int shard = 0; shard < INTERVALS; shard++) {
            ends = shards.ends(shard, interval, interval + 1);
            windows[shard] = shards.values(side, shard, interval, interval + 1);
            for (int i = 0; ends.hasRemaining(); i++) {
                int source = ends.getInt();
                loaded[source - first].outgoing.add(new Edge(ends.getInt(), windows[shard], Shards.VALUE * i));
            }
        }
        long digest = 0;
        for (int i = 0; i < loaded.length; i++) {
            values[first + i] = task.update(loaded[i]);
            digest += Random.mix(Double.doubleToLongBits(values[first + i]) + first + i);
        }
        for (int shard = 0; shard < INTERVALS; shard++) {
            shards.write(1 - side, shard, interval, windows[shard]);
        }
        return digest;
    }

    @Override
    public long reset() throws IOException {
        start();
        return 0;
    }

    @Override
    public void close() throws IOException {
        shards.close();
    }
}
