package varve.store;

import org.teavm.interop.Address;
import org.teavm.runtime.heap.Heap;

/**
 * A key and a value in serialized form, for a store that is not the program's: the way out of the managed heap, and back.
 *
 * <pre>
 *    0  length of the key (4)
 *    8  the key, at most 256 bytes, as words in {@link Key}'s order
 *  264  flags (4), length of the value (4)
 *  272  expiry
 *  280  unique number
 *  288  the value's words
 * </pre>
 */
final class Wire {
    private static final int KEY = 8;
    private static final int HEAD = KEY + 256;
    private static final int VALUE = HEAD + 24;
    private static final int FIRST_BYTES = 4096;

    private static Address buffer;
    private static int capacity;

    private Wire() {
    }

    /** Its address, with room for a value of so many bytes. What was in it is not there any more. */
    static int reserve(int bytes) {
        int wanted = VALUE + (bytes + 7 & ~7);
        if (wanted > capacity) {
            if (capacity != 0) {
                Heap.release(buffer);
            }
            capacity = Math.max(Math.max(wanted, 2 * capacity), FIRST_BYTES);
            buffer = Heap.alloc(capacity);
        }
        return buffer.toInt();
    }

    static void put(Key key) {
        buffer.putInt(key.length);
        store(buffer.add(KEY), key.words);
    }

    static void put(Key key, Value value) {
        reserve(value.length);
        put(key);
        Address head = buffer.add(HEAD);
        head.putInt(value.flags);
        head.add(4).putInt(value.length);
        head.add(8).putLong(value.expiry);
        head.add(16).putLong(value.unique);
        Mailbox.putWords(buffer.add(VALUE), value);
    }

    static Value value() {
        Address head = buffer.add(HEAD);
        int length = head.add(4).getInt();
        long[] words = new long[length + 7 >>> 3];
        Address from = buffer.add(VALUE);
        for (int i = 0; i < words.length; i++) {
            words[i] = from.getLong();
            from = from.add(8);
        }
        return new Value(words, length, head.getInt(), head.add(8).getLong(), head.add(16).getLong());
    }

    private static void store(Address to, long[] words) {
        for (int i = 0; i < words.length; i++) {
            to.putLong(words[i]);
            to = to.add(8);
        }
    }
}
