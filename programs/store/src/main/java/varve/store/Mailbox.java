package varve.store;

import org.teavm.interop.Address;
import org.teavm.runtime.heap.Heap;

/**
 * Where a key and a value lie in the linear memory, for the host to write and to read: words of eight bytes.
 *
 * <pre>
 *   0  address of the value's buffer (4), its bytes (4)
 *   8  length of the value (4), flags (4)
 *  16  expiry
 *  24  unique number
 *  32  the key, at most 256 bytes, as words in {@link Key}'s order
 * </pre>
 */
final class Mailbox {
    private static final int KEY = 32;
    private static final int KEY_BYTES = 256;
    private static final int FIRST_VALUE_BYTES = 4096;

    private static final Address BOX = Heap.alloc(KEY + KEY_BYTES);
    private static int capacity;

    private Mailbox() {
    }

    static int address() {
        if (capacity == 0) {
            reserve(FIRST_VALUE_BYTES);
        }
        return BOX.toInt();
    }

    /** Makes room for a value of so many bytes. */
    static void reserve(int bytes) {
        if (bytes <= capacity) {
            return;
        }
        if (capacity != 0) {
            Heap.release(buffer());
        }
        capacity = Math.max(bytes + 7 & ~7, 2 * capacity);
        BOX.putInt(Heap.alloc(capacity).toInt());
        BOX.add(4).putInt(capacity);
    }

    private static Address buffer() {
        return Address.fromInt(BOX.getInt());
    }

    static Key key(int length) {
        return new Key(load(BOX.add(KEY), length + 7 >>> 3), length);
    }

    static void putKey(Key key) {
        store(BOX.add(KEY), key.words);
    }

    static Value value() {
        int length = BOX.add(8).getInt();
        int count = length + 7 >>> 3;
        Address from = buffer();
        long[][] rest = null;
        if (count >= 2 * Value.PIECE) {
            rest = new long[(count - 1) / Value.PIECE][];
            for (int i = 0; i < rest.length; i++) {
                int at = (i + 1) * Value.PIECE;
                rest[i] = load(from.add(8 * at), Math.min(Value.PIECE, count - at));
            }
            count = Value.PIECE;
        }
        return new Value(load(from, count), rest, length, BOX.add(12).getInt(), BOX.add(16).getLong(),
                BOX.add(24).getLong());
    }

    /** The bytes of a value, with what else is in the box. */
    static Value head(Value value) {
        return new Value(value.words, value.rest, value.length, BOX.add(12).getInt(), BOX.add(16).getLong(), BOX.add(24).getLong());
    }

    /** All of a value but its bytes. */
    static void putHead(Value value) {
        BOX.add(8).putInt(value.length);
        BOX.add(12).putInt(value.flags);
        BOX.add(16).putLong(value.expiry);
        BOX.add(24).putLong(value.unique);
    }

    /** Of all values: how many, the bytes of them and their keys, the greatest unique number, and whether any expires; each where a value's own is. */
    static void putTotals(int count, long bytes, long unique, boolean expiring) {
        BOX.add(8).putInt(count);
        BOX.add(12).putInt(expiring ? 1 : 0);
        BOX.add(16).putLong(bytes);
        BOX.add(24).putLong(unique);
    }

    static void putBytes(Value value) {
        reserve(value.length);
        putWords(buffer(), value);
    }

    /** Writes all words of a value. */
    static void putWords(Address to, Value value) {
        store(to, value.words);
        if (value.rest != null) {
            for (long[] piece : value.rest) {
                to = to.add(8 * Value.PIECE);
                store(to, piece);
            }
        }
    }

    private static long[] load(Address from, int count) {
        long[] words = new long[count];
        for (int i = 0; i < words.length; i++) {
            words[i] = from.getLong();
            from = from.add(8);
        }
        return words;
    }

    private static void store(Address to, long[] words) {
        int count = words.length;
        int i = 0;
        // Four at a time: a kilobyte is most of what a request costs.
        for (; i + 3 < count; i += 4) {
            long a = words[i];
            long b = words[i + 1];
            long c = words[i + 2];
            long d = words[i + 3];
            to.putLong(a);
            to.add(8).putLong(b);
            to.add(16).putLong(c);
            to.add(24).putLong(d);
            to = to.add(32);
        }
        for (; i < count; i++) {
            to.putLong(words[i]);
            to = to.add(8);
        }
    }
}
