package varve.graph;

/** Vertices that are loaded and updated together, with the shard of their incoming edges and what outlives an update of them. */
final class Interval {
    final int first;
    final int last;
    final Shard shard;
    /** By vertex. */
    final double[] values;
    final int[] inDegrees;
    final int[] outDegrees;

    Interval(int first, int last, Shard shard, int[] inDegrees, int[] outDegrees) {
        this.first = first;
        this.last = last;
        this.shard = shard;
        this.values = new double[last - first + 1];
        this.inDegrees = inDegrees;
        this.outDegrees = outDegrees;
    }

    int size() {
        return last - first + 1;
    }
}
