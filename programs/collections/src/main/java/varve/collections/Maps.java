package varve.collections;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import varve.common.Checksum;
import varve.common.Rng;

/** Hash maps alone: entries that come and go, words that are counted, values in groups. */
final class Maps {
    private static final int GROUPS = 1000;

    private Maps() {
    }

    static void run(int size) {
        churn(size, new Rng(11));
        count(size, new Rng(12));
        group(size, new Rng(13));
    }

    /** A map that stays as large while all of its entries are exchanged, several times. */
    private static void churn(int size, Rng rng) {
        Map<Integer, long[]> map = new HashMap<>();
        long hits = 0;
        for (int i = 0; i < 10 * size; i++) {
            map.put(i, new long[] { i });
            if (i >= size) {
                map.remove(i - size);
            }
            long[] found = map.get(i - rng.below(2 * size));
            if (found != null) {
                found[0]++;
                hits++;
            }
        }
        long sum = 0;
        for (long[] value : map.values()) {
            sum += value[0];
        }
        System.out.println("churn: " + map.size() + " entries, " + hits + " hits, sum " + sum);
    }

    /** Keys are made anew for each look-up, so that they are compared, not only found. */
    private static void count(int size, Rng rng) {
        Map<String, Integer> counts = new HashMap<>();
        for (int i = 0; i < 4 * size; i++) {
            counts.merge("word" + Math.min(rng.below(size), rng.below(size)), 1, Integer::sum);
        }
        int most = 0;
        for (int n : counts.values()) {
            most = Math.max(most, n);
        }
        System.out.println("count: " + counts.size() + " words, the most frequent one " + most + " times");
    }

    private static void group(int size, Rng rng) {
        Map<Integer, List<Integer>> groups = new LinkedHashMap<>();
        for (int i = 0; i < 4 * size; i++) {
            groups.computeIfAbsent(rng.below(GROUPS), g -> new ArrayList<>()).add(i);
        }
        Checksum checksum = new Checksum();
        for (Map.Entry<Integer, List<Integer>> group : groups.entrySet()) {
            List<Integer> members = group.getValue();
            checksum.add(group.getKey()).add(members.get(members.size() / 2));
        }
        System.out.println("group: " + groups.size() + " groups, checksum " + checksum);
    }
}
