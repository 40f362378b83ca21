package varve.graph;

/** The normal equations of a least-squares problem, collected row by row and solved by Cholesky's decomposition. */
final class NormalEquations {
    private final int size;
    private final double[][] matrix;
    private final double[] right;

    NormalEquations(int size) {
        this.size = size;
        matrix = new double[size][size];
        right = new double[size];
    }

    void add(double[] row, double wanted) {
        for (int i = 0; i < size; i++) {
            double[] line = matrix[i];
            double x = row[i];
            for (int j = 0; j <= i; j++) {
                line[j] += x * row[j];
            }
            right[i] += x * wanted;
        }
    }

    /** The solution, with something added to the diagonal. Afterwards the equations are used up. */
    double[] solve(double ridge) {
        for (int i = 0; i < size; i++) {
            double[] line = matrix[i];
            line[i] += ridge;
            for (int j = 0; j <= i; j++) {
                double sum = line[j];
                for (int k = 0; k < j; k++) {
                    sum -= line[k] * matrix[j][k];
                }
                line[j] = i == j ? Math.sqrt(sum) : sum / matrix[j][j];
            }
        }
        double[] x = new double[size];
        for (int i = 0; i < size; i++) {
            double sum = right[i];
            for (int k = 0; k < i; k++) {
                sum -= matrix[i][k] * x[k];
            }
            x[i] = sum / matrix[i][i];
        }
        for (int i = size - 1; i >= 0; i--) {
            double sum = x[i];
            for (int k = i + 1; k < size; k++) {
                sum -= matrix[k][i] * x[k];
            }
            x[i] = sum / matrix[i][i];
        }
        return x;
    }
}
