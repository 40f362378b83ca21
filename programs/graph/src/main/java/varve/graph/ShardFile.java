package varve.graph;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;

/** A file with the blocks of all shards, one after the other. It is a new one, and gone with the program. */
final class ShardFile {
    private final String name;
    private final RandomAccessFile file;
    /** What was read last, or is to be written next. */
    private byte[] buffer = new byte[1 << 14];
    private int end;

    ShardFile(String name) throws IOException {
        this.name = name;
        boolean made;
        try {
            made = new File(name).createNewFile();
        } catch (IOException e) {
            throw new IOException("cannot make " + name + ": " + e.getMessage(), e);
        }
        if (!made) {
            throw new IOException(name + " is there already; name a file for the shards that is not, as it is gone with the program");
        }
        file = new RandomAccessFile(name, "rw");
        // From here on it has no name: it is gone when the program is, however that ends.
        new File(name).delete();
    }

    /** Room for so many bytes at the end; where it is. */
    int reserve(int bytes) {
        int at = end;
        end = Math.addExact(end, bytes);
        return at;
    }

    /** The buffer, with room for so many bytes. */
    byte[] buffer(int bytes) {
        if (buffer.length < bytes) {
            buffer = new byte[bytes];
        }
        return buffer;
    }

    /** Bytes from a place, at the start of the buffer. */
    byte[] read(int at, int bytes) {
        byte[] to = buffer(bytes);
        try {
            file.seek(at);
            file.readFully(to, 0, bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(name + ": " + e.getMessage(), e);
        }
        return to;
    }

    void write(int at, byte[] from, int bytes) {
        try {
            file.seek(at);
            file.write(from, 0, bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(name + ": " + e.getMessage(), e);
        }
    }

    void close() throws IOException {
        file.close();
    }
}
