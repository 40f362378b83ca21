package varve.graph;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import varve.common.Args;
import varve.common.Checksum;
import varve.common.Stopwatch;

/** The command line of the graph engine. */
public final class Graph {
    private static final String USAGE = "graph pagerank|components|als [FILE|-] [--scale N] [--edges PER-VERTEX] [--users N]"
            + " [--items N] [--ratings PER-USER] [--factors N] [--intervals N] [--iterations N] [--top N] [--seed N] [--report 1] [--shards FILE]";

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 2, "scale", "edges", "users", "items", "ratings", "factors", "intervals",
                "iterations", "top", "seed", "report", "shards");
        String task = given.choice(0, "pagerank", "components", "als");
        int seed = given.option("seed", 1, 0, Integer.MAX_VALUE);
        try {
            run(task, given, read(source(task, given, seed), task), seed);
        } catch (FileNotFoundException e) {
            end("cannot read " + given.word(1, "-"));
        } catch (IOException | UncheckedIOException e) {
            end(e.getMessage());
        }
    }

    private static void end(String why) {
        System.err.println("error: " + why);
        System.exit(1);
    }

    private static EdgeSource source(String task, Args given, int seed) {
        String file = given.word(1, null);
        if (file != null) {
            return new EdgeFile(file);
        }
        if (task.equals("als")) {
            return new Ratings(given.option("users", 4000, 1, 1 << 24), given.option("items", 1000, 1, 1 << 24),
                    given.option("ratings", 40, 1, 1 << 16), seed);
        }
        return new Kronecker(given.option("scale", 15, 1, 24), given.option("edges", 8, 1, 1 << 10), seed);
    }

    private static EdgeList read(EdgeSource source, String task) throws IOException {
        EdgeList edges = new EdgeList();
        source.forEach(edges);
        if (edges.size() == 0) {
            throw new IOException("the graph has no edges");
        }
        return task.equals("als") && !edges.isBipartite() ? edges.withTargetsAfterSources() : edges;
    }

    private static void run(String task, Args given, EdgeList edges, int seed) throws IOException {
        Stopwatch stopwatch = new Stopwatch();
        ShardFile file = given.has("shards") ? new ShardFile(given.text("shards")) : null;
        List<Interval> intervals = new Sharder(edges).cut(given.option("intervals", 8, 1, 1 << 16), file);
        long bytes = 0;
        for (Interval interval : intervals) {
            bytes += interval.shard.bytes();
        }
        System.out.println(edges.vertices() + " vertices, " + edges.size() + " edges, " + intervals.size() + " intervals, "
                + bytes + " bytes in shards");
        stopwatch.lap("sharding");
        boolean report = given.option("report", 0, 0, 1) == 1;
        Engine engine = new Engine(intervals, r -> {
            if (report) {
                System.err.println(r);
            }
        });
        int top = given.option("top", 5, 0, 1000);
        switch (task) {
            case "pagerank" -> {
                engine.run(new PageRank(), given.option("iterations", 5, 1, 10_000));
                printRanks(engine, top);
            }
            case "components" -> {
                int iterations = engine.run(new Components(), given.option("iterations", 1000, 1, 1 << 20));
                printComponents(engine, iterations, top);
            }
            default -> {
                LeastSquares program = new LeastSquares(engine.vertices(), given.option("factors", 8, 1, 200), seed);
                engine.run(program, given.option("iterations", 5, 1, 10_000));
                Checksum checksum = new Checksum();
                for (int v = 0; v < engine.vertices(); v++) {
                    for (double x : program.vector(v)) {
                        checksum.addExactly(x);
                    }
                }
                System.out.println("checksum " + checksum);
            }
        }
        stopwatch.lap(task);
        if (file != null) {
            file.close();
        }
    }

    private record Ranked(int vertex, double value) {
    }

    private static void printRanks(Engine engine, int top) {
        List<Ranked> ranked = new ArrayList<>();
        Checksum checksum = new Checksum();
        for (Interval interval : engine.intervals()) {
            for (int i = 0; i < interval.size(); i++) {
                ranked.add(new Ranked(interval.first + i, interval.values[i]));
                checksum.addExactly(interval.values[i]);
            }
        }
        ranked.sort(Comparator.comparingDouble(Ranked::value).reversed().thenComparingInt(Ranked::vertex));
        for (Ranked r : ranked.subList(0, Math.min(top, ranked.size()))) {
            System.out.println("vertex " + r.vertex + ": rank " + Math.round(r.value * 1e6) / 1e6);
        }
        System.out.println("checksum " + checksum);
    }

    private static void printComponents(Engine engine, int iterations, int top) {
        Map<Integer, Integer> sizes = new HashMap<>();
        Checksum checksum = new Checksum();
        for (Interval interval : engine.intervals()) {
            for (double label : interval.values) {
                sizes.merge((int) label, 1, Integer::sum);
                checksum.add((int) label);
            }
        }
        List<Map.Entry<Integer, Integer>> sorted = new ArrayList<>(sizes.entrySet());
        sorted.sort(Map.Entry.<Integer, Integer>comparingByValue(Comparator.reverseOrder()).thenComparing(Map.Entry.comparingByKey()));
        System.out.println(sizes.size() + " components after " + iterations + " iterations");
        for (Map.Entry<Integer, Integer> entry : sorted.subList(0, Math.min(top, sorted.size()))) {
            System.out.println("component " + entry.getKey() + ": " + entry.getValue() + " vertices");
        }
        System.out.println("checksum " + checksum);
    }
}
