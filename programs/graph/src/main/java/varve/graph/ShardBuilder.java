package varve.graph;

/** Collects the edges of a shard and sorts them by counting. */
final class ShardBuilder {
    private int[] sources;
    private int[] targets;
    private double[] values;
    private int size;

    ShardBuilder(int edges) {
        sources = new int[edges];
        targets = new int[edges];
        values = new double[edges];
    }

    void add(int source, int target, double value) {
        sources[size] = source;
        targets[size] = target;
        values[size] = value;
        size++;
    }

    Shard build(int vertices) {
        sort(targets, vertices);
        sort(sources, vertices);
        return new Shard(sources, targets, values);
    }

    /** Sorts by one end; edges that are equal in it keep their order. */
    private void sort(int[] keys, int vertices) {
        int[] starts = new int[vertices + 1];
        for (int key : keys) {
            starts[key + 1]++;
        }
        for (int v = 0; v < vertices; v++) {
            starts[v + 1] += starts[v];
        }
        int[] sortedSources = new int[size];
        int[] sortedTargets = new int[size];
        double[] sortedValues = new double[size];
        for (int i = 0; i < size; i++) {
            int to = starts[keys[i]]++;
            sortedSources[to] = sources[i];
            sortedTargets[to] = targets[i];
            sortedValues[to] = values[i];
        }
        sources = sortedSources;
        targets = sortedTargets;
        values = sortedValues;
    }
}
