package varve.store;

/** The bytes of a key, eight in a word, the first one highest, so that words are in the order of their bytes. The last word ends with zeros. */
class Key implements Comparable<Key> {
    final long[] words;
    final int length;
    private final int hash;

    Key(long[] words, int length) {
        this.words = words;
        this.length = length;
        hash = hash(words, length);
    }

    Key(Key other) {
        words = other.words;
        length = other.length;
        hash = other.hash;
    }

    private static int hash(long[] words, int length) {
        long h = length;
        for (long word : words) {
            h = (h ^ word) * 0x9e3779b97f4a7c15L;
            h ^= h >>> 29;
        }
        return (int) (h ^ h >>> 32);
    }

    @Override
    public final int hashCode() {
        return hash;
    }

    @Override
    public final boolean equals(Object other) {
        return other instanceof Key key && same(key);
    }

    final boolean same(Key other) {
        if (hash != other.hash || length != other.length) {
            return false;
        }
        long[] mine = words;
        long[] others = other.words;
        for (int i = 0; i < mine.length; i++) {
            if (mine[i] != others[i]) {
                return false;
            }
        }
        return true;
    }

    /** As their bytes are ordered, and a key before those that it begins. */
    @Override
    public final int compareTo(Key other) {
        int common = Math.min(words.length, other.words.length);
        for (int i = 0; i < common; i++) {
            if (words[i] != other.words[i]) {
                return words[i] + Long.MIN_VALUE < other.words[i] + Long.MIN_VALUE ? -1 : 1;
            }
        }
        return length - other.length;
    }
}
