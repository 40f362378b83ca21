package varve.common;

/** Says on standard error how long the program's parts take: standard output is the same in every run. */
public final class Stopwatch {
    private long start = System.nanoTime();

    /** Prints the time since the last lap, or since the beginning. */
    public void lap(String what) {
        long now = System.nanoTime();
        System.err.println("time: " + what + " " + (now - start) / 1000 / 1000.0 + " ms");
        start = System.nanoTime();
    }
}
