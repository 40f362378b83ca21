package varve.store;

/** What is kept under a key, and never changes: bytes, eight in a word, the first one lowest, and what goes with them. */
final class Value {
    /** Words of a piece. */
    static final int PIECE = 512;

    /** All words, or the first {@link #PIECE} of a long value. */
    final long[] words;

    /** The words after those, in pieces, so that a long value needs no room in one piece; null if there are none. */
    final long[][] rest;
    final int length;

    /** The client's own. */
    final int flags;

    /** Seconds since 1970 after which the value is gone; 0 for never. */
    final long expiry;

    /** A number that no two values share. */
    final long unique;

    Value(long[] words, int length, int flags, long expiry, long unique) {
        this(words, null, length, flags, expiry, unique);
    }

    Value(long[] words, long[][] rest, int length, int flags, long expiry, long unique) {
        this.words = words;
        this.rest = rest;
        this.length = length;
        this.flags = flags;
        this.expiry = expiry;
        this.unique = unique;
    }
}
