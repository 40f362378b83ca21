package varve.common;

/** Sums up results in 64 bits (FNV-1a over the bytes), so that runs can be compared. */
public final class Checksum {
    private static final long BASIS = 0xcbf29ce484222325L;
    private static final long PRIME = 0x100000001b3L;

    private long hash = BASIS;

    public Checksum add(int value) {
        return add((long) value);
    }

    public Checksum add(long value) {
        for (int shift = 0; shift < Long.SIZE; shift += Byte.SIZE) {
            hash = (hash ^ (value >>> shift & 0xff)) * PRIME;
        }
        return this;
    }

    /** Takes every bit: for results of plain arithmetic, which is the same everywhere. */
    public Checksum addExactly(double value) {
        return add(Double.doubleToLongBits(value));
    }

    /** Takes nine decimal places: for results of sines and powers, which differ in the last bits between libraries. */
    public Checksum addRounded(double value) {
        return add(Math.round(value * 1e9));
    }

    public Checksum add(CharSequence text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            hash = (hash ^ c & 0xff) * PRIME;
            hash = (hash ^ c >>> Byte.SIZE) * PRIME;
        }
        return add(text.length());
    }

    @Override
    public String toString() {
        String digits = Long.toHexString(hash);
        return "0".repeat(16 - digits.length()) + digits;
    }
}
