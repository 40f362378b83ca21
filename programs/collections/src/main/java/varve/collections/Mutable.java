package varve.collections;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import varve.common.Checksum;
import varve.common.Rng;

/** Maps, sets, lists and queues of {@code java.util} under insertions, look-ups, removals and walks. */
final class Mutable {
    private enum Kind {
        SMALL, MIDDLE, LARGE
    }

    private static final int CACHE_ENTRIES = 1000;

    private Mutable() {
    }

    static void run(int size) {
        hashMap(size, new Rng(1));
        treeMap(size, new Rng(2));
        cache(size, new Rng(3));
        queues(size, new Rng(4));
        lists(size, new Rng(5));
        sets(size, new Rng(6));
    }

    private static void hashMap(int size, Rng rng) {
        Map<Integer, Long> map = new HashMap<>();
        Checksum checksum = new Checksum();
        for (int i = 0; i < 4 * size; i++) {
            int key = rng.below(size);
            switch (rng.below(4)) {
                case 0 -> map.put(key, (long) i);
                case 1 -> map.merge(key, 1L, Long::sum);
                case 2 -> map.remove(key);
                default -> checksum.add(map.getOrDefault(key, -1L));
            }
        }
        long sum = 0;
        for (Map.Entry<Integer, Long> entry : map.entrySet()) {
            sum += entry.getKey() * entry.getValue();
        }
        System.out.println("hash map: " + map.size() + " entries, sum " + sum + ", checksum " + checksum);
    }

    private static void treeMap(int size, Rng rng) {
        TreeMap<String, Integer> map = new TreeMap<>();
        for (int i = 0; i < size; i++) {
            map.put("key" + rng.below(size), i);
        }
        Checksum checksum = new Checksum();
        for (Map.Entry<String, Integer> entry : map.subMap("key2", "key5").entrySet()) {
            checksum.add(entry.getKey()).add(entry.getValue());
        }
        for (int i = 0; i < size / 2; i++) {
            Map.Entry<String, Integer> above = map.ceilingEntry("key" + rng.below(size));
            if (above != null) {
                checksum.add(above.getValue());
                map.remove(above.getKey());
            }
        }
        System.out.println("tree map: " + map.size() + " entries from " + map.firstKey() + " to " + map.lastKey() + ", checksum "
                + checksum);
    }

    /** Entries in the order of their last use, the oldest leaves. */
    private static void cache(int size, Rng rng) {
        Map<Integer, String> cache = new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, String> eldest) {
                return size() > CACHE_ENTRIES;
            }
        };
        int hits = 0;
        for (int i = 0; i < 2 * size; i++) {
            int key = Math.min(rng.below(4 * CACHE_ENTRIES), rng.below(4 * CACHE_ENTRIES));
            if (cache.get(key) != null) {
                hits++;
            } else {
                cache.put(key, "value " + key);
            }
        }
        System.out.println("cache: " + hits + " hits, oldest " + cache.values().iterator().next());
    }

    private record Event(long time, int number) implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            return time != other.time ? Long.compare(time, other.time) : Integer.compare(number, other.number);
        }
    }

    private static void queues(int size, Rng rng) {
        PriorityQueue<Event> events = new PriorityQueue<>();
        Deque<Event> waiting = new ArrayDeque<>();
        Checksum checksum = new Checksum();
        for (int i = 0; i < 1000; i++) {
            events.add(new Event(rng.below(1000), i));
        }
        for (int i = 0; i < 2 * size; i++) {
            Event event = events.poll();
            waiting.addLast(event);
            if (waiting.size() > 100) {
                checksum.add(waiting.removeFirst().number);
            }
            events.add(new Event(event.time + 1 + rng.below(1000), event.number));
        }
        System.out.println("queues: now " + events.peek().time + ", checksum " + checksum);
    }

    private static void lists(int size, Rng rng) {
        List<Integer> list = new ArrayList<>();
        for (int i = 0; i < 2 * size; i++) {
            list.add(rng.below(size));
        }
        Collections.sort(list);
        LinkedList<Integer> linked = new LinkedList<>(list);
        int last = -1;
        for (Iterator<Integer> it = linked.iterator(); it.hasNext();) {
            int value = it.next();
            if (value == last) {
                it.remove();
            }
            last = value;
        }
        Collections.reverse(linked);
        Checksum checksum = new Checksum();
        for (int i = 0; i < 1000; i++) {
            checksum.add(Collections.binarySearch(list, rng.below(size)) >= 0 ? 1 : 0);
        }
        System.out.println("lists: " + linked.size() + " different, first " + linked.getFirst() + ", checksum " + checksum);
    }

    private static void sets(int size, Rng rng) {
        Set<List<Integer>> pairs = new HashSet<>();
        BitSet bits = new BitSet();
        Map<Kind, Integer> kinds = new EnumMap<>(Kind.class);
        for (int i = 0; i < size; i++) {
            int x = rng.below(1000);
            pairs.add(List.of(x, rng.below(100)));
            bits.set(x * 7);
            kinds.merge(x < 10 ? Kind.SMALL : x < 500 ? Kind.MIDDLE : Kind.LARGE, 1, Integer::sum);
        }
        System.out.println("sets: " + pairs.size() + " pairs, " + bits.cardinality() + " bits, " + kinds);
    }
}
