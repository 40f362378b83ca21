package varve.graph;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;

/** A file with the blocks of all shards, one after the other. What was in it before is lost, and it is removed in the end. */
final class ShardFile {
    private final String name;
    private final RandomAccessFile file;
    /** What was read last, or is to be written next. */
    private byte[] buffer = new byte[1 << 14];
    private int end;

    ShardFile(String name) throws IOException {
        this.name = name;
        try {
            new File(name).createNewFile();
            file = new RandomAccessFile(name, "rw");
        } catch (FileNotFoundException e) {
            throw new IOException("cannot write " + name, e);
        }
        file.setLength(0);
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

    /** Nobody reads it any more: it is removed. */
    void close() throws IOException {
        file.close();
        new File(name).delete();
    }
}
