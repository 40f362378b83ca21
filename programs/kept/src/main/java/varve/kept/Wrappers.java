package varve.kept;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Collections around other ones, and those that cannot be changed. */
final class Wrappers {
    private Wrappers() {
    }

    private static void refuses(Step s, Runnable change) {
        try {
            change.run();
            s.say("changed");
        } catch (UnsupportedOperationException e) {
            s.say("unmodifiable");
        } catch (ClassCastException e) {
            s.say("checked");
        }
    }

    static void add(Suite suite) {
        suite.<List<String>>change("synchronizedList", () -> Collections.synchronizedList(new ArrayList<>()), (list, s) -> {
            s.say(list);
            list.add("a" + s.n);
            synchronized (list) {
                s.say(list.size());
            }
        });
        suite.<Map<String, Integer>>change("synchronizedMap", () -> Collections.synchronizedMap(new TreeMap<>()), (map, s) -> {
            s.say(map, map.get("k0"));
            map.put("k" + s.n, s.n);
            map.merge("count", 1, (a, b) -> a + b);
        });
        suite.<Set<String>>change("synchronizedSet", () -> Collections.synchronizedSet(new HashSet<>()), (set, s) -> {
            s.sorted(set);
            set.add("k" + s.n);
        });
        suite.<Collection<String>>change("synchronizedCollection", () -> Collections.synchronizedCollection(new ArrayList<>()), (all, s) -> {
            s.sorted(all);
            all.add("k" + s.n);
        });
        suite.<Object[]>change("unmodifiable collections", () -> {
            List<String> list = new ArrayList<>(List.of("a"));
            Map<String, Integer> map = new HashMap<>(Map.of("a", 1));
            Set<String> set = new HashSet<>(Set.of("a"));
            return new Object[] {list, map, set, Collections.unmodifiableList(list), Collections.unmodifiableMap(map), Collections.unmodifiableSet(set),
                Collections.unmodifiableCollection(list)};
        }, (all, s) -> {
            @SuppressWarnings("unchecked")
            Collection<String> list = (Collection<String>) all[0];
            @SuppressWarnings("unchecked")
            Map<String, Integer> map = (Map<String, Integer>) all[1];
            @SuppressWarnings("unchecked")
            Collection<String> set = (Collection<String>) all[2];
            s.say(all[3]).sorted((Map<?, ?>) all[4]).sorted((Collection<?>) all[5]).say(all[6]);
            refuses(s, () -> ((List<?>) all[3]).clear());
            refuses(s, () -> ((Map<?, ?>) all[4]).clear());
            list.add("b" + s.n);
            map.put("b" + s.n, s.n);
            set.add("b" + s.n);
        });
        suite.<Object[]>change("checked collections", () -> new Object[] {Collections.checkedList(new ArrayList<>(), String.class),
            Collections.checkedMap(new TreeMap<>(), String.class, Integer.class), Collections.checkedSet(new HashSet<>(), String.class)}, (all, s) -> {
                @SuppressWarnings("unchecked")
                List<Object> list = (List<Object>) all[0];
                @SuppressWarnings("unchecked")
                Map<Object, Object> map = (Map<Object, Object>) all[1];
                @SuppressWarnings("unchecked")
                Set<Object> set = (Set<Object>) all[2];
                s.sorted(list).sorted(map).sorted(set);
                list.add("a" + s.n);
                map.put("k" + s.n, s.n);
                set.add("s" + s.n);
                refuses(s, () -> list.add(5));
                refuses(s, () -> map.put("k", "v"));
                refuses(s, () -> set.add(7));
            });
        suite.<Object[]>change("empty collections", () -> new Object[] {Collections.emptyList(), Collections.emptyMap(), Collections.emptySet(),
            Collections.EMPTY_LIST, Collections.emptyIterator(), List.of(), Set.of(), Map.of(), new ArrayList<>(), new HashMap<>()}, (all, s) -> {
                s.say(all[0], all[1], all[2], all[3], all[5], all[6], all[7], all[8], all[9]);
                s.say(all[0].equals(List.of()), all[5].equals(all[8]), all[1].equals(all[9]), all[2].equals(all[6]));
                refuses(s, () -> add(all[0]));
                refuses(s, () -> add(all[5]));
                add(all[8]);
            });
        suite.<Object[]>change("singletons", () -> new Object[] {Collections.singletonList("l"), Collections.singleton("s"),
            Collections.singletonMap("k", "v"), Collections.nCopies(3, "n")}, (all, s) -> {
                s.say(all).say(((List<?>) all[3]).size(), ((Collection<?>) all[1]).contains("s"), ((Map<?, ?>) all[2]).get("k"));
                refuses(s, () -> add(all[0]));
                refuses(s, () -> add(all[3]));
            });
        suite.<List<Object>>replace("List.of and copyOf", () -> List.of(), (list, s) -> {
            s.say(list, list.size(), list.contains("v0"), list.equals(new ArrayList<>(list)));
            refuses(s, () -> list.add("no"));
            List<Object> more = new ArrayList<>(list);
            more.add("v" + s.n);
            more.add(s.n);
            return s.n % 2 == 0 ? List.copyOf(more) : List.of(more.toArray());
        });
        suite.<Set<Object>>replace("Set.of and copyOf", () -> Set.of("a", 1, 'c'), (set, s) -> {
            s.sorted(set).say(set.contains("a"), set.contains(s.n), set.equals(new HashSet<>(set)));
            Set<Object> more = new HashSet<>(set);
            more.add("v" + s.n);
            return Set.copyOf(more);
        });
        suite.<Map<Object, Object>>replace("Map.of and copyOf", () -> Map.of("a", 1, "b", 2, 3, "c"), (map, s) -> {
            s.sorted(map).say(map.get("a"), map.get(3), map.containsKey("v0"), map.equals(new HashMap<>(map)));
            Map<Object, Object> more = new HashMap<>(map);
            more.put("v" + s.n, s.n);
            return s.n % 2 == 0 ? Map.copyOf(more) : Map.ofEntries(more.entrySet().toArray(new Map.Entry[0]));
        });
        suite.<Object[]>change("Enumerations and reversed comparators", () -> new Object[] {Collections.enumeration(new ArrayList<>(List.of(1, 2, 3, 4, 5))),
            Collections.reverseOrder(), new TreeSet<>(Collections.reverseOrder(new ByLength()))}, (all, s) -> {
                s.say(((java.util.Enumeration<?>) all[0]).nextElement());
                @SuppressWarnings("unchecked")
                TreeSet<String> set = (TreeSet<String>) all[2];
                set.addAll(List.of("x", "yy" + s.n, "zzz"));
                s.say(set);
            });
    }

    @SuppressWarnings("unchecked")
    private static void add(Object list) {
        ((Collection<Object>) list).add("x");
    }
}
