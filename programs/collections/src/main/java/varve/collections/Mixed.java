package varve.collections;

import varve.common.Args;
import varve.common.Stopwatch;

/** Collections at work: the library's own, streams over them, and the persistent ones of PCollections. */
public final class Mixed {
    public static void main(String[] args) {
        Args given = new Args("collections all|mutable|streams|persistent [SIZE]", args, 2);
        String part = given.choice(0, "all", "mutable", "streams", "persistent");
        int size = given.number(1, "the size", 40_000, 10, 10_000_000);
        Stopwatch stopwatch = new Stopwatch();
        if (!part.equals("streams") && !part.equals("persistent")) {
            Mutable.run(size);
            stopwatch.lap("mutable");
        }
        if (!part.equals("mutable") && !part.equals("persistent")) {
            Streams.run(size);
            stopwatch.lap("streams");
        }
        if (!part.equals("mutable") && !part.equals("streams")) {
            Persistent.run(size);
            stopwatch.lap("persistent");
        }
    }
}
