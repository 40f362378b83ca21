package varve.common;

/** Does a program's work again and again in one process, and says how long each round took: code is compiled in the first ones. */
public final class Rounds {
    /** The name of the option, for {@link Args}. */
    public static final String OPTION = "rounds";
    private static final int MOST = 1_000_000;

    private Rounds() {
    }

    /** Does the work once, or as often as the option says; then each round's time is on standard error. */
    public static void of(Args given, Runnable work) {
        if (!given.has(OPTION)) {
            work.run();
            return;
        }
        int rounds = given.option(OPTION, 1, 1, MOST);
        for (int i = 0; i < rounds; i++) {
            long start = System.nanoTime();
            work.run();
            System.err.println("round: " + (System.nanoTime() - start) / 1000 / 1000.0 + " ms");
        }
    }
}
