package varve.host;

import java.util.ArrayList;
import java.util.List;
import org.teavm.runtime.fs.VirtualFile;
import org.teavm.runtime.fs.VirtualFileSystem;

/**
 * The directories that the host has opened for the program, as one tree.
 *
 * <p>The working directory is the environment's {@code PWD}; a host that names a directory "." means that one.
 */
final class HostFileSystem implements VirtualFileSystem {
    private static final int FIRST_PREOPENED = 3;

    private final String userDirectory;
    private final List<Preopened> preopened = new ArrayList<>();

    /** A directory opened in advance. */
    private record Preopened(int descriptor, String path) {
        /** Where below this directory an absolute path leads; null if elsewhere. */
        String relative(String absolute) {
            if (absolute.equals(path)) {
                return ".";
            }
            String prefix = path.endsWith("/") ? path : path + "/";
            return absolute.startsWith(prefix) ? absolute.substring(prefix.length()) : null;
        }
    }

    HostFileSystem() {
        String directory = Process.environment("PWD");
        userDirectory = directory != null && directory.startsWith("/") ? directory : "/";
        int descriptor = FIRST_PREOPENED;
        while (Wasi.preopened(descriptor, Memory.RESULT) == Wasi.SUCCESS) {
            int size = Memory.int32(Memory.RESULT + 4);
            int name = Memory.allocate(size + 4);
            if (Wasi.preopenedName(descriptor, name, size) == Wasi.SUCCESS) {
                preopened.add(new Preopened(descriptor, absolute(Memory.text(name, size))));
            }
            Memory.free(name);
            descriptor++;
        }
    }

    private String absolute(String name) {
        if (name.startsWith("/")) {
            return name.length() > 1 && name.endsWith("/") ? name.substring(0, name.length() - 1) : name;
        }
        String below = name.startsWith("./") ? name.substring(2) : name.equals(".") ? "" : name;
        String directory = userDirectory.equals("/") ? "" : userDirectory;
        return below.isEmpty() ? userDirectory : directory + "/" + below;
    }

    @Override
    public String getUserDir() {
        return userDirectory;
    }

    @Override
    public VirtualFile getFile(String path) {
        String absolute = path.isEmpty() ? "/" : path;
        Preopened nearest = null;
        for (Preopened candidate : preopened) {
            if (candidate.relative(absolute) != null
                    && (nearest == null || candidate.path.length() > nearest.path.length())) {
                nearest = candidate;
            }
        }
        return nearest == null
                ? new HostFile(-1, absolute, absolute)
                : new HostFile(nearest.descriptor, nearest.relative(absolute), absolute);
    }

    @Override
    public boolean isWindows() {
        return false;
    }

    @Override
    public String canonicalize(String path) {
        return path;
    }

    @Override
    public String[] getRoots() {
        return new String[] { "/" };
    }
}
