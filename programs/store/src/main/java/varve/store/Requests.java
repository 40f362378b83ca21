package varve.store;

import java.util.Arrays;
import org.teavm.interop.Export;
import varve.Varve;

/** What the host calls, with keys and values in the {@link Mailbox}. */
final class Requests {
    private static final int SPARE_WORDS = 1 << 17;

    /** Null if the host has the values. */
    private static Table table;

    /** Room that is given up when the heap is full, so that values can still be read and removed. */
    private static long[] spare = new long[SPARE_WORDS];

    /** One goes over all values for the server, to find those that have expired, and one for a client that lists keys. */
    private static final Table.Cursor[] cursors = new Table.Cursor[2];
    private static Notes notes;

    private Requests() {
    }

    static void serve(Table opened) {
        table = opened;
        notes = Varve.root("server", Notes::new);
    }

    @Export(name = "mailbox")
    static int mailbox() {
        return Mailbox.address();
    }

    @Export(name = "reserve")
    static void reserve(int bytes) {
        Mailbox.reserve(bytes);
    }

    /** Whether there is a value; with all of it. */
    @Export(name = "get")
    static int get(int keyLength) {
        Value value = table.get(Mailbox.key(keyLength));
        if (value == null) {
            return 0;
        }
        Mailbox.putHead(value);
        Mailbox.putBytes(value);
        return 1;
    }

    /** Whether there is a value; with all of it but the bytes. */
    @Export(name = "find")
    static int find(int keyLength) {
        Value value = table.get(Mailbox.key(keyLength));
        if (value == null) {
            return 0;
        }
        Mailbox.putHead(value);
        return 1;
    }

    /** The length of the value that was there, or -1. */
    @Export(name = "put")
    static int put(int keyLength) {
        return length(table.put(Mailbox.key(keyLength), Mailbox.value()));
    }

    /** Replaces all but the bytes of a value that is there. */
    @Export(name = "mark")
    static int mark(int keyLength) {
        Key key = Mailbox.key(keyLength);
        Value value = table.get(key);
        if (value == null) {
            return 0;
        }
        table.put(key, Mailbox.head(value));
        return 1;
    }

    /** The length of the value that was there, or -1. */
    @Export(name = "remove")
    static int remove(int keyLength) {
        return length(table.remove(Mailbox.key(keyLength)));
    }

    private static int length(Value value) {
        return value == null ? -1 : value.length;
    }

    @Export(name = "clear")
    static void clear() {
        Arrays.fill(cursors, null);
        table.clear();
    }

    @Export(name = "size")
    static int size() {
        return table.size();
    }

    /** Gives up the spare room: after this, only what needs little may be asked for. */
    @Export(name = "relieve")
    static void relieve() {
        spare = null;
    }

    /** Takes spare room again; traps if there is none. */
    @Export(name = "restock")
    static void restock() {
        spare = new long[SPARE_WORDS];
    }

    /** What all values take together, in the mailbox: see {@link Mailbox#putTotals}. */
    @Export(name = "measure")
    static void measure() {
        int count = 0;
        long bytes = 0;
        long unique = 0;
        boolean expiring = false;
        for (Table.Cursor all = table.scan(); all.next();) {
            Value value = all.value();
            count++;
            bytes += all.key().length + value.length;
            if (unique + Long.MIN_VALUE < value.unique + Long.MIN_VALUE) {
                unique = value.unique;
            }
            expiring |= value.expiry != 0;
        }
        Mailbox.putTotals(count, bytes, unique, expiring);
    }

    /** Has one of the cursors begin to go over all values anew. */
    @Export(name = "scan")
    static void scan(int which) {
        cursors[which] = table.scan();
    }

    /** Ends one of the cursors: what it alone refers to is garbage. */
    @Export(name = "forget")
    static void forget(int which) {
        cursors[which] = null;
    }

    /** The length of a cursor's next key, with all of its value but the bytes; -1 after the last one. */
    @Export(name = "next")
    static int next(int which) {
        Table.Cursor cursor = cursors[which];
        if (cursor == null || !cursor.next()) {
            cursors[which] = null;
            return -1;
        }
        Mailbox.putKey(cursor.key());
        Mailbox.putHead(cursor.value());
        return cursor.key().length;
    }

    /** When all values are to be forgotten, seconds since 1970; 0 if they are not. */
    @Export(name = "flushAt")
    static long flushAt() {
        return notes.flushAt;
    }

    @Export(name = "setFlushAt")
    static void setFlushAt(long seconds) {
        notes.flushAt = seconds;
    }

    // ---- a store outside of the managed heap: the host has it, and gets and gives keys and values in serialized form ----

    /** The address of the {@link Wire} with room for a value of so many bytes. */
    @Export(name = "wire")
    static int wire(int bytes) {
        return Wire.reserve(bytes);
    }

    /** Serializes the key of the mailbox. */
    @Export(name = "packKey")
    static void packKey(int keyLength) {
        Wire.put(Mailbox.key(keyLength));
    }

    /** Serializes the key and the value of the mailbox; the wire's address. */
    @Export(name = "pack")
    static int pack(int keyLength) {
        Wire.put(Mailbox.key(keyLength), Mailbox.value());
        return Wire.reserve(0);
    }

    /** Makes an object of a serialized value, and answers with it. */
    @Export(name = "unpack")
    static void unpack() {
        Value value = Wire.value();
        Mailbox.putHead(value);
        Mailbox.putBytes(value);
    }
}
