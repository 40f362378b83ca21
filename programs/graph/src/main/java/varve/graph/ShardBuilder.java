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
        int at = size++;
        sources[at] = source;
        targets[at] = target;
        values[at] = value;
    }

    Shard build(int vertices, ShardFile file) {
        sort(targets, vertices);
        sort(sources, vertices);
        return new Shard(sources, targets, values, file);
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
        int[] oldSources = sources;
        int[] oldTargets = targets;
        double[] oldValues = values;
        int[] sortedSources = new int[size];
        int[] sortedTargets = new int[size];
        double[] sortedValues = new double[size];
        for (int i = 0; i < keys.length; i++) {
            int to = starts[keys[i]]++;
            sortedSources[to] = oldSources[i];
            sortedTargets[to] = oldTargets[i];
            sortedValues[to] = oldValues[i];
        }
        sources = sortedSources;
        targets = sortedTargets;
        values = sortedValues;
    }
}
