package varve;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * What an ordinary virtual machine tells of its program's intervals, when {@code varve run --live --plan pima} has started it: in a
 * file that both have mapped, so that a report is a few stores.
 */
final class Reports {
    private static final VarHandle WORDS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    /** Bytes from a word to the next: intervals that are being written, their nanoseconds, intervals that were written. */
    private static final int NEXT = Long.BYTES;
    private static final ByteBuffer SHARED = open(System.getProperty("varve.intervals"));
    private static long last = Long.MIN_VALUE;
    private static long reported;
    private static long nanos;

    private Reports() {
    }

    static boolean wanted() {
        return SHARED != null;
    }

    static synchronized void add(long id, long took) {
        if (id <= last) {
            throw new IllegalArgumentException("interval " + id + " was reported after interval " + last
                    + ": number intervals upwards over all iterations");
        }
        last = id;
        reported++;
        nanos += took;
        WORDS.setVolatile(SHARED, 0, reported);
        WORDS.setVolatile(SHARED, NEXT, nanos);
        WORDS.setVolatile(SHARED, 2 * NEXT, reported);
    }

    private static ByteBuffer open(String path) {
        if (path == null) {
            return null;
        }
        // A machine that a placed one has started has none.
        Path own = Path.of(path + "." + ProcessHandle.current().pid());
        try (FileChannel file = FileChannel.open(own, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return file.map(FileChannel.MapMode.READ_WRITE, 0, 3 * NEXT);
        } catch (IOException e) {
            return null; // nobody hears, and the program runs as ever
        }
    }
}
