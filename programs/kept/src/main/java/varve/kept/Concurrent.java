package varve.kept;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** What {@code java.util.concurrent} has, used by one thread. Its blocking queues need more than one, and are refused when a program is built. */
final class Concurrent {
    private Concurrent() {
    }

    /** A class with monitors and fields that other classes update. */
    static final class Counter {
        long n;

        synchronized long increment() {
            return ++n;
        }
    }

    static void add(Suite suite) {
        suite.<ConcurrentHashMap<String, Object>>change("ConcurrentHashMap", ConcurrentHashMap::new, (map, s) -> {
            s.sorted(map).say(map.get("k0"), map.size());
            map.put("k" + s.n, s.n);
            map.putIfAbsent("once", s.n);
            map.merge("sum", s.n, (a, b) -> (Integer) a + (Integer) b);
            for (int i = 0; i < 100; i++) {
                map.put("t" + i, i);
            }
            for (int i = 0; i < 100; i++) {
                map.remove("t" + i);
            }
        });
        suite.<CopyOnWriteArrayList<Object>>change("CopyOnWriteArrayList", CopyOnWriteArrayList::new, (list, s) -> {
            s.say(list);
            list.add("a" + s.n);
            list.addIfAbsent("once");
            list.set(0, s.n);
        });
        suite.<AtomicInteger>change("AtomicInteger", () -> new AtomicInteger(5), (n, s) -> s.say(n, n.incrementAndGet(), n.compareAndSet(7, 70),
            n.getAndAdd(s.n), n.updateAndGet(x -> x + 1)));
        suite.<AtomicLong>change("AtomicLong", () -> new AtomicLong(1L << 40), (n, s) -> s.say(n, n.decrementAndGet(), n.accumulateAndGet(s.n, (a, b) -> a * 2 + b)));
        suite.<AtomicBoolean>change("AtomicBoolean", AtomicBoolean::new, (b, s) -> s.say(b, b.getAndSet(s.n % 2 == 0)));
        suite.<AtomicReference<List<String>>>change("AtomicReference", () -> new AtomicReference<>(List.of("a")), (r, s) -> {
            s.say(r);
            List<String> next = new ArrayList<>(r.get());
            next.add("s" + s.n);
            s.say(r.compareAndSet(r.get(), next), r.get() == next || r.get().equals(next));
        });
        suite.<Map<TimeUnit, Object>>change("TimeUnit", java.util.TreeMap::new, (map, s) -> {
            s.say(map);
            map.put(TimeUnit.values()[s.n], TimeUnit.values()[s.n].toMillis(5000000));
            s.say(map.containsKey(TimeUnit.NANOSECONDS), map.keySet().iterator().next() == TimeUnit.NANOSECONDS);
        });
        suite.<Counter>change("synchronized method", Counter::new, (counter, s) -> s.say(counter.n, counter.increment(), counter.increment()));
        suite.<Object[]>change("synchronized block", () -> new Object[] {new Object(), new int[] {1}}, (all, s) -> {
            synchronized (all[0]) {
                synchronized (all[1]) {
                    synchronized (all[0]) {
                        s.say(((int[]) all[1])[0]);
                        ((int[]) all[1])[0] += s.n;
                    }
                }
            }
            synchronized (Counter.class) {
                s.say("class");
            }
        });
    }
}
