package varve.host;

import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;

/** The standard input of the process, as {@link System#in}. */
final class StandardInput extends InputStream {
    private static final StandardInput INSTANCE = new StandardInput();

    private final byte[] one = new byte[1];

    static InputStream instance() {
        return INSTANCE;
    }

    @Override
    public int read() throws IOException {
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] buffer) throws IOException {
        return read(buffer, 0, buffer.length);
    }

    @Override
    public int read(byte[] buffer, int offset, int size) throws IOException {
        Objects.checkFromIndexSize(offset, size, buffer.length);
        if (size == 0) {
            return 0;
        }
        int read = Descriptor.read(0, buffer, offset, size);
        return read == 0 ? -1 : read;
    }
}
