package varve.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.teavm.runtime.fs.VirtualFile;
import org.teavm.runtime.fs.VirtualFileAccessor;

/** A path below a directory that the host has opened, or, with a negative descriptor, one that the host does not show. */
final class HostFile implements VirtualFile {
    private static final int STATUS_TYPE = 16;
    private static final int STATUS_SIZE = 32;
    private static final int STATUS_MODIFIED = 48;
    private static final int ENTRY_BYTES = 24;
    private static final int ENTRY_NAME_SIZE = 16;
    private static final long NANOSECONDS_PER_MILLISECOND = 1_000_000;

    private final int directory;
    private final byte[] path;
    private final String absolute;

    HostFile(int directory, String path, String absolute) {
        this.directory = directory;
        this.path = path.getBytes(StandardCharsets.UTF_8);
        this.absolute = absolute;
    }

    /** Calls the host with this path in memory. An error if the path is not the host's. */
    private int withPath(IntUnaryOperator call) {
        if (directory < 0) {
            return Wasi.BAD_DESCRIPTOR;
        }
        int address = Memory.allocate(path.length + 4);
        Memory.store(address, path, 0, path.length);
        int error = call.applyAsInt(address);
        Memory.free(address);
        return error;
    }

    /** Whether the path leads somewhere; then its status is in {@link Memory#RESULT}. */
    private boolean status() {
        return withPath(p -> Wasi.pathStatus(directory, Wasi.FOLLOW_LINKS, p, path.length, Memory.RESULT)) == Wasi.SUCCESS;
    }

    private boolean isType(int type) {
        return status() && Memory.uint8(Memory.RESULT + STATUS_TYPE) == type;
    }

    /** A descriptor; negative if there is none to be had. */
    private int open(int how, long rights, int flags) {
        int error = withPath(p -> Wasi.open(directory, Wasi.FOLLOW_LINKS, p, path.length, how, rights, rights, flags,
                Memory.RESULT));
        return error == Wasi.SUCCESS ? Memory.int32(Memory.RESULT) : -1;
    }

    private HostFile child(String name) {
        String below = new String(path, StandardCharsets.UTF_8);
        String prefix = absolute.endsWith("/") ? absolute : absolute + "/";
        return new HostFile(directory, below.equals(".") ? name : below + "/" + name, prefix + name);
    }

    @Override
    public String getName() {
        return absolute.substring(absolute.lastIndexOf('/') + 1);
    }

    @Override
    public boolean isDirectory() {
        return isType(Wasi.DIRECTORY);
    }

    @Override
    public boolean isFile() {
        return status() && Memory.uint8(Memory.RESULT + STATUS_TYPE) != Wasi.DIRECTORY;
    }

    @Override
    public boolean exists() {
        return status();
    }

    @Override
    public String[] listFiles() {
        int descriptor = open(0, Wasi.RIGHT_READ_DIRECTORY, 0);
        if (descriptor < 0) {
            return null;
        }
        List<String> names = new ArrayList<>();
        int chunk = Memory.chunk();
        long cookie = 0;
        int used = Memory.CHUNK_BYTES;
        // An answer that does not fill the buffer is the last one; an entry cut off at its end comes again.
        while (used == Memory.CHUNK_BYTES
                && Wasi.readDirectory(descriptor, chunk, Memory.CHUNK_BYTES, cookie, Memory.RESULT) == Wasi.SUCCESS) {
            used = Memory.int32(Memory.RESULT);
            int at = 0;
            while (at + ENTRY_BYTES <= used) {
                int size = Memory.int32(chunk + at + ENTRY_NAME_SIZE);
                if (at + ENTRY_BYTES + size > used) {
                    break;
                }
                cookie = Memory.int64(chunk + at);
                String name = Memory.text(chunk + at + ENTRY_BYTES, size);
                if (!name.equals(".") && !name.equals("..")) {
                    names.add(name);
                }
                at += ENTRY_BYTES + size;
            }
        }
        Wasi.close(descriptor);
        String[] sorted = names.toArray(new String[0]);
        Arrays.sort(sorted);
        return sorted;
    }

    @Override
    public VirtualFileAccessor createAccessor(boolean readable, boolean writable, boolean append) {
        long rights = Wasi.RIGHT_SEEK | Wasi.RIGHT_TELL | Wasi.RIGHT_STATUS;
        if (readable) {
            rights |= Wasi.RIGHT_READ;
        }
        if (writable) {
            rights |= Wasi.RIGHT_WRITE | Wasi.RIGHT_RESIZE;
        }
        int descriptor = open(0, rights, append ? Wasi.APPEND : 0);
        return descriptor < 0 ? null : new HostFileAccessor(descriptor);
    }

    @Override
    public boolean createFile(String fileName) throws IOException {
        int descriptor = child(fileName).open(Wasi.CREATE | Wasi.EXCLUSIVE, Wasi.RIGHT_WRITE, 0);
        if (descriptor < 0) {
            if (child(fileName).exists()) {
                return false;
            }
            throw new IOException("cannot create " + child(fileName).absolute);
        }
        Wasi.close(descriptor);
        return true;
    }

    @Override
    public boolean createDirectory(String fileName) {
        HostFile child = child(fileName);
        return child.withPath(p -> Wasi.createDirectory(directory, p, child.path.length)) == Wasi.SUCCESS;
    }

    @Override
    public boolean delete() {
        boolean directory = isDirectory();
        return withPath(p -> directory
                ? Wasi.removeDirectory(this.directory, p, path.length)
                : Wasi.unlink(this.directory, p, path.length)) == Wasi.SUCCESS;
    }

    @Override
    public boolean adopt(VirtualFile file, String fileName) {
        HostFile from = (HostFile) file;
        HostFile to = child(fileName);
        return from.withPath(p -> to.withPath(q ->
                Wasi.rename(from.directory, p, from.path.length, to.directory, q, to.path.length))) == Wasi.SUCCESS;
    }

    @Override
    public boolean canRead() {
        return tryOpen(Wasi.RIGHT_READ);
    }

    @Override
    public boolean canWrite() {
        return tryOpen(Wasi.RIGHT_WRITE);
    }

    private boolean tryOpen(long rights) {
        int descriptor = open(0, isDirectory() ? Wasi.RIGHT_READ_DIRECTORY : rights, 0);
        if (descriptor >= 0) {
            Wasi.close(descriptor);
        }
        return descriptor >= 0;
    }

    @Override
    public long lastModified() {
        return status() ? Memory.int64(Memory.RESULT + STATUS_MODIFIED) / NANOSECONDS_PER_MILLISECOND : 0;
    }

    @Override
    public boolean setLastModified(long lastModified) {
        long time = lastModified * NANOSECONDS_PER_MILLISECOND;
        return withPath(p -> Wasi.setTimes(directory, Wasi.FOLLOW_LINKS, p, path.length, 0, time, Wasi.SET_MODIFIED))
                == Wasi.SUCCESS;
    }

    /** WASI knows no permissions: never done. */
    @Override
    public boolean setReadOnly(boolean readOnly) {
        return false;
    }

    @Override
    public int length() {
        return status() ? (int) Math.min(Memory.int64(Memory.RESULT + STATUS_SIZE), Integer.MAX_VALUE) : 0;
    }
}
