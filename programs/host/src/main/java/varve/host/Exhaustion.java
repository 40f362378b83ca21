package varve.host;

import org.teavm.interop.Export;

/** Called by a host whose heap or stack is full: throws what Java programs catch then. A host that does not know them never calls. */
final class Exhaustion {
    private Exhaustion() {
    }

    @Export(name = "varve.outOfMemory")
    static void outOfMemory() {
        throw new OutOfMemoryError("the heap is full (see --heap-max)");
    }

    @Export(name = "varve.stackOverflow")
    static void stackOverflow() {
        throw new StackOverflowError();
    }
}
