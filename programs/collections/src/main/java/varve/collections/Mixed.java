package varve.collections;

import varve.common.Args;
import varve.common.Rounds;
import varve.common.Stopwatch;

/** Collections at work: the library's own, streams over them, the persistent ones of PCollections, hash maps alone, and linked structures. */
public final class Mixed {
    public static void main(String[] args) {
        Args given = new Args("collections all|mutable|streams|persistent|maps|linked [SIZE] [--rounds N]", args, 2, Rounds.OPTION);
        String part = given.choice(0, "all", "mutable", "streams", "persistent", "maps", "linked");
        int size = given.number(1, "the size", 40_000, 10, 10_000_000);
        Rounds.of(given, () -> run(part, size));
    }

    private static void run(String part, int size) {
        boolean all = part.equals("all");
        Stopwatch stopwatch = new Stopwatch();
        if (all || part.equals("mutable")) {
            Mutable.run(size);
            stopwatch.lap("mutable");
        }
        if (all || part.equals("streams")) {
            Streams.run(size);
            stopwatch.lap("streams");
        }
        if (all || part.equals("persistent")) {
            Persistent.run(size);
            stopwatch.lap("persistent");
        }
        if (all || part.equals("maps")) {
            Maps.run(size);
            stopwatch.lap("maps");
        }
        if (all || part.equals("linked")) {
            Linked.run(size);
            stopwatch.lap("linked");
        }
    }
}
