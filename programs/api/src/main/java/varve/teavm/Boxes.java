package varve.teavm;

/**
 * Fills the caches of boxes before the program sees a durable object: a box of a region that came from a cache is then the cache's again. What is
 * called by the code that {@link VarveTransformer} adds.
 */
final class Boxes {
    private static boolean filled;

    private Boxes() {
    }

    static void fill() {
        if (filled) {
            return;
        }
        filled = true;
        Boolean.valueOf(false);
        for (int i = -128; i < 128; i++) {
            Integer.valueOf(i);
            Short.valueOf((short) i);
            Character.valueOf((char) (i & 127));
        }
    }
}
