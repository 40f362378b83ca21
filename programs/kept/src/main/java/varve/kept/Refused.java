package varve.kept;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.IntStream;

/** What cannot survive. */
final class Refused {
    private Refused() {
    }

    static void add(Suite suite) {
        suite.refuse("lambda", () -> {
            Runnable lambda = () -> System.out.println("ran");
            return lambda;
        });
        suite.refuse("method reference", () -> {
            Function<String, Integer> length = String::length;
            return List.of(length);
        });
        suite.refuse("comparator by a lambda", () -> new TreeSet<String>((a, b) -> b.compareTo(a)));
        suite.refuse("EnumSet", () -> EnumSet.of(Maps.Day.MONDAY));
        suite.refuse("thread", Thread::currentThread);
        suite.refuse("stream of numbers", () -> IntStream.range(0, 3).map(i -> i + 1));
        suite.refuse("stream", () -> new ArrayList<>(List.of(1)).stream().filter(i -> i > 0));
        suite.refuse("standard output", () -> new Object[] {System.out});
        suite.refuse("standard input", () -> new Object[] {System.in});
    }
}
