package varve.graph;

import varve.common.Rng;

/**
 * Factors of users and items whose products come near the ratings, by alternating least squares: with the other side's factors fixed,
 * each vertex's own are the solution of a small system of linear equations.
 */
final class LeastSquares implements VertexProgram {
    private static final double REGULARIZATION = 0.065;

    private final int factors;
    private final double[][] vectors;
    private double squaredErrors;
    private long ratings;

    LeastSquares(int vertices, int factors, long seed) {
        this.factors = factors;
        vectors = new double[vertices][];
        Rng rng = new Rng(seed);
        for (int v = 0; v < vertices; v++) {
            double[] vector = new double[factors];
            for (int i = 0; i < factors; i++) {
                vector[i] = rng.real();
            }
            vectors[v] = vector;
        }
    }

    double[] vector(int vertex) {
        return vectors[vertex];
    }

    @Override
    public void update(Vertex vertex, int iteration, Schedule schedule) {
        int degree = vertex.incoming() + vertex.outgoing();
        if (degree == 0) {
            return;
        }
        NormalEquations equations = new NormalEquations(factors);
        for (int i = 0; i < vertex.incoming(); i++) {
            add(equations, vertex.incoming(i));
        }
        for (int i = 0; i < vertex.outgoing(); i++) {
            add(equations, vertex.outgoing(i));
        }
        double[] solution = equations.solve(REGULARIZATION * degree);
        vectors[vertex.id()] = solution;
        // The error as the items see it, when the users' factors are fresh.
        for (int i = 0; i < vertex.incoming(); i++) {
            Edge edge = vertex.incoming(i);
            double error = edge.value() - product(solution, vectors[edge.neighbour()]);
            squaredErrors += error * error;
            ratings++;
        }
        vertex.setValue(solution[0]);
    }

    private void add(NormalEquations equations, Edge edge) {
        equations.add(vectors[edge.neighbour()], edge.value());
    }

    private static double product(double[] x, double[] y) {
        double sum = 0;
        for (int i = 0; i < x.length; i++) {
            sum += x[i] * y[i];
        }
        return sum;
    }

    @Override
    public String afterIteration(int iteration) {
        double error = Math.sqrt(squaredErrors / ratings);
        squaredErrors = 0;
        ratings = 0;
        return "iteration " + iteration + ": root mean squared error " + Math.round(error * 1e6) / 1e6;
    }
}
