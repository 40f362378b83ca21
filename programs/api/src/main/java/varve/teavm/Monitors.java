package varve.teavm;

/**
 * Monitors of a program, which runs on one thread: those that it has entered, the last one at the end. They are beside the objects and not in
 * them, since an object may be durable and a monitor is not. What is called by the code that {@link MonitorTransformer} adds.
 */
final class Monitors {
    private static Object[] entered;
    private static int count;

    private Monitors() {
    }

    static void enter(Object object) {
        if (object == null) {
            throw new NullPointerException();
        }
        if (entered == null) {
            entered = new Object[8];
        } else if (count == entered.length) {
            Object[] more = new Object[2 * count];
            System.arraycopy(entered, 0, more, 0, count);
            entered = more;
        }
        entered[count++] = object;
    }

    static void exit(Object object) {
        int last = last(object);
        if (last < 0) {
            throw new IllegalMonitorStateException();
        }
        count--;
        for (int i = last; i < count; i++) {
            entered[i] = entered[i + 1];
        }
        entered[count] = null;
    }

    static boolean holds(Object object) {
        return last(object) >= 0;
    }

    /** No thread waits: there is only one. */
    static void notified(Object object) {
        if (!holds(object)) {
            throw new IllegalMonitorStateException();
        }
    }

    private static int last(Object object) {
        for (int i = count - 1; i >= 0; i--) {
            if (entered[i] == object) {
                return i;
            }
        }
        return -1;
    }
}
