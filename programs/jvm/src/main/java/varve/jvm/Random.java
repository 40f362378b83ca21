package varve.jvm;

/** SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, and the same everywhere. */
final class Random {
    private long state;

    Random(long seed) {
        state = seed;
    }

    long next() {
        return mix(state += 0x9e3779b97f4a7c15L);
    }

    /** Below a bound. */
    int below(int bound) {
        return (int) ((next() >>> 33) % bound);
    }

    /** Small numbers are more frequent: about as words in a language. */
    int skewed(int bound) {
        double u = (next() >>> 11) * 0x1p-53;
        return (int) Math.min(bound - 1, Math.pow(bound + 1.0, u) - 1);
    }

    static long mix(long z) {
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /** A digest of text. */
    static long digest(CharSequence text) {
        long sum = text.length();
        for (int i = 0; i < text.length(); i++) {
            sum = sum * 0x100000001b3L ^ text.charAt(i);
        }
        return mix(sum);
    }

    /** A digest of bytes. */
    static long digest(byte[] bytes, int size) {
        long sum = size;
        for (int i = 0; i < size; i++) {
            sum = sum * 0x100000001b3L ^ bytes[i];
        }
        return mix(sum);
    }
}
