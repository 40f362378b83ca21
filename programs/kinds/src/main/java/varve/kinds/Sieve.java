package varve.kinds;

/** Primes by a sieve of flags. */
final class Sieve {
    static long run() {
        long sum = 0;
        for (int i = 0; i < 50; i++) {
            boolean[] flags = new boolean[5000];
            java.util.Arrays.fill(flags, true);
            sum += count(flags, 5000);
        }
        return sum;
    }

    private static int count(boolean[] flags, int size) {
        int primes = 0;
        for (int i = 2; i <= size; i++) {
            if (flags[i - 1]) {
                primes++;
                for (int k = i + i; k <= size; k += i) {
                    flags[k - 1] = false;
                }
            }
        }
        return primes;
    }
}
