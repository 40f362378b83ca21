package varve.kv;

/** Records by key: a hash table with chains, which grows by doubling. */
final class Store {
    private static final int FIRST_BUCKETS = 16;

    private static final class Entry {
        private final String key;
        private final int hash;
        private Record value;
        private Entry next;

        Entry(String key, int hash, Record value, Entry next) {
            this.key = key;
            this.hash = hash;
            this.value = value;
            this.next = next;
        }
    }

    private Entry[] buckets = new Entry[FIRST_BUCKETS];
    private int size;

    int size() {
        return size;
    }

    /** Null if there is none. */
    Record get(String key) {
        Entry entry = find(key);
        return entry == null ? null : entry.value;
    }

    void put(String key, Record value) {
        Entry entry = find(key);
        if (entry != null) {
            entry.value = value;
            return;
        }
        if (size == buckets.length) {
            grow();
        }
        int hash = spread(key);
        int bucket = hash & buckets.length - 1;
        buckets[bucket] = new Entry(key, hash, value, buckets[bucket]);
        size++;
    }

    /** Whether it was there. */
    boolean remove(String key) {
        int hash = spread(key);
        int bucket = hash & buckets.length - 1;
        Entry before = null;
        for (Entry entry = buckets[bucket]; entry != null; before = entry, entry = entry.next) {
            if (entry.hash == hash && entry.key.equals(key)) {
                if (before == null) {
                    buckets[bucket] = entry.next;
                } else {
                    before.next = entry.next;
                }
                size--;
                return true;
            }
        }
        return false;
    }

    private Entry find(String key) {
        int hash = spread(key);
        for (Entry entry = buckets[hash & buckets.length - 1]; entry != null; entry = entry.next) {
            if (entry.hash == hash && entry.key.equals(key)) {
                return entry;
            }
        }
        return null;
    }

    private static int spread(String key) {
        int hash = key.hashCode();
        return hash ^ hash >>> 16;
    }

    private void grow() {
        Entry[] old = buckets;
        buckets = new Entry[2 * old.length];
        for (Entry first : old) {
            for (Entry entry = first; entry != null;) {
                Entry next = entry.next;
                int bucket = entry.hash & buckets.length - 1;
                entry.next = buckets[bucket];
                buckets[bucket] = entry;
                entry = next;
            }
        }
    }
}
