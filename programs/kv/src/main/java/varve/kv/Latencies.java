package varve.kv;

/** Counts durations in nanoseconds, with an error below two percent: by power of two, each in 64 parts. */
final class Latencies {
    private static final int PARTS_LOG = 6;
    private static final int PARTS = 1 << PARTS_LOG;

    private final long[] counts = new long[(Long.SIZE - PARTS_LOG) * PARTS];
    private long total;
    private long longest;

    void add(long nanos) {
        long value = Math.max(0, nanos);
        counts[index(value)]++;
        total++;
        longest = Math.max(longest, value);
    }

    private static int index(long value) {
        if (value < PARTS) {
            return (int) value;
        }
        int power = Long.SIZE - 1 - Long.numberOfLeadingZeros(value);
        int part = (int) (value >>> power - PARTS_LOG) & PARTS - 1;
        return (power - PARTS_LOG + 1) * PARTS + part;
    }

    private static long value(int index) {
        if (index < PARTS) {
            return index;
        }
        int shift = index / PARTS - 1;
        return (long) (PARTS + index % PARTS) << shift;
    }

    /** The duration that a share of all does not exceed. */
    long percentile(double share) {
        long wanted = (long) Math.ceil(share * total);
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= wanted && seen > 0) {
                return value(i);
            }
        }
        return longest;
    }

    String describe(String what) {
        return "latency: " + total + " " + what + ", p50 " + percentile(0.5) + " ns, p90 " + percentile(0.9) + " ns, p99 "
                + percentile(0.99) + " ns, p99.9 " + percentile(0.999) + " ns, longest " + longest + " ns";
    }
}
