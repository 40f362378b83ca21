package varve.graph;

import java.util.ArrayList;
import java.util.List;
import varve.PerfCritical;
import varve.Varve;

/**
 * Runs a vertex program by parallel sliding windows, as GraphChi does (Kyrola, Blelloch, Guestrin, OSDI 2012): interval after interval is
 * loaded, with its own shard for the incoming edges and a window of every shard for the outgoing ones, updated, and written back.
 * What an update writes is seen by the updates after it in the same iteration.
 */
final class Engine {
    private final List<Interval> intervals;
    private final Schedule schedule;
    private final IntervalReport.Listener listener;
    /** Whether whoever places objects wants to know how long intervals take. */
    private final boolean sampling = Varve.sampling();
    private int vertices;

    Engine(List<Interval> intervals, IntervalReport.Listener listener) {
        this.intervals = intervals;
        this.listener = listener;
        for (Interval interval : intervals) {
            vertices += interval.size();
        }
        schedule = new Schedule(vertices);
    }

    int vertices() {
        return vertices;
    }

    List<Interval> intervals() {
        return intervals;
    }

    /** Runs until nothing is scheduled any more, or for a number of iterations; how many there were. */
    int run(VertexProgram program, int mostIterations) {
        for (int v = 0; v < vertices; v++) {
            schedule.add(v);
        }
        for (int iteration = 0; iteration < mostIterations; iteration++) {
            for (int i = 0; i < intervals.size(); i++) {
                runInterval(program, iteration, i);
            }
            String said = program.afterIteration(iteration);
            if (said != null) {
                System.out.println(said);
            }
            if (program.isSelective() && schedule.isEmpty()) {
                return iteration + 1;
            }
        }
        return mostIterations;
    }

    private void runInterval(VertexProgram program, int iteration, int number) {
        Interval interval = intervals.get(number);
        if (program.isSelective() && !schedule.hasAny(interval.first, interval.last)) {
            return;
        }
        long start = System.nanoTime();
        List<Chunk> chunks = new ArrayList<>();
        Vertex[] loaded = load(interval, chunks);
        long middle = System.nanoTime();
        int edges = 0;
        for (Vertex vertex : loaded) {
            edges += vertex.incoming() + vertex.outgoing();
            if (!program.isSelective() || schedule.take(vertex.id())) {
                program.update(vertex, iteration, schedule);
                interval.values[vertex.id() - interval.first] = vertex.value();
            }
        }
        for (Chunk chunk : chunks) {
            chunk.close();
        }
        long end = System.nanoTime();
        listener.report(new IntervalReport(iteration, number, loaded.length, edges, middle - start, end - middle));
        if (sampling) {
            Varve.interval((long) iteration * intervals.size() + number, middle - start, end - middle);
        }
    }

    /** Updates follow vertices to their edges, and little else: these are the objects to have in fast memory. */
    private Vertex[] load(Interval interval, List<Chunk> chunks) {
        Vertex[] loaded = new Vertex[interval.size()];
        for (int i = 0; i < loaded.length; i++) {
            loaded[i] = new @PerfCritical Vertex(interval.first + i, interval.values[i], interval.inDegrees[i], interval.outDegrees[i],
                    chunks);
        }
        int first = interval.first;
        interval.shard.load(0, vertices - 1, chunks, (source, target, chunk, slot) ->
                loaded[target - first].addIncoming(source, chunk, slot));
        for (Interval other : intervals) {
            other.shard.load(first, interval.last, chunks, (source, target, chunk, slot) ->
                    loaded[source - first].addOutgoing(target, chunk, slot));
        }
        return loaded;
    }
}
