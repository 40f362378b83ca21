package varve.jvm;

import com.sun.management.GarbageCollectionNotificationInfo;
import java.io.File;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.Notification;
import javax.management.NotificationEmitter;
import javax.management.NotificationListener;
import javax.management.openmbean.CompositeData;

/** Runs a program for some iterations with some threads, and prints a digest of its answers. */
public final class Main {
    private static final String USAGE = "usage: PROGRAM [--threads N] [--iterations N] [--size N] [--warm N] [--seed N]; PROGRAM is one of ";

    private interface Maker {
        Work make(int threads, long seed, Path folder) throws Exception;
    }

    private static final Map<String, Maker> ALL = new TreeMap<>();

    static {
        ALL.put("components", (threads, seed, folder) -> new Graph(Graph.Task.COMPONENTS, threads, seed, folder));
        ALL.put("ecj", (threads, seed, folder) -> new Compiling());
        ALL.put("fop", (threads, seed, folder) -> new Printing());
        ALL.put("h2", (threads, seed, folder) -> new Database("jdbc:h2:mem:bank;DB_CLOSE_DELAY=-1", threads, seed));
        ALL.put("hsqldb", (threads, seed, folder) -> new Database("jdbc:hsqldb:mem:bank;hsqldb.tx=mvcc", threads, seed));
        ALL.put("jetty", (threads, seed, folder) -> new Serving(threads, seed));
        ALL.put("jython", (threads, seed, folder) -> new Interpreting());
        ALL.put("luindex", (threads, seed, folder) -> new Indexing());
        ALL.put("lusearch", (threads, seed, folder) -> new Searching(seed));
        ALL.put("pagerank", (threads, seed, folder) -> new Graph(Graph.Task.PAGERANK, threads, seed, folder));
        ALL.put("pmd", (threads, seed, folder) -> new Analysing());
        ALL.put("tracer", (threads, seed, folder) -> new Tracing(seed));
        ALL.put("xalan", (threads, seed, folder) -> new Transforming());
    }

    private static int option(List<String> words, String name, int usual) {
        int at = words.indexOf("--" + name);
        if (at < 0) {
            return usual;
        }
        try {
            words.remove(at);
            int value = Integer.parseInt(words.remove(at));
            if (value > 0) {
                return value;
            }
        } catch (IndexOutOfBoundsException | NumberFormatException e) {
            // Said below.
        }
        throw new IllegalArgumentException("--" + name + " takes a whole number above 0");
    }

    public static void main(String[] args) throws Exception {
        List<String> words = new ArrayList<>(List.of(args));
        Maker maker = null;
        int threads = 0;
        int iterations = 0;
        int size = 0;
        int warm = 0;
        int seed = 0;
        try {
            maker = words.isEmpty() ? null : ALL.get(words.remove(0));
            threads = option(words, "threads", 4);
            iterations = option(words, "iterations", 2);
            size = option(words, "size", 1000);
            // The iterations before the last one, which compile.
            warm = option(words, "warm", size);
            seed = option(words, "seed", 1);
        } catch (IllegalArgumentException e) {
            System.err.println("error: " + e.getMessage());
            System.exit(2);
        }
        if (maker == null || !words.isEmpty()) {
            System.err.println("error: " + USAGE + String.join(", ", ALL.keySet()));
            System.exit(2);
        }
        Path folder = Files.createTempDirectory("varve-jvm");
        // A driver says nothing but its digest.
        java.util.logging.LogManager.getLogManager().reset();
        try (Work work = maker.make(threads, seed, folder)) {
            run(work, threads, iterations, size, warm, seed);
        } finally {
            delete(folder.toFile());
        }
        System.exit(0);
    }

    private static void run(Work work, int threads, int iterations, int size, int warm, int seed) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads, task -> {
            Thread thread = new Thread(task);
            // One that waits for another that failed does not keep the program.
            thread.setDaemon(true);
            return thread;
        });
        for (int iteration = 1; iteration <= iterations; iteration++) {
            boolean last = iteration == iterations;
            int amount = last ? size : warm;
            if (last) {
                // What the iterations before have left is not this one's.
                System.gc();
            }
            long allocated = allocated();
            long old = PROMOTED.sum();
            long collections = collections();
            if (last) {
                mark("begin");
            }
            long start = System.nanoTime();
            List<Future<Long>> parts = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int number = thread;
                Random random = new Random(Random.mix(seed * 1000L + number));
                parts.add(pool.submit(() -> work.run(number, random, amount)));
            }
            long digest = 0;
            for (Future<Long> part : parts) {
                digest += part.get();
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            if (last) {
                mark("end");
            }
            allocated = allocated() - allocated;
            collections = collections() - collections;
            old = PROMOTED.sum() - old;
            digest += work.reset();
            System.out.printf("iteration %d: digest %016x%n", iteration, digest);
            System.err.printf("iteration %d: %.3f s, %d KiB allocated, %d KiB promoted, %d collections%n", iteration, seconds, allocated >> 10,
                    old >> 10, collections);
        }
        pool.shutdown();
    }

    /** A recorder that is told to heed marks records between them; nobody else sees them (docs/jvm.md). */
    private static boolean mark(String what) {
        return new File("/varve/record/" + what).exists();
    }

    private static long allocated() {
        var all = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long sum = 0;
        for (long bytes : all.getThreadAllocatedBytes(all.getAllThreadIds())) {
            sum += Math.max(bytes, 0);
        }
        return sum;
    }

    /** Bytes that collections of the young generation have brought to the old one; the machine tells of each when it is over. */
    private static final Promoted PROMOTED = new Promoted();

    private static final class Promoted implements NotificationListener {
        private long bytes;
        private long heard;

        Promoted() {
            for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
                ((NotificationEmitter) collector).addNotificationListener(this, null, null);
            }
            heard += collections();
        }

        @Override
        public synchronized void handleNotification(Notification said, Object nothing) {
            var of = GarbageCollectionNotificationInfo.from((CompositeData) said.getUserData());
            if (of.getGcAction().equals("end of minor GC")) {
                bytes += Math.max(old(of.getGcInfo().getMemoryUsageAfterGc()) - old(of.getGcInfo().getMemoryUsageBeforeGc()), 0);
            }
            heard++;
            notifyAll();
        }

        private static long old(Map<String, MemoryUsage> pools) {
            return pools.entrySet().stream().filter(pool -> pool.getKey().endsWith("Old Gen")).mapToLong(pool -> pool.getValue().getUsed()).sum();
        }

        /** What all collections until now have brought there, once the machine has told of them. */
        synchronized long sum() throws InterruptedException {
            long all = collections();
            for (int tries = 0; heard < all && tries < 100; tries++) {
                wait(20);
            }
            return bytes;
        }
    }

    private static long collections() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += collector.getCollectionCount();
        }
        return sum;
    }

    private static void delete(File file) {
        File[] inside = file.listFiles();
        if (inside != null) {
            for (File each : inside) {
                delete(each);
            }
        }
        file.delete();
    }

    private Main() {
    }
}
