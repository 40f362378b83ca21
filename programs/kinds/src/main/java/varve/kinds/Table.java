package varve.kinds;

import java.util.function.BiConsumer;

/** A hash table with chains. */
final class Table<K, V> {
    private static final class Entry<K, V> {
        final int hash;
        final K key;
        V value;
        Entry<K, V> next;

        Entry(int hash, K key, V value, Entry<K, V> next) {
            this.hash = hash;
            this.key = key;
            this.value = value;
            this.next = next;
        }

        boolean is(int hash, K key) {
            return this.hash == hash && (this.key == key || this.key.equals(key));
        }
    }

    private Entry<K, V>[] buckets = make(16);
    private int size;

    @SuppressWarnings("unchecked")
    private static <K, V> Entry<K, V>[] make(int room) {
        return (Entry<K, V>[]) new Entry<?, ?>[room];
    }

    private static int hash(Object key) {
        int hash = key.hashCode();
        return hash ^ hash >>> 16;
    }

    V get(K key) {
        int hash = hash(key);
        for (Entry<K, V> e = buckets[hash & buckets.length - 1]; e != null; e = e.next) {
            if (e.is(hash, key)) {
                return e.value;
            }
        }
        return null;
    }

    boolean has(K key) {
        return get(key) != null;
    }

    void put(K key, V value) {
        int hash = hash(key);
        int bucket = hash & buckets.length - 1;
        for (Entry<K, V> e = buckets[bucket]; e != null; e = e.next) {
            if (e.is(hash, key)) {
                e.value = value;
                return;
            }
        }
        buckets[bucket] = new Entry<>(hash, key, value, buckets[bucket]);
        size++;
        if (size > buckets.length * 3 / 4) {
            grow();
        }
    }

    private void grow() {
        Entry<K, V>[] larger = make(2 * buckets.length);
        for (Entry<K, V> first : buckets) {
            Entry<K, V> e = first;
            while (e != null) {
                Entry<K, V> next = e.next;
                int bucket = e.hash & larger.length - 1;
                e.next = larger[bucket];
                larger[bucket] = e;
                e = next;
            }
        }
        buckets = larger;
    }

    void forEach(BiConsumer<? super K, ? super V> action) {
        for (Entry<K, V> first : buckets) {
            for (Entry<K, V> e = first; e != null; e = e.next) {
                action.accept(e.key, e.value);
            }
        }
    }

    int size() {
        return size;
    }
}
