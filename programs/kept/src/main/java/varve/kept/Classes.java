package varve.kept;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Objects that stand for classes. */
final class Classes {
    private Classes() {
    }

    record Typed(Class<?> type, String name) {
    }

    static void add(Suite suite) {
        suite.<Object[]>change("Class objects", () -> new Object[] {String.class, int.class, int[].class, Typed[][].class, Runnable.class, Maps.Day.class, void.class},
            (all, s) -> {
                for (Object each : all) {
                    s.say(((Class<?>) each).getName());
                }
                s.say(all[0] == String.class, all[1] == int.class, all[2] == int[].class, all[3] == Typed[][].class, all[4] == Runnable.class,
                    all[5] == Maps.Day.class, all[6] == void.class, ((Class<?>) all[0]).isInstance("x"), ((Class<?>) all[4]).isInterface());
            });
        suite.<HashMap<Class<?>, Object>>change("HashMap by class", HashMap::new, (map, s) -> {
            Class<?>[] keys = {String.class, Long.class, Typed.class, int[].class};
            for (Class<?> key : keys) {
                s.say(map.get(key));
            }
            map.put(keys[s.n % 4], "v" + s.n);
            map.put(String.class, "text" + s.n);
        });
        suite.<HashSet<Class<?>>>change("HashSet of classes", HashSet::new, (set, s) -> {
            s.say(set.size(), set.contains(String.class), set.contains(Integer.class), set.contains(Typed.class));
            set.add(String.class);
            set.add(s.n == 0 ? Integer.class : Typed.class);
        });
        suite.<Map<Typed, Integer>>change("Records of classes as keys", HashMap::new, (map, s) -> {
            s.say(map.size(), map.get(new Typed(String.class, "a")), map.get(new Typed(Integer.class, "a")));
            map.merge(new Typed(String.class, "a"), 1, (a, b) -> a + b);
            map.merge(new Typed(Integer.class, "a"), 10, (a, b) -> a + b);
        });
        suite.<Map<Class<?>, List<Class<?>>>>change("LinkedHashMap by class", LinkedHashMap::new, (map, s) -> {
            s.say(map);
            map.computeIfAbsent(String.class, k -> new ArrayList<>()).add(Integer.class);
            map.computeIfAbsent(Typed.class, k -> new ArrayList<>()).add(String.class);
        });
        suite.<Set<Object>>change("Constants in a HashSet", HashSet::new, (set, s) -> {
            s.sorted(set).say(set.contains(Maps.Day.TUESDAY), set.contains(Language.Operation.ADD));
            set.add(Maps.Day.values()[s.n % 3]);
            set.add(Language.Operation.ADD);
        });
    }
}
