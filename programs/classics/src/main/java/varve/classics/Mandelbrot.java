package varve.classics;

import varve.common.Checksum;

/** Which points of a square of the complex plane stay near under iteration: a bit for each. */
final class Mandelbrot {
    private static final int MOST_STEPS = 50;
    private static final double FAR_SQUARED = 4;

    private Mandelbrot() {
    }

    static void run(int side) {
        Checksum checksum = new Checksum();
        int inside = 0;
        for (int y = 0; y < side; y++) {
            double ci = 2.0 * y / side - 1;
            int bits = 0;
            for (int x = 0; x < side; x++) {
                boolean stays = stays(2.0 * x / side - 1.5, ci);
                inside += stays ? 1 : 0;
                bits = bits << 1 | (stays ? 1 : 0);
                if (x % Byte.SIZE == Byte.SIZE - 1 || x == side - 1) {
                    checksum.add(bits);
                    bits = 0;
                }
            }
        }
        System.out.println("mandelbrot: " + inside + " of " + (long) side * side + " points inside, checksum " + checksum);
    }

    private static boolean stays(double cr, double ci) {
        double zr = 0;
        double zi = 0;
        for (int step = 0; step < MOST_STEPS; step++) {
            double rr = zr * zr;
            double ii = zi * zi;
            if (rr + ii > FAR_SQUARED) {
                return false;
            }
            zi = 2 * zr * zi + ci;
            zr = rr - ii + cr;
        }
        return true;
    }
}
