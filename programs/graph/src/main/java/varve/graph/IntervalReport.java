package varve.graph;

/** How long one interval took in one iteration. */
record IntervalReport(int iteration, int interval, int vertices, int edges, long loadNanos, long updateNanos) {
    /** Takes reports as they come. */
    interface Listener {
        void report(IntervalReport report);
    }

    @Override
    public String toString() {
        return "interval: iteration " + iteration + ", interval " + interval + ", " + vertices + " vertices, " + edges
                + " edges, load " + loadNanos / 1000 + " us, update " + updateNanos / 1000 + " us";
    }
}
