package varve.store;

/** What is kept under a key, and never changes: bytes, eight in a word, the first one lowest, and what goes with them. */
final class Value {
    final long[] words;
    final int length;

    /** The client's own. */
    final int flags;

    /** Seconds since 1970 after which the value is gone; 0 for never. */
    final long expiry;

    /** A number that no two values share. */
    final long unique;

    Value(long[] words, int length, int flags, long expiry, long unique) {
        this.words = words;
        this.length = length;
        this.flags = flags;
        this.expiry = expiry;
        this.unique = unique;
    }
}
