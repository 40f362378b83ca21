package varve.teavm;

/**
 * Runs the initializers of classes of which the region has objects, before the program sees the first of them. Who makes an object has its class
 * initialized, so that the compiler leaves out the question in methods of objects; objects of a region were made in another run.
 */
final class Initializers {
    private static boolean done;

    private Initializers() {
    }

    static void run() {
        if (!done) {
            done = true;
            all();
        }
    }

    /** {@link InitializersMethod} makes its code, once it is known which classes there are. */
    private static native void all();
}
