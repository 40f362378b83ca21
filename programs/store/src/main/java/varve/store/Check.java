package varve.store;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import varve.common.Args;
import varve.common.Checksum;
import varve.common.Rng;

/** Has all stores do the same at random and compares each step with a map of the library. */
final class Check {
    private static final int KEYS = 4000;
    private static final int CLEARS = 5;

    private final Rng rng;
    private final Map<String, Table> tables = new TreeMap<>();
    private final Map<String, Value> reference = new HashMap<>();
    private final Checksum checksum = new Checksum();

    private Check(long seed) {
        rng = new Rng(seed);
        tables.put("fhmap", new FunctionalMap());
        tables.put("pbtree", TreeTable.persistent());
        tables.put("hbtree", TreeTable.hybrid());
    }

    static void run(String[] words) {
        Args args = new Args("store check [OPERATIONS] [--seed N]", words, 1, "seed");
        int operations = args.number(0, "the number of operations", 100_000, 1, 1_000_000_000);
        Check check = new Check(args.option("seed", 1, 0, Integer.MAX_VALUE));
        for (int i = 0; i < operations; i++) {
            check.step(i, operations);
        }
        check.compare();
        System.out.println(operations + " operations, " + check.reference.size() + " keys left");
        System.out.println("checksum " + check.checksum);
    }

    /** Mostly puts for a while, then mostly removals, so that trees grow and shrink. */
    private void step(int i, int operations) {
        String name = name(rng.below(KEYS));
        boolean grows = i / (2 * KEYS) % 2 == 0;
        int kind = rng.below(100);
        if (kind < (grows ? 60 : 5)) {
            put(name, i);
        } else if (kind < 80) {
            Value before = reference.remove(name);
            tables.forEach((table, t) -> same(table, "remove", before, t.remove(key(name))));
        } else {
            Value value = reference.get(name);
            tables.forEach((table, t) -> same(table, "get", value, t.get(key(name))));
        }
        if (i % (2 * KEYS) == 2 * KEYS - 1) {
            compare();
        }
        if (rng.below(operations) < CLEARS) {
            reference.clear();
            tables.values().forEach(Table::clear);
        }
    }

    private void put(String name, int i) {
        long[] words = new long[rng.below(5)];
        for (int w = 0; w < words.length; w++) {
            words[w] = rng.next();
        }
        Value value = new Value(words, 8 * words.length, i, 0, i);
        Value before = reference.put(name, value);
        tables.forEach((table, t) -> same(table, "put", before, t.put(key(name), value)));
    }

    private void same(String table, String what, Value expected, Value found) {
        if (expected != found) {
            throw new IllegalStateException(table + ": " + what + " gave another value than the map");
        }
        checksum.add(found == null ? -1 : found.unique);
    }

    /** Sizes, and all that a scan finds. */
    private void compare() {
        tables.forEach((name, table) -> {
            int found = 0;
            for (Table.Cursor cursor = table.scan(); cursor.next();) {
                found++;
                if (reference.get(text(cursor.key())) != cursor.value()) {
                    throw new IllegalStateException(name + ": a scan finds another value than the map has");
                }
            }
            if (found != reference.size() || table.size() != found) {
                throw new IllegalStateException(name + ": " + found + " values in a scan, " + table.size() + " by its size, "
                        + reference.size() + " in the map");
            }
            if (table instanceof TreeTable tree) {
                tree.verify();
            }
        });
        checksum.add(reference.size());
    }

    /** Of many lengths, with common beginnings, and some with the same first word. */
    private static String name(int number) {
        String text = Integer.toString(number * 0x9e3779b1, 36);
        return switch (number % 4) {
            case 0 -> text;
            case 1 -> "user" + text;
            case 2 -> "a-long-beginning-that-many-share/" + text;
            default -> text + text + text;
        };
    }

    /** As the host writes keys. */
    private static Key key(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.ISO_8859_1);
        long[] words = new long[bytes.length + 7 >>> 3];
        for (int i = 0; i < bytes.length; i++) {
            words[i >>> 3] |= (bytes[i] & 0xffL) << 56 - 8 * (i & 7);
        }
        return new Key(words, bytes.length);
    }

    private static String text(Key key) {
        byte[] bytes = new byte[key.length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (key.words[i >>> 3] >>> 56 - 8 * (i & 7));
        }
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
