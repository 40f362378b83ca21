package varve.common;

/** Numbers below a bound, the one at rank r with a frequency proportional to 1/r. */
public final class Zipf {
    private final double[] cumulative;

    public Zipf(int bound) {
        cumulative = new double[bound];
        double sum = 0;
        for (int i = 0; i < bound; i++) {
            sum += 1.0 / (i + 1);
            cumulative[i] = sum;
        }
    }

    public int next(Rng rng) {
        double at = rng.real() * cumulative[cumulative.length - 1];
        int low = 0;
        int high = cumulative.length - 1;
        while (low < high) {
            int middle = low + high >>> 1;
            if (cumulative[middle] > at) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }
}
