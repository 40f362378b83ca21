package varve.common;

/** Random numbers, the same for a seed on every machine (SplitMix64 by Steele, Lea and Flood). */
public final class Rng {
    private long state;

    public Rng(long seed) {
        state = seed;
    }

    public long next() {
        state += 0x9e3779b97f4a7c15L;
        long z = state;
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /** From 0 to less than the bound. */
    public int below(int bound) {
        return (int) ((next() >>> 32) * bound >>> 32);
    }

    /** From 0 to less than 1. */
    public double real() {
        return (next() >>> 11) * 0x1p-53;
    }
}
