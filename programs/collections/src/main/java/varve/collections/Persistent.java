package varve.collections;

import java.util.ArrayList;
import java.util.List;
import org.pcollections.HashTreePMap;
import org.pcollections.HashTreePSet;
import org.pcollections.PMap;
import org.pcollections.PSet;
import org.pcollections.PSortedMap;
import org.pcollections.PStack;
import org.pcollections.PVector;
import org.pcollections.TreePMap;
import org.pcollections.TreePVector;
import org.pcollections.ConsPStack;
import varve.common.Checksum;
import varve.common.Rng;

/** Collections that never change: each change is a new version that shares most of the old one. */
final class Persistent {
    private static final int KEPT_VERSIONS = 16;

    private Persistent() {
    }

    static void run(int size) {
        map(size, new Rng(11));
        vector(size, new Rng(12));
        sorted(size, new Rng(13));
        stack(size);
        set(size, new Rng(14));
    }

    private static void map(int size, Rng rng) {
        PMap<Integer, String> map = HashTreePMap.empty();
        List<PMap<Integer, String>> versions = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            int key = rng.below(size / 2);
            map = i % 3 == 2 ? map.minus(key) : map.plus(key, "v" + i);
            if (i % (size / KEPT_VERSIONS + 1) == 0) {
                versions.add(map);
            }
        }
        Checksum checksum = new Checksum();
        for (PMap<Integer, String> version : versions) {
            checksum.add(version.size()).add(version.getOrDefault(1, "none"));
        }
        System.out.println("map: " + map.size() + " entries, " + versions.size() + " versions, checksum " + checksum);
    }

    private static void vector(int size, Rng rng) {
        PVector<Integer> vector = TreePVector.empty();
        for (int i = 0; i < size / 4; i++) {
            vector = vector.plus(rng.below(1000));
        }
        PVector<Integer> old = vector;
        for (int i = 0; i < size / 4; i++) {
            vector = vector.with(rng.below(vector.size()), i);
        }
        for (int i = 0; i < 1000 && vector.size() > 1; i++) {
            vector = vector.minus(rng.below(vector.size()));
        }
        Checksum checksum = new Checksum();
        old.forEach(checksum::add);
        vector.forEach(checksum::add);
        System.out.println("vector: " + old.size() + " and " + vector.size() + " elements, checksum " + checksum);
    }

    private static void sorted(int size, Rng rng) {
        PSortedMap<String, Integer> map = TreePMap.empty();
        for (int i = 0; i < size / 4; i++) {
            map = map.plus("k" + rng.below(size), i);
        }
        Checksum checksum = new Checksum();
        map.subMap("k1", "k2").forEach((key, value) -> checksum.add(key).add(value));
        System.out.println("sorted map: " + map.size() + " entries, last " + map.lastKey() + ", checksum " + checksum);
    }

    private static void stack(int size) {
        PStack<Integer> stack = ConsPStack.empty();
        for (int i = 0; i < size; i++) {
            stack = i % 5 == 4 ? stack.subList(1) : stack.plus(i);
        }
        long sum = 0;
        for (int value : stack) {
            sum += value;
        }
        System.out.println("stack: " + stack.size() + " elements, sum " + sum);
    }

    private static void set(int size, Rng rng) {
        PSet<String> set = HashTreePSet.empty();
        for (int i = 0; i < size / 2; i++) {
            set = set.plus("e" + rng.below(size / 4 + 1));
        }
        PSet<String> less = set.minusAll(List.of("e1", "e2", "e3"));
        System.out.println("set: " + set.size() + " and " + less.size() + " elements, equal " + set.equals(less.plus("e1").plus("e2").plus("e3")));
    }
}
