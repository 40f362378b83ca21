package varve.kept;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Properties;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.WeakHashMap;

/** Maps. */
final class Maps {
    private Maps() {
    }

    /** The least recently used entry goes when there are more than three. */
    static final class Lru<K, V> extends LinkedHashMap<K, V> {
        int removed;

        Lru() {
            super(16, 0.75f, true);
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
            if (size() > 3) {
                removed++;
                return true;
            }
            return false;
        }
    }

    /** The largest first. */
    static final class Falling implements Comparator<Integer> {
        @Override
        public int compare(Integer a, Integer b) {
            return b.compareTo(a);
        }
    }

    enum Day {
        MONDAY, TUESDAY, WEDNESDAY
    }

    static void add(Suite suite) {
        suite.<HashMap<Object, Object>>change("HashMap", HashMap::new, (map, s) -> {
            s.sorted(map).say(map.size(), map.get(null), map.containsKey("k0"), map.containsValue(null));
            map.put(null, "null" + s.n);
            map.put("k" + s.n, null);
            map.put(s.n, s.n * 2L);
            map.merge("count", 1, (a, b) -> (Integer) a + (Integer) b);
            map.computeIfAbsent("once", k -> "made in " + s.n);
            map.remove("k1");
        });
        suite.<HashMap<String, List<Integer>>>change("HashMap grows", HashMap::new, (map, s) -> {
            long sum = 0;
            for (Map.Entry<String, List<Integer>> each : map.entrySet()) {
                sum += each.getKey().length() * 31L + each.getValue().size();
            }
            s.say(map.size(), sum);
            for (int i = 0; i < 500; i++) {
                map.computeIfAbsent("key" + i * (s.n + 1), k -> new ArrayList<>()).add(i);
            }
            Iterator<String> at = map.keySet().iterator();
            while (at.hasNext()) {
                if (at.next().endsWith("7")) {
                    at.remove();
                }
            }
        });
        suite.<LinkedHashMap<String, Integer>>change("LinkedHashMap", LinkedHashMap::new, (map, s) -> {
            s.say(map);
            map.put("z" + s.n, s.n);
            map.put("a" + s.n, s.n);
            map.remove("z0");
            map.put("z1", 100);
        });
        suite.<Lru<String, Integer>>change("LinkedHashMap in order of access", Lru::new, (map, s) -> {
            s.say(map, map.removed);
            map.put("k" + s.n, s.n);
            map.put("j" + s.n, s.n);
            s.say(map.get("k0"));
        });
        suite.<TreeMap<String, Integer>>change("TreeMap", TreeMap::new, (map, s) -> {
            s.say(map, map.isEmpty() ? "" : map.firstKey(), map.floorKey("k3"), map.descendingMap());
            for (int i = 0; i < 4; i++) {
                map.put("k" + (i * 3 + s.n) % 7, i);
            }
            map.pollFirstEntry();
        });
        suite.<TreeMap<Integer, String>>change("TreeMap with a comparator", () -> new TreeMap<>(new Falling()), (map, s) -> {
            s.say(map, map.comparator() instanceof Falling);
            for (int i = 0; i < 3; i++) {
                map.put(i * 5 + s.n, "v" + i);
            }
            s.say(map.headMap(5), map.tailMap(5, false), map.higherKey(6));
        });
        suite.<Object[]>change("Views of a TreeMap", () -> {
            TreeMap<Integer, String> map = new TreeMap<>();
            for (int i = 0; i < 10; i++) {
                map.put(i, "v" + i);
            }
            return new Object[] {map, map.subMap(2, true, 6, true), map.descendingMap(), map.keySet()};
        }, (views, s) -> {
            @SuppressWarnings("unchecked")
            NavigableMap<Integer, String> part = (NavigableMap<Integer, String>) views[1];
            s.say(part, part.firstKey(), ((SortedMap<?, ?>) views[2]).firstKey(), views[3]);
            part.remove(3 + s.n);
            part.put(2, "new" + s.n);
        });
        suite.<Object[]>change("Views of a HashMap", () -> {
            Map<String, Integer> map = new HashMap<>(Map.of("a", 1, "b", 2, "c", 3, "d", 4));
            return new Object[] {map, map.keySet(), map.values(), map.entrySet()};
        }, (views, s) -> {
            for (int i = 1; i < 4; i++) {
                s.sorted((Collection<?>) views[i]);
            }
            ((Collection<?>) views[1]).remove(String.valueOf((char) ('a' + s.n)));
            @SuppressWarnings("unchecked")
            Map<String, Integer> map = (Map<String, Integer>) views[0];
            map.put("n" + s.n, s.n);
        });
        suite.<Map<Object, String>>change("IdentityHashMap", () -> {
            Map<Object, String> map = new IdentityHashMap<>();
            map.put(Day.MONDAY, "monday");
            map.put(null, "null");
            return map;
        }, (map, s) -> {
            s.sorted(map).say(map.get(Day.MONDAY), map.get(null), map.size());
            map.put(new StringBuilder("key").append(s.n), "v" + s.n);
            Object found = null;
            for (Object key : map.keySet()) {
                if (String.valueOf(key).equals("key1")) {
                    found = key;
                }
            }
            s.say(map.get(found), map.get(new StringBuilder("key1")));
            map.put(found, "again" + s.n);
        });
        suite.<EnumMap<Day, Object>>change("EnumMap", () -> new EnumMap<>(Day.class), (map, s) -> {
            s.say(map, map.containsKey(Day.TUESDAY));
            map.put(Day.values()[s.n % 3], s.n == 1 ? null : "v" + s.n);
            if (s.n == 2) {
                map.remove(Day.MONDAY);
            }
        });
        suite.<Hashtable<String, Integer>>change("Hashtable", Hashtable::new, (table, s) -> {
            s.sorted(table).say(table.size(), table.contains(0), table.get("k0"));
            table.put("k" + s.n, s.n);
            table.merge("count", 1, (a, b) -> a + b);
        });
        suite.<Properties>change("Properties", () -> {
            Properties above = new Properties();
            above.setProperty("above", "default");
            return new Properties(above);
        }, (properties, s) -> {
            s.sorted(properties).say(properties.getProperty("above"), properties.getProperty("none", "other"));
            properties.setProperty("k" + s.n, "v" + s.n);
        });
        suite.<Map<Object, Object>>change("WeakHashMap", WeakHashMap::new, (map, s) -> {
            s.sorted(map);
            map.put(Day.values()[s.n % 3], s.n);
        });
        suite.<Map<String, Map<Integer, List<Map<Character, String>>>>>change("Maps in lists in maps", TreeMap::new, (map, s) -> {
            s.say(map);
            for (int i = 0; i <= s.n; i++) {
                List<Map<Character, String>> list = map.computeIfAbsent("m" + i, k -> new TreeMap<>()).computeIfAbsent(s.n, k -> new ArrayList<>());
                Map<Character, String> inner = new TreeMap<>();
                inner.put((char) ('a' + i), "s" + s.n);
                list.add(inner);
            }
        });
        suite.<Object[]>change("Entries", () -> {
            Map<String, Integer> map = new TreeMap<>(Map.of("a", 1, "b", 2));
            return new Object[] {map, map.entrySet().iterator().next(), Map.entry("k", 5), new java.util.AbstractMap.SimpleEntry<>("s", 6)};
        }, (all, s) -> {
            s.say(all[0], all[1], all[2], all[3], all[2].equals(Map.entry("k", 5)), all[2].hashCode() == Map.entry("k", 5).hashCode());
            @SuppressWarnings("unchecked")
            Map.Entry<String, Integer> simple = (Map.Entry<String, Integer>) all[3];
            simple.setValue(s.n);
        });
    }
}
