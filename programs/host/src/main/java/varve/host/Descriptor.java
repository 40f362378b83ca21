package varve.host;

import java.io.IOException;

/** Moves bytes through a descriptor of the host. */
final class Descriptor {
    private Descriptor() {
    }

    /** Bytes read; zero at the end. */
    static int read(int descriptor, byte[] buffer, int offset, int size) throws IOException {
        int chunk = Memory.chunk();
        int vector = Memory.vector(chunk, Math.min(size, Memory.CHUNK_BYTES));
        check("read", Wasi.read(descriptor, vector, 1, Memory.RESULT));
        int read = Memory.int32(Memory.RESULT);
        Memory.load(chunk, buffer, offset, read);
        return read;
    }

    static void write(int descriptor, byte[] buffer, int offset, int size) throws IOException {
        int chunk = Memory.chunk();
        int end = offset + size;
        while (offset < end) {
            int most = Math.min(end - offset, Memory.CHUNK_BYTES);
            Memory.store(chunk, buffer, offset, most);
            check("write", Wasi.write(descriptor, Memory.vector(chunk, most), 1, Memory.RESULT));
            offset += Memory.int32(Memory.RESULT);
        }
    }

    static void check(String what, int error) throws IOException {
        if (error != Wasi.SUCCESS) {
            throw new IOException("cannot " + what + ": the host's error is " + error);
        }
    }
}
