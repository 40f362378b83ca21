package varve.scimark;

import varve.common.Rng;

/** Pi by counting random points of the unit square that lie in the quarter circle. */
final class MonteCarlo {
    private final Rng rng;

    MonteCarlo(long seed) {
        rng = new Rng(seed);
    }

    /** Synchronized as in SciMark, where the cost of that is part of the kernel. */
    private synchronized double next() {
        return rng.real();
    }

    double pi(int points) {
        int inside = 0;
        for (int i = 0; i < points; i++) {
            double x = next();
            double y = next();
            if (x * x + y * y <= 1) {
                inside++;
            }
        }
        return 4.0 * inside / points;
    }
}
