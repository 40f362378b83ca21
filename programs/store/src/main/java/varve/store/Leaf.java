package varve.store;

/**
 * A leaf of a B+ tree: entries in no order, found by the hash of their keys. An entry is added or removed by a store of one reference, and
 * replaced by one in it, so that only a split needs several stores together.
 */
final class Leaf {
    static final int SLOTS = 48;

    /** A key with its value. */
    static final class Entry extends Key {
        Value value;

        Entry(Key key, Value value) {
            super(key);
            this.value = value;
        }
    }

    /** Of the keys; those of empty slots mean nothing. */
    final int[] hashes = new int[SLOTS];
    final Entry[] entries = new Entry[SLOTS];

    /** The leaf with the next greater keys; null after the last. */
    Leaf next;

    /**
     * The least key that belonged here when the leaf was made; null of the first one. Where leaves before it were taken out, lesser keys may be here
     * by now. It is durable with the leaf, so that an index of it is no work for the collector.
     */
    Key from;

    Entry find(Key key) {
        int slot = slot(key);
        return slot < 0 ? null : entries[slot];
    }

    /** Where a key is looked for first, and put if there is room. */
    private static int home(int hash) {
        return (hash >>> 1) % SLOTS;
    }

    /** The slot of a key; -1 if it is not here. It may be anywhere: the slots from its home on may have been taken when it came. */
    int slot(Key key) {
        int hash = key.hashCode();
        int home = home(hash);
        int slot = slot(key, hash, home, SLOTS);
        return slot < 0 ? slot(key, hash, 0, home) : slot;
    }

    private int slot(Key key, int hash, int from, int to) {
        int[] hashes = this.hashes;
        for (int i = from; i < to; i++) {
            if (hashes[i] == hash) {
                Entry entry = entries[i];
                if (entry != null && entry.same(key)) {
                    return i;
                }
            }
        }
        return -1;
    }

    /** Whether there was room. */
    boolean add(Entry entry) {
        int home = home(entry.hashCode());
        return add(entry, home, SLOTS) || add(entry, 0, home);
    }

    private boolean add(Entry entry, int from, int to) {
        for (int i = from; i < to; i++) {
            if (entries[i] == null) {
                hashes[i] = entry.hashCode();
                entries[i] = entry;
                return true;
            }
        }
        return false;
    }

    boolean isEmpty() {
        for (Entry entry : entries) {
            if (entry != null) {
                return false;
            }
        }
        return true;
    }

    int count() {
        int count = 0;
        for (Entry entry : entries) {
            if (entry != null) {
                count++;
            }
        }
        return count;
    }

    /** The least key; null of an empty leaf. */
    Key least() {
        Key least = null;
        for (Entry entry : entries) {
            if (entry != null && (least == null || entry.compareTo(least) < 0)) {
                least = entry;
            }
        }
        return least;
    }
}
