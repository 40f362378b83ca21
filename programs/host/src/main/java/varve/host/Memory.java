package varve.host;

import java.nio.charset.StandardCharsets;
import org.teavm.interop.Address;
import org.teavm.runtime.heap.Heap;

/** The part of the linear memory through which the library and the host exchange data. */
final class Memory {
    /** Bytes that one call moves at most. */
    static final int CHUNK_BYTES = 1 << 16;

    /** For small results: counts, positions, times, statuses. */
    static final int RESULT = allocate(128);

    /** For one vector: where the data is, and its size. */
    private static final int VECTOR = allocate(16);

    private static int chunk;

    private Memory() {
    }

    static int allocate(int bytes) {
        return Heap.alloc(bytes).toInt();
    }

    static void free(int address) {
        Heap.release(Address.fromInt(address));
    }

    /** A buffer of {@link #CHUNK_BYTES}, valid until its next user. */
    static int chunk() {
        if (chunk == 0) {
            chunk = allocate(CHUNK_BYTES);
        }
        return chunk;
    }

    static int int32(int address) {
        return Address.fromInt(address).getInt();
    }

    static long int64(int address) {
        return Address.fromInt(address).getLong();
    }

    static int uint8(int address) {
        return Address.fromInt(address).getByte() & 0xff;
    }

    /** A vector of one element. */
    static int vector(int data, int size) {
        Address.fromInt(VECTOR).putInt(data);
        Address.fromInt(VECTOR).add(4).putInt(size);
        return VECTOR;
    }

    static void load(int address, byte[] to, int offset, int size) {
        Address from = Address.fromInt(address);
        for (int i = 0; i < size; i++) {
            to[offset + i] = from.add(i).getByte();
        }
    }

    static void store(int address, byte[] from, int offset, int size) {
        Address to = Address.fromInt(address);
        for (int i = 0; i < size; i++) {
            to.add(i).putByte(from[offset + i]);
        }
    }

    static String text(int address, int size) {
        byte[] bytes = new byte[size];
        load(address, bytes, 0, size);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
