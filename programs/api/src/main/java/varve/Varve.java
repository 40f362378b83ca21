package varve;

/**
 * What a program tells the runtime that places its objects in fast and slow memory. On an ordinary virtual machine all of it does
 * nothing.
 */
public final class Varve {
    private Varve() {
    }

    /**
     * Marks the place in the program where an object was just allocated: all objects that are born there are critical for the
     * program's speed. {@code Varve.critical(new Vertex(id))} is recognised when the code is compiled, and then costs nothing.
     * For an object that is made right there, {@link PerfCritical} says the same.
     *
     * @return the object
     */
    public static <T> T critical(T fresh) {
        return fresh;
    }

    /** Whether the runtime wants to know how long intervals take. Asked once, before the first. */
    public static boolean sampling() {
        return false;
    }

    /**
     * Says that an interval of the program's work is over, and how long it took. Between two intervals objects may move to another
     * memory; whatever the program times should not include this call.
     *
     * @param id counts up over all iterations
     * @param loadNanos time to bring the interval's data into objects
     * @param updateNanos time to work on them
     */
    public static void interval(long id, long loadNanos, long updateNanos) {
    }
}
