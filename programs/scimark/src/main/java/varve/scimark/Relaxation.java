package varve.scimark;

/** Successive over-relaxation on a square grid: each inner point moves beyond the mean of its neighbours. */
final class Relaxation {
    private Relaxation() {
    }

    static void run(double[][] grid, double omega, int sweeps) {
        double quarter = omega / 4;
        double rest = 1 - omega;
        for (int sweep = 0; sweep < sweeps; sweep++) {
            for (int i = 1; i < grid.length - 1; i++) {
                double[] above = grid[i - 1];
                double[] row = grid[i];
                double[] below = grid[i + 1];
                for (int j = 1; j < row.length - 1; j++) {
                    row[j] = quarter * (above[j] + below[j] + row[j - 1] + row[j + 1]) + rest * row[j];
                }
            }
        }
    }
}
