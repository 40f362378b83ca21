package varve.kept;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Currency;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;

/** Small values of the library. */
final class Values {
    private Values() {
    }

    static void add(Suite suite) {
        suite.<Optional<String>>replace("Optional", Optional::empty, (o, s) -> {
            s.say(o.isPresent(), o.orElse("none"), o.equals(Optional.empty()), o.hashCode());
            return s.n == 1 ? Optional.empty() : Optional.of("v" + s.n);
        });
        suite.<Object[]>change("OptionalInt, OptionalLong and OptionalDouble", () -> new Object[] {OptionalInt.of(5), OptionalLong.of(1L << 40), OptionalDouble.of(2.5),
            OptionalInt.empty(), OptionalLong.empty(), OptionalDouble.empty()}, (all, s) -> {
                s.say(((OptionalInt) all[0]).getAsInt(), ((OptionalLong) all[1]).getAsLong(), ((OptionalDouble) all[2]).getAsDouble());
                s.say(((OptionalInt) all[3]).isPresent(), ((OptionalLong) all[4]).isPresent(), ((OptionalDouble) all[5]).isPresent());
                for (int i = 0; i < 3; i++) {
                    s.say(all[i].equals(all[i + 3]));
                }
                all[3] = OptionalInt.of(s.n);
            });
        suite.<Map<UUID, String>>change("UUID", HashMap::new, (map, s) -> {
            UUID first = UUID.fromString("123e4567-e89b-12d3-a456-426614174000");
            s.sorted(map).say(map.get(first));
            map.put(first, "first" + s.n);
            map.put(UUID.fromString("0000000" + s.n + "-0000-0000-8000-00000000000" + s.n), "v" + s.n);
        });
        suite.<Object[]>change("Currency", () -> new Object[] {Currency.getInstance("EUR")}, (all, s) -> s.say(all).say(all[0].equals(Currency.getInstance("EUR")),
            ((Currency) all[0]).getDefaultFractionDigits()));
        suite.<List<Object>>change("Objects.hash", ArrayList::new, (list, s) -> {
            s.say(list, Objects.hash(list.toArray()), list.hashCode());
            list.add(Objects.requireNonNullElse(s.n == 1 ? null : "v" + s.n, "none"));
        });
        suite.<WeakReference<List<String>>>change("WeakReference", () -> new WeakReference<>(new ArrayList<>(List.of("a"))), (r, s) -> {
            s.say(r.get() != null);
            r.clear();
        });
        suite.<Object>replace("Object", Object::new, (o, s) -> {
            s.say(o.getClass().getName(), o.equals(o));
            return o;
        });
        suite.<Map<Object, String>>change("Objects as keys", HashMap::new, (map, s) -> {
            // Hash codes of objects are kept with them.
            int found = 0;
            for (Object each : new ArrayList<>(map.keySet())) {
                if (map.get(each) != null) {
                    found++;
                }
            }
            s.say(map.size(), found);
            for (int i = 0; i < 20; i++) {
                map.put(new Object(), "v" + i);
            }
        });
    }
}
