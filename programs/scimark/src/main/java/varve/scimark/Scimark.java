package varve.scimark;

import varve.common.Args;
import varve.common.Checksum;
import varve.common.Rng;
import varve.common.Rounds;

/**
 * The five kernels of SciMark 2 with its sizes, small and large, written after its published description (Pozo and Miller, NIST). Unlike
 * there the amount of work is given, so that results are the same in every run; rates are on standard error.
 */
public final class Scimark {
    private static final String USAGE = "scimark all|fft|sor|montecarlo|sparse|lu [WORK] [--large 1 [--shrink N]] [--rounds N]";
    private static final double TOLERANCE = 1e-9;
    private static final long SEED = 113;

    private final boolean large;
    private final int work;
    /** The large data are smaller by this factor: for machines with caches that are smaller by it. */
    private final int shrink;

    private Scimark(boolean large, int work, int shrink) {
        this.large = large;
        this.work = work;
        this.shrink = shrink;
    }

    /** The side of the large square matrices. */
    private int side() {
        return large ? (int) (1000 / Math.sqrt(shrink)) : 100;
    }

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 2, "large", "shrink", Rounds.OPTION);
        String kernel = given.choice(0, "all", "fft", "sor", "montecarlo", "sparse", "lu");
        boolean large = given.option("large", 0, 0, 1) == 1;
        int shrink = given.option("shrink", 1, 1, 256);
        if ((shrink & shrink - 1) != 0) {
            throw given.fail("--shrink must be a power of two");
        }
        int work = given.number(1, "the amount of work", large ? 1 : 40, 1, 1 << 20);
        Scimark scimark = new Scimark(large, work, shrink);
        Rounds.of(given, () -> scimark.run(kernel));
    }

    private void run(String kernel) {
        switch (kernel) {
            case "fft" -> fourier();
            case "sor" -> relaxation();
            case "montecarlo" -> monteCarlo();
            case "sparse" -> sparse();
            case "lu" -> factorization();
            default -> {
                fourier();
                relaxation();
                monteCarlo();
                sparse();
                factorization();
            }
        }
    }

    private static void done(String name, String result, double operations, long start) {
        long nanos = Math.max(1, System.nanoTime() - start);
        System.out.println(name + ": " + result);
        System.err.println("time: " + name + " " + nanos / 1000 / 1000.0 + " ms, " + Math.round(operations * 1e3 / nanos)
                + " Mflop/s");
    }

    private static double[] randomVector(int n, Rng rng) {
        double[] v = new double[n];
        for (int i = 0; i < n; i++) {
            v[i] = rng.real();
        }
        return v;
    }

    private static double[][] randomMatrix(int n, Rng rng) {
        double[][] m = new double[n][];
        for (int i = 0; i < n; i++) {
            m[i] = randomVector(n, rng);
        }
        return m;
    }

    private void fourier() {
        int n = large ? (1 << 20) / shrink : 1 << 10;
        int times = large ? work : 50 * work;
        double[] original = randomVector(2 * n, new Rng(SEED));
        double[] data = original.clone();
        Fourier fourier = new Fourier(n);
        long start = System.nanoTime();
        double first = 0;
        for (int i = 0; i < times; i++) {
            fourier.forward(data);
            first = data[0];
            fourier.inverse(data);
        }
        double error = 0;
        for (int i = 0; i < data.length; i++) {
            error = Math.max(error, Math.abs(data[i] - original[i]));
        }
        int log = Integer.numberOfTrailingZeros(n);
        done("fft", rounded(first) + (error < TOLERANCE ? ", and back" : ", and not back: " + error),
                2.0 * times * (5.0 * n * log + 2.0 * n), start);
    }

    private void relaxation() {
        int n = side();
        int sweeps = large ? 10 * work : 250 * work;
        double[][] grid = randomMatrix(n, new Rng(SEED));
        long start = System.nanoTime();
        Relaxation.run(grid, 1.25, sweeps);
        done("sor", checksum(grid), 6.0 * (n - 1) * (n - 1) * sweeps, start);
    }

    private void monteCarlo() {
        int points = large ? 4_000_000 * work : 250_000 * work;
        long start = System.nanoTime();
        double pi = new MonteCarlo(SEED).pi(points);
        done("montecarlo", "pi is about " + pi, 4.0 * points, start);
    }

    private void sparse() {
        int n = large ? 100_000 / shrink : 1000;
        int entries = large ? 1_000_000 / shrink : 5000;
        int times = large ? 10 * work : 500 * work;
        Rng rng = new Rng(SEED);
        double[] x = randomVector(n, rng);
        SparseMatrix matrix = new SparseMatrix(n, entries, rng);
        double[] y = new double[n];
        long start = System.nanoTime();
        for (int i = 0; i < times; i++) {
            matrix.multiply(x, y);
            x[i % n] += y[i % n] * 1e-3;
        }
        done("sparse", checksum(y), 2.0 * entries * times, start);
    }

    private void factorization() {
        int n = side();
        int times = large ? work : 5 * work;
        Rng rng = new Rng(SEED);
        double[][] original = randomMatrix(n, rng);
        double[] wanted = randomVector(n, rng);
        int[] pivots = new int[n];
        double[][] lu = null;
        long start = System.nanoTime();
        for (int i = 0; i < times; i++) {
            lu = copy(original);
            Factorization.run(lu, pivots);
        }
        double[] right = new double[n];
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                right[i] += original[i][j] * wanted[j];
            }
        }
        Factorization.solve(lu, pivots, right);
        double error = 0;
        for (int i = 0; i < n; i++) {
            error = Math.max(error, Math.abs(right[i] - wanted[i]));
        }
        done("lu", checksum(lu) + (error < TOLERANCE ? ", solves" : ", does not solve: " + error),
                2.0 / 3 * n * n * n * times, start);
    }

    private static double[][] copy(double[][] matrix) {
        double[][] copy = new double[matrix.length][];
        for (int i = 0; i < matrix.length; i++) {
            copy[i] = matrix[i].clone();
        }
        return copy;
    }

    private static double rounded(double x) {
        return Math.round(x * 1e6) / 1e6;
    }

    private static String checksum(double[]... rows) {
        Checksum checksum = new Checksum();
        for (double[] row : rows) {
            for (double x : row) {
                checksum.addExactly(x);
            }
        }
        return "checksum " + checksum;
    }
}
