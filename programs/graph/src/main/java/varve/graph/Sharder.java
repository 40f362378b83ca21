package varve.graph;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Cuts a graph into intervals with about as many edges each, and sorts their edges into shards. */
final class Sharder {
    private final EdgeList edges;
    private final int vertices;
    private final int[] inDegrees;
    private final int[] outDegrees;

    Sharder(EdgeList edges) {
        this.edges = edges;
        vertices = edges.vertices();
        inDegrees = new int[vertices];
        outDegrees = new int[vertices];
        edges.forEach((source, target, value) -> {
            outDegrees[source]++;
            inDegrees[target]++;
        });
    }

    /** So many intervals, whose shards are in a file if there is one. */
    List<Interval> cut(int count, ShardFile file) {
        List<Integer> ends = ends(count);
        int[] intervalOf = new int[vertices];
        int[] sizes = new int[ends.size()];
        int first = 0;
        for (int i = 0; i < ends.size(); i++) {
            for (int v = first; v <= ends.get(i); v++) {
                intervalOf[v] = i;
                sizes[i] += inDegrees[v];
            }
            first = ends.get(i) + 1;
        }
        List<ShardBuilder> builders = new ArrayList<>();
        for (int size : sizes) {
            builders.add(new ShardBuilder(size));
        }
        edges.forEach((source, target, value) -> builders.get(intervalOf[target]).add(source, target, value));
        List<Interval> intervals = new ArrayList<>();
        first = 0;
        for (int i = 0; i < ends.size(); i++) {
            int last = ends.get(i);
            intervals.add(new Interval(first, last, builders.get(i).build(vertices, file), Arrays.copyOfRange(inDegrees, first, last + 1),
                    Arrays.copyOfRange(outDegrees, first, last + 1)));
            builders.set(i, null);
            first = last + 1;
        }
        return intervals;
    }

    /**
     * The last vertex of each interval. A vertex weighs as much as it has edges, of both directions, and one more: that is what an interval has to
     * load and to update, so that intervals take about as long as each other.
     */
    private List<Integer> ends(int count) {
        long total = 2L * edges.size() + vertices;
        List<Integer> ends = new ArrayList<>();
        long weight = 0;
        for (int v = 0; v < vertices; v++) {
            weight += inDegrees[v] + outDegrees[v] + 1;
            if (weight * count >= total * (ends.size() + 1) || v == vertices - 1) {
                ends.add(v);
            }
        }
        return ends;
    }
}
