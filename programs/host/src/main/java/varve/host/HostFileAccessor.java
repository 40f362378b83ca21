package varve.host;

import java.io.IOException;
import org.teavm.runtime.fs.VirtualFileAccessor;

/** An open file of the host. */
final class HostFileAccessor implements VirtualFileAccessor {
    private static final int FROM_START = 0;
    private static final int FROM_HERE = 1;
    private static final int STATUS_SIZE = 32;

    private final int descriptor;

    HostFileAccessor(int descriptor) {
        this.descriptor = descriptor;
    }

    @Override
    public int read(byte[] buffer, int offset, int limit) throws IOException {
        return Descriptor.read(descriptor, buffer, offset, limit);
    }

    @Override
    public void write(byte[] buffer, int offset, int limit) throws IOException {
        Descriptor.write(descriptor, buffer, offset, limit);
    }

    @Override
    public int tell() throws IOException {
        return move(0, FROM_HERE);
    }

    @Override
    public void seek(int target) throws IOException {
        move(target, FROM_START);
    }

    @Override
    public void skip(int amount) throws IOException {
        move(amount, FROM_HERE);
    }

    private int move(long offset, int from) throws IOException {
        Descriptor.check("seek", Wasi.seek(descriptor, offset, from, Memory.RESULT));
        return narrow(Memory.int64(Memory.RESULT));
    }

    @Override
    public int size() throws IOException {
        Descriptor.check("ask for the size", Wasi.status(descriptor, Memory.RESULT));
        return narrow(Memory.int64(Memory.RESULT + STATUS_SIZE));
    }

    /** The class library counts the bytes of a file in 31 bits. */
    private static int narrow(long position) throws IOException {
        if (position > Integer.MAX_VALUE) {
            throw new IOException("files of 2 GiB and more are only readable from start to end");
        }
        return (int) position;
    }

    @Override
    public void resize(int size) throws IOException {
        Descriptor.check("resize", Wasi.resize(descriptor, size));
    }

    @Override
    public void close() throws IOException {
        Descriptor.check("close", Wasi.close(descriptor));
    }

    /** Every write has already reached the host. */
    @Override
    public void flush() {
    }
}
