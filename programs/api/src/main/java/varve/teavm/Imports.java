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

    static boolean durable() {
        return open() != 0;
    }

    @Import(module = MODULE, name = "durable")
    private static native int open();

    static boolean lives(int number) {
        return objects(number) != 0;
    }

    /** Whether the region may have objects of a class, by its number among those of the module's section. */
    @Import(module = MODULE, name = "class_lives")
    private static native int objects(int number);

    @Import(module = MODULE, name = "root_unit")
    static native void unit(int unit);

    @Import(module = MODULE, name = "root")
    static native Object found();

    @Import(module = MODULE, name = "set_root")
    static native void keep(Object root);

    @Import(module = MODULE, name = "region_begin")
    static native void begin();

    @Import(module = MODULE, name = "region_end")
    static native void end();

    @Import(module = MODULE, name = "region_rollback")
    static native void rollback();

    @Import(module = MODULE, name = "interval")
    static native void interval(long id, long loadNanos, long updateNanos);
}
