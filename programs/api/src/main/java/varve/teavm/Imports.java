package varve.teavm;

import org.teavm.interop.Import;
import varve.Varve;

/** The runtime's side of {@link Varve}: what a module imports. */
final class Imports {
    private static final String MODULE = "varve";

    private Imports() {
    }

    static Object critical(Object fresh) {
        mark(fresh);
        return fresh;
    }

    @Import(module = MODULE, name = "critical")
    static native void mark(Object fresh);

    static boolean sampling() {
        return wanted() != 0;
    }

    @Import(module = MODULE, name = "sampling")
    private static native int wanted();

    @Import(module = MODULE, name = "interval")
    static native void interval(long id, long loadNanos, long updateNanos);
}
