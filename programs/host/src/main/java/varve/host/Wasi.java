package varve.host;

import org.teavm.interop.Import;

/** The functions of WASI preview 1 that the library needs. Pointers are offsets in the linear memory. */
final class Wasi {
    static final int SUCCESS = 0;
    static final int CLOCK_MONOTONIC = 1;

    /** What {@code fd_prestat_get} answers for a descriptor past the last one that was opened in advance. */
    static final int BAD_DESCRIPTOR = 8;

    static final int FOLLOW_LINKS = 1;
    static final int CREATE = 1;
    static final int EXCLUSIVE = 4;
    static final int APPEND = 1;
    static final int SET_MODIFIED = 4;

    static final int DIRECTORY = 3;
    static final int REGULAR_FILE = 4;

    static final long RIGHT_READ = 1 << 1;
    static final long RIGHT_SEEK = 1 << 2;
    static final long RIGHT_TELL = 1 << 5;
    static final long RIGHT_WRITE = 1 << 6;
    static final long RIGHT_READ_DIRECTORY = 1 << 14;
    static final long RIGHT_STATUS = 1 << 21;
    static final long RIGHT_RESIZE = 1 << 22;

    private Wasi() {
    }

    private static final String MODULE = "wasi_snapshot_preview1";

    @Import(module = MODULE, name = "proc_exit")
    static native void exit(int code);

    @Import(module = MODULE, name = "clock_time_get")
    static native int clockTime(int clock, long precision, int time);

    @Import(module = MODULE, name = "environ_sizes_get")
    static native int environmentSizes(int count, int bytes);

    @Import(module = MODULE, name = "environ_get")
    static native int environment(int pointers, int text);

    @Import(module = MODULE, name = "fd_read")
    static native int read(int descriptor, int vectors, int count, int done);

    @Import(module = MODULE, name = "fd_write")
    static native int write(int descriptor, int vectors, int count, int done);

    @Import(module = MODULE, name = "fd_seek")
    static native int seek(int descriptor, long offset, int from, int position);

    @Import(module = MODULE, name = "fd_close")
    static native int close(int descriptor);

    @Import(module = MODULE, name = "fd_filestat_get")
    static native int status(int descriptor, int status);

    @Import(module = MODULE, name = "fd_filestat_set_size")
    static native int resize(int descriptor, long size);

    @Import(module = MODULE, name = "fd_readdir")
    static native int readDirectory(int descriptor, int buffer, int size, long cookie, int used);

    @Import(module = MODULE, name = "fd_prestat_get")
    static native int preopened(int descriptor, int prestat);

    @Import(module = MODULE, name = "fd_prestat_dir_name")
    static native int preopenedName(int descriptor, int name, int size);

    @Import(module = MODULE, name = "path_open")
    static native int open(int directory, int lookup, int path, int size, int how, long rights, long inherited, int flags,
            int descriptor);

    @Import(module = MODULE, name = "path_filestat_get")
    static native int pathStatus(int directory, int lookup, int path, int size, int status);

    @Import(module = MODULE, name = "path_filestat_set_times")
    static native int setTimes(int directory, int lookup, int path, int size, long accessed, long modified, int flags);

    @Import(module = MODULE, name = "path_create_directory")
    static native int createDirectory(int directory, int path, int size);

    @Import(module = MODULE, name = "path_remove_directory")
    static native int removeDirectory(int directory, int path, int size);

    @Import(module = MODULE, name = "path_unlink_file")
    static native int unlink(int directory, int path, int size);

    @Import(module = MODULE, name = "path_rename")
    static native int rename(int from, int path, int size, int to, int newPath, int newSize);
}
