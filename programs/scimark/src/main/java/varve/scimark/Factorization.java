package varve.scimark;

/** Decomposes a dense matrix into triangular ones, in place, with partial pivoting. */
final class Factorization {
    private Factorization() {
    }

    /** Fills in the row exchanged at each step. */
    static void run(double[][] a, int[] pivots) {
        int n = a.length;
        for (int column = 0; column < n; column++) {
            int pivot = column;
            for (int i = column + 1; i < n; i++) {
                if (Math.abs(a[i][column]) > Math.abs(a[pivot][column])) {
                    pivot = i;
                }
            }
            pivots[column] = pivot;
            if (a[pivot][column] == 0) {
                throw new ArithmeticException("the matrix is singular");
            }
            double[] row = a[pivot];
            a[pivot] = a[column];
            a[column] = row;
            double reciprocal = 1 / row[column];
            for (int i = column + 1; i < n; i++) {
                double[] target = a[i];
                double factor = target[column] * reciprocal;
                target[column] = factor;
                for (int j = column + 1; j < n; j++) {
                    target[j] -= factor * row[j];
                }
            }
        }
    }

    /** Solves for a right side with the result of {@link #run}, in place. */
    static void solve(double[][] lu, int[] pivots, double[] b) {
        int n = lu.length;
        for (int i = 0; i < n; i++) {
            double kept = b[pivots[i]];
            b[pivots[i]] = b[i];
            b[i] = kept;
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                b[i] -= lu[i][j] * b[j];
            }
        }
        for (int i = n - 1; i >= 0; i--) {
            for (int j = i + 1; j < n; j++) {
                b[i] -= lu[i][j] * b[j];
            }
            b[i] /= lu[i][i];
        }
    }
}
