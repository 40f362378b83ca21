package varve.kept;

import java.util.Collections;
import java.util.Comparator;
import java.util.Optional;

/** Objects that a virtual machine has once: {@code ==} must hold in each run. */
final class Sentinels {
    private static final Object NONE = new Mark();
    private static Object mark;

    private Sentinels() {
    }

    /** Nothing but itself. */
    private static final class Mark {
    }

    static void add(Suite suite) {
        suite.<Object[]>change("Boolean is the same", () -> new Object[] {Boolean.TRUE, Boolean.FALSE}, (all, s) ->
            s.say(all[0] == Boolean.TRUE, all[1] == Boolean.FALSE, all[0] == Boolean.valueOf(true)));
        suite.<Object[]>change("Small boxes are the same", () -> new Object[] {5, -128, 127, 'x', 7L, (short) 7, (byte) -9}, (all, s) ->
            s.say(all[0] == Integer.valueOf(5), all[1] == Integer.valueOf(-128), all[2] == Integer.valueOf(127), all[3] == Character.valueOf('x'),
                all[4].equals(Long.valueOf(7)), all[5] == Short.valueOf((short) 7), all[6] == Byte.valueOf((byte) -9)));
        suite.<Object[]>change("Optional.empty is the same", () -> new Object[] {Optional.empty()}, (all, s) -> s.say(all[0] == Optional.empty()));
        suite.<Object[]>change("Empty collections are the same", () -> new Object[] {Collections.emptyList(), Collections.emptyMap(), Collections.emptySet()}, (all, s) ->
            s.say(all[0] == Collections.emptyList(), all[1] == Collections.emptyMap(), all[2] == Collections.emptySet()));
        suite.<Object[]>change("The natural order is the same", () -> new Object[] {Comparator.naturalOrder()}, (all, s) ->
            s.say(all[0] == Comparator.<String>naturalOrder()));
        suite.<Object[]>change("A literal is the same", () -> new Object[] {"literal"}, (all, s) -> s.say(all[0] == "literal", all[0] == ((String) all[0]).intern()));
        suite.<Object[]>change("A sentinel of the program is the same", () -> new Object[] {NONE}, (all, s) -> s.say(all[0] == NONE, all[0] == new Mark()));
        suite.<Object[]>change("A field that is assigned again holds another object", () -> {
            mark = new Mark();
            return new Object[] {mark};
        }, (all, s) -> {
            s.say(all[0] == mark);
            mark = new Mark();
            s.say(all[0] == mark);
        });
        suite.<Object[]>change("Constants of the library are the same", () -> new Object[] {java.math.BigInteger.ONE, java.time.LocalTime.MIDNIGHT, java.time.ZoneOffset.UTC,
            String.CASE_INSENSITIVE_ORDER, java.util.Locale.ROOT}, (all, s) -> s.say(all[0] == java.math.BigInteger.ONE, all[1] == java.time.LocalTime.MIDNIGHT,
                all[2] == java.time.ZoneOffset.UTC, all[3] == String.CASE_INSENSITIVE_ORDER, all[4] == java.util.Locale.ROOT));
    }
}
