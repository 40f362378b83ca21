package varve.kept;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;

/** Sets. */
final class Sets {
    private Sets() {
    }

    static void add(Suite suite) {
        suite.<HashSet<Object>>change("HashSet", () -> new HashSet<>(Arrays.asList("a", 1, null, 'c')), (set, s) -> {
            s.sorted(set).say(set.contains(null), set.contains("a"), set.contains('c'), set.size());
            set.add("s" + s.n);
            set.remove(s.n);
        });
        suite.<HashSet<List<Object>>>change("HashSet of lists", HashSet::new, (set, s) -> {
            s.sorted(set).say(set.contains(List.of("a", 0)), set.contains(List.of()));
            set.add(List.of("a", s.n));
            set.add(Arrays.asList("a", s.n));
            set.add(List.of());
        });
        suite.<LinkedHashSet<String>>change("LinkedHashSet", LinkedHashSet::new, (set, s) -> {
            s.say(set);
            set.add("z" + s.n);
            set.add("a");
            if (s.n == 1) {
                set.remove("a");
            }
        });
        suite.<TreeSet<Integer>>change("TreeSet", () -> new TreeSet<>(List.of(5, 3, 9)), (set, s) -> {
            s.say(set, set.first(), set.ceiling(4), set.descendingSet(), set.headSet(5));
            set.add(s.n * 2);
            set.pollLast();
            set.add(20 + s.n);
        });
        suite.<TreeSet<String>>change("TreeSet with a comparator", () -> new TreeSet<>(new ByLength()), (set, s) -> {
            s.say(set, set.comparator() instanceof ByLength);
            set.addAll(List.of("ccc", "a" + s.n, "bb" + s.n, "z"));
        });
        suite.<TreeSet<String>>change("TreeSet in reverse", () -> new TreeSet<>(Collections.reverseOrder()), (set, s) -> {
            s.say(set);
            set.addAll(List.of("a" + s.n, "z", "m" + s.n));
        });
        suite.<TreeSet<String>>change("TreeSet in natural order", () -> new TreeSet<>(java.util.Comparator.naturalOrder()), (set, s) -> {
            s.say(set);
            set.addAll(List.of("a" + s.n, "z", "m" + s.n));
        });
        suite.<Object[]>change("Views of a TreeSet", () -> {
            TreeSet<Integer> set = new TreeSet<>(List.of(1, 2, 3, 4, 5, 6, 7));
            return new Object[] {set, set.subSet(2, true, 6, false), set.descendingSet(), set.tailSet(5)};
        }, (views, s) -> {
            @SuppressWarnings("unchecked")
            NavigableSet<Integer> part = (NavigableSet<Integer>) views[1];
            s.say(views[0], part, views[2], views[3]);
            part.remove(2 + s.n);
        });
        suite.<Set<Object>>change("Set of an IdentityHashMap", () -> Collections.newSetFromMap(new IdentityHashMap<>()), (set, s) -> {
            s.sorted(set).say(set.contains(Maps.Day.MONDAY), set.size());
            set.add(Maps.Day.MONDAY);
            set.add(new StringBuilder("b" + s.n));
            set.add(new StringBuilder("b" + s.n));
        });
        suite.<BitSet>change("BitSet", BitSet::new, (set, s) -> {
            s.say(set, set.cardinality(), set.length(), set.nextClearBit(0));
            set.set(s.n * 3);
            set.set(100 + s.n, 104);
            set.flip(2);
            set.clear(101);
        });
        suite.<Set<Collection<String>>>change("Set of sets", HashSet::new, (set, s) -> {
            s.say(set.size(), set.contains(Set.of("a", "b")), set.contains(new HashSet<>(List.of("b", "a"))));
            set.add(new HashSet<>(List.of("a", "b")));
            set.add(new TreeSet<>(List.of("x" + s.n)));
        });
    }
}
