package varve;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What a program tells the runtime that places its objects in fast and slow memory, and keeps those that survive. On an ordinary virtual
 * machine marks do nothing, intervals are heard by {@code varve run --live --plan pima} alone, and roots live as long as the program.
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
        return Reports.wanted();
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
        if (Reports.wanted()) {
            Reports.add(id, loadNanos + updateNanos);
        }
    }

    /** Roots of programs that run without a region file. */
    private static Map<String, Object> roots;

    /** Whether a region file is open: whether roots, and all that they reach, survive the program. */
    public static boolean durable() {
        return false;
    }

    /**
     * The durable root of a name. All objects that can be reached from it survive the end of the program, however it ends, from the
     * store on that made them reachable. Without a region file the root lives as long as the program.
     *
     * @param make gives the root when there is none of that name
     */
    @SuppressWarnings("unchecked")
    public static <T> T root(String name, Supplier<? extends T> make) {
        Object found = find(name);
        if (found == null) {
            publish(name, make.get());
            found = find(name);
        }
        return (T) found;
    }

    /**
     * Has a name stand for another object.
     *
     * @param root null: the name stands for nothing any more
     */
    public static void setRoot(String name, Object root) {
        publish(name, root);
    }

    /**
     * Does some work whose stores into durable objects survive together or not at all. If the work throws, these stores are rolled back, and
     * what it threw is thrown on; objects that are not durable stay as they are. A region within a region is a part of it: if it throws, its own
     * stores are rolled back, and if the region around it goes on, that one's survive or not as a whole.
     */
    public static void region(Runnable work) {
        begin();
        boolean done = false;
        try {
            work.run();
            done = true;
        } finally {
            if (done) {
                end();
            } else {
                rollback();
            }
        }
    }

    /**
     * Begins a region, within the one that is open if there is one, which {@link #end} or {@link #rollback} ends. If neither is
     * called until the program ends, its stores are rolled back.
     */
    public static void begin() {
    }

    /** Ends the region that was begun last: what it stored survives from now on, if no other region is around it. */
    public static void end() {
    }

    /** Rolls back what the region that was begun last has stored into durable objects, and ends it. Regions around it go on. */
    public static void rollback() {
    }

    /**
     * The root of a name that must be of a class, where {@link #root(String, Supplier)} leaves that to the place where it is used.
     *
     * @throws ClassCastException if the root is of another class, with both names
     */
    public static <T> T root(String name, Class<T> type, Supplier<? extends T> make) {
        Object found = root(name, make);
        if (!type.isInstance(found)) {
            throw new ClassCastException("the durable root \"" + name + "\" is a " + found.getClass().getName() + ", not a "
                    + type.getName());
        }
        return type.cast(found);
    }

    private static Object find(String name) {
        if (durable()) {
            spell(name);
            return found();
        }
        return roots == null ? null : roots.get(name);
    }

    private static void spell(String name) {
        for (int i = 0; i < name.length(); i++) {
            unit(name.charAt(i));
        }
    }

    /** Adds a unit to the name that the next call is about. */
    private static void unit(int unit) {
    }

    /** What the name that was spelled stands for. */
    private static Object found() {
        return null;
    }

    /** Has the name that was spelled stand for an object. */
    private static void keep(Object root) {
    }

    private static void publish(String name, Object root) {
        if (durable()) {
            spell(name);
            keep(root);
            return;
        }
        if (roots == null) {
            roots = new HashMap<>();
        }
        if (root == null) {
            roots.remove(name);
        } else {
            roots.put(name, root);
        }
    }
}
