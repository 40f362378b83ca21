package varve.kv;

import varve.common.Args;
import varve.common.Checksum;
import varve.common.Rng;
import varve.common.Stopwatch;
import varve.common.Zipf;

/** Serves requests to a store in memory: reads, updates, insertions and removals of records, some keys far more often than others. */
public final class Kv {
    private static final String USAGE = "kv [REQUESTS] [--records N] [--reads PERCENT] [--churn PERCENT] [--fields N]"
            + " [--field-bytes N] [--seed N]";

    private final Store store = new Store();
    private final Rng rng;
    private final int fields;
    private final int fieldBytes;

    private Kv(long seed, int fields, int fieldBytes) {
        rng = new Rng(seed);
        this.fields = fields;
        this.fieldBytes = fieldBytes;
    }

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 1, "records", "reads", "churn", "fields", "field-bytes", "seed");
        int requests = given.number(0, "the number of requests", 500_000, 1, 1_000_000_000);
        int records = given.option("records", 50_000, 1, 10_000_000);
        int reads = given.option("reads", 80, 0, 100);
        int churn = given.option("churn", 5, 0, 100);
        if (reads + churn > 100) {
            given.fail("reads and churn are more than 100 percent together");
        }
        Kv kv = new Kv(given.option("seed", 1, 0, Integer.MAX_VALUE), given.option("fields", 4, 1, 100),
                given.option("field-bytes", 25, 1, 1 << 20));
        Stopwatch stopwatch = new Stopwatch();
        kv.load(records);
        stopwatch.lap("load");
        kv.serve(requests, records, reads, churn);
        stopwatch.lap("requests");
    }

    /** Keys are scattered, so that popular ones are not neighbours. */
    private static String key(int number) {
        return "user" + Integer.toHexString(number * 0x9e3779b1);
    }

    private void load(int records) {
        for (int i = 0; i < records; i++) {
            store.put(key(i), new Record(fields, fieldBytes, i));
        }
        System.out.println(store.size() + " records");
    }

    private void serve(int requests, int records, int reads, int churn) {
        Zipf popularity = new Zipf(records);
        Latencies readLatencies = new Latencies();
        Latencies updateLatencies = new Latencies();
        Latencies churnLatencies = new Latencies();
        long sum = 0;
        int missed = 0;
        for (int i = 0; i < requests; i++) {
            int number = popularity.next(rng);
            int kind = rng.below(100);
            long start = System.nanoTime();
            String key = key(number);
            if (kind < reads) {
                Record record = store.get(key);
                if (record == null) {
                    missed++;
                } else {
                    sum += record.read();
                }
                readLatencies.add(System.nanoTime() - start);
            } else if (kind < reads + churn) {
                if (!store.remove(key)) {
                    store.put(key, new Record(fields, fieldBytes, i));
                }
                churnLatencies.add(System.nanoTime() - start);
            } else {
                Record record = store.get(key);
                if (record == null) {
                    store.put(key, new Record(fields, fieldBytes, i));
                } else {
                    record.replace(i % fields, i);
                }
                updateLatencies.add(System.nanoTime() - start);
            }
        }
        Checksum checksum = new Checksum().add(sum).add(missed);
        for (int i = 0; i < records; i++) {
            Record record = store.get(key(i));
            if (record != null) {
                record.addTo(checksum);
            }
        }
        System.out.println(requests + " requests, " + missed + " reads of nothing, " + store.size() + " records left");
        System.out.println("checksum " + checksum);
        System.err.println(readLatencies.describe("reads"));
        System.err.println(updateLatencies.describe("updates"));
        System.err.println(churnLatencies.describe("insertions and removals"));
    }
}
