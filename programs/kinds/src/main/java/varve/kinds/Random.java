package varve.kinds;

/** Numbers that look drawn by chance. */
final class Random {
    private int state;

    Random(int seed) {
        state = seed;
    }

    /** From 0 to 65535. */
    int next() {
        state = state * 1_103_515_245 + 12_345;
        return state >>> 16 & 0xffff;
    }
}
