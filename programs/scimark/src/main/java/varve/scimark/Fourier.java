package varve.scimark;

/** The discrete Fourier transform of a power of two complex numbers, in place (Cooley and Tukey, decimation in time). */
final class Fourier {
    private final int n;
    private final double[] cosines;
    private final double[] sines;

    Fourier(int n) {
        this.n = n;
        cosines = new double[n / 2];
        sines = new double[n / 2];
        for (int i = 0; i < n / 2; i++) {
            cosines[i] = Math.cos(2 * Math.PI * i / n);
            sines[i] = Math.sin(2 * Math.PI * i / n);
        }
    }

    /** Numbers are pairs of real and imaginary parts. */
    void forward(double[] data) {
        transform(data, -1);
    }

    void inverse(double[] data) {
        transform(data, 1);
        for (int i = 0; i < data.length; i++) {
            data[i] /= n;
        }
    }

    private void transform(double[] data, int sign) {
        reverseBits(data);
        for (int half = 1; half < n; half *= 2) {
            int stride = n / (2 * half);
            for (int k = 0; k < half; k++) {
                double wr = cosines[k * stride];
                double wi = sign * sines[k * stride];
                for (int start = k; start < n; start += 2 * half) {
                    int a = 2 * start;
                    int b = 2 * (start + half);
                    double re = data[b] * wr - data[b + 1] * wi;
                    double im = data[b] * wi + data[b + 1] * wr;
                    data[b] = data[a] - re;
                    data[b + 1] = data[a + 1] - im;
                    data[a] += re;
                    data[a + 1] += im;
                }
            }
        }
    }

    private void reverseBits(double[] data) {
        int shift = Integer.numberOfLeadingZeros(n) + 1;
        for (int i = 0; i < n; i++) {
            int j = Integer.reverse(i) >>> shift;
            if (i < j) {
                swap(data, 2 * i, 2 * j);
                swap(data, 2 * i + 1, 2 * j + 1);
            }
        }
    }

    private static void swap(double[] data, int i, int j) {
        double kept = data[i];
        data[i] = data[j];
        data[j] = kept;
    }
}
