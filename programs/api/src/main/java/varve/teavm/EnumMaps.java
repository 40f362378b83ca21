package varve.teavm;

/**
 * Puts the values of an {@code EnumMap} where the constants are now: it has them by the constants' numbers, and in another version of the
 * program constants are added and moved. What is called by the code that {@link EnumMapTransformer} adds.
 */
final class EnumMaps {
    /** Another object in each run: a map that has it is in this run's order. */
    private static final Object RUN = new Object();

    private EnumMaps() {
    }

    static Object run() {
        return RUN;
    }

    /** The constants of an enumeration, in their order now: in an array of no class of their own, which becomes durable with the map. */
    static Object[] constants(Class<?> type) {
        Object[] constants = type.getEnumConstants();
        Object[] copy = new Object[constants.length];
        System.arraycopy(constants, 0, copy, 0, copy.length);
        return copy;
    }

    /** The values in the order of the constants now. */
    static Object[] values(Object[] values, boolean[] present, Object[] before, Object[] now) {
        if (isSame(before, now)) {
            return values;
        }
        Object[] moved = new Object[now.length];
        for (int i = 0; i < before.length; i++) {
            if (present[i]) {
                moved[place(before[i], now)] = values[i];
            }
        }
        return moved;
    }

    /** Which constants are keys, in their order now. */
    static boolean[] present(boolean[] present, Object[] before, Object[] now) {
        if (isSame(before, now)) {
            return present;
        }
        boolean[] moved = new boolean[now.length];
        for (int i = 0; i < before.length; i++) {
            if (present[i]) {
                moved[place(before[i], now)] = true;
            }
        }
        return moved;
    }

    /** Whether nothing has moved; a map that is in no order yet was made in this run. */
    private static boolean isSame(Object[] before, Object[] now) {
        if (before == null) {
            return true;
        }
        for (int i = 0; i < before.length; i++) {
            if (i >= now.length || before[i] != now[i]) {
                return false;
            }
        }
        return before.length == now.length;
    }

    private static int place(Object constant, Object[] now) {
        for (int i = 0; i < now.length; i++) {
            if (now[i] == constant) {
                return i;
            }
        }
        throw new IllegalStateException("a durable EnumMap has the key " + constant + ", which is no constant of the program any more");
    }

    /** Has an object settled, if it is such a map. */
    static void settle(Object map) {
    }
}
