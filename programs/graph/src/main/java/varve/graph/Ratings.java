package varve.graph;

import varve.common.Rng;
import varve.common.Zipf;

/** Ratings from 1 to 5 of users for items: popular items get more, and tastes lie in a few hidden dimensions, with noise. */
final class Ratings implements EdgeSource {
    private static final int HIDDEN_DIMENSIONS = 4;

    private final int users;
    private final int items;
    private final int ratingsPerUser;
    private final long seed;

    Ratings(int users, int items, int ratingsPerUser, long seed) {
        this.users = users;
        this.items = items;
        this.ratingsPerUser = ratingsPerUser;
        this.seed = seed;
    }

    @Override
    public void forEach(EdgeConsumer consumer) {
        Rng rng = new Rng(seed);
        double[][] qualities = new double[items][];
        for (int i = 0; i < items; i++) {
            qualities[i] = vector(rng);
        }
        Zipf popularity = new Zipf(items);
        for (int user = 0; user < users; user++) {
            double[] taste = vector(rng);
            for (int i = 0; i < ratingsPerUser; i++) {
                int item = popularity.next(rng);
                double noise = rng.real() - 0.5;
                double rating = 3 + 2 * product(taste, qualities[item]) + noise;
                consumer.edge(user, users + item, Math.max(1, Math.min(5, rating)));
            }
        }
    }

    private static double[] vector(Rng rng) {
        double[] v = new double[HIDDEN_DIMENSIONS];
        for (int i = 0; i < v.length; i++) {
            v[i] = 2 * rng.real() - 1;
        }
        return v;
    }

    private static double product(double[] x, double[] y) {
        double sum = 0;
        for (int i = 0; i < x.length; i++) {
            sum += x[i] * y[i];
        }
        return sum;
    }
}
