package varve.kinds;

/** All orders of six things, by recursion and exchanging. */
final class Permutations {
    private int count;
    private final int[] order = new int[6];

    static long run() {
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            Permutations p = new Permutations();
            for (int k = 0; k < 6; k++) {
                p.order[k] = k;
            }
            p.permute(6);
            sum += p.count * (1 + p.order[0]);
        }
        return sum;
    }

    private void permute(int n) {
        count++;
        if (n != 0) {
            int m = n - 1;
            permute(m);
            for (int i = m; i >= 0; i--) {
                swap(m, i);
                permute(m);
                swap(m, i);
            }
        }
    }

    private void swap(int i, int j) {
        int t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}
