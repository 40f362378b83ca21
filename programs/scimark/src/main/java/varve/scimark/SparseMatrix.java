package varve.scimark;

import varve.common.Rng;

/** A sparse square matrix by compressed rows, with as many entries in each, spread over the columns. */
final class SparseMatrix {
    private final double[] values;
    private final int[] columns;
    private final int[] rows;

    SparseMatrix(int n, int entries, Rng rng) {
        int perRow = entries / n;
        values = new double[perRow * n];
        columns = new int[perRow * n];
        rows = new int[n + 1];
        for (int row = 0; row < n; row++) {
            rows[row + 1] = (row + 1) * perRow;
            int step = Math.max(1, row / perRow);
            for (int i = 0; i < perRow; i++) {
                columns[row * perRow + i] = i * step % n;
                values[row * perRow + i] = rng.real();
            }
        }
    }

    void multiply(double[] x, double[] y) {
        for (int row = 0; row < y.length; row++) {
            double sum = 0;
            for (int i = rows[row]; i < rows[row + 1]; i++) {
                sum += x[columns[i]] * values[i];
            }
            y[row] = sum;
        }
    }
}
