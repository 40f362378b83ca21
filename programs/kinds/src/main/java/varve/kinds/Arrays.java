package varve.kinds;

/** Trees of arrays. */
final class Arrays {
    private int count;

    static long run() {
        Arrays arrays = new Arrays();
        Random random = new Random(7);
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += arrays.tree(7, random).length;
        }
        return sum + arrays.count;
    }

    private Object[] tree(int depth, Random random) {
        count++;
        if (depth == 1) {
            return new Object[random.next() % 10 + 1];
        }
        Object[] children = new Object[4];
        for (int i = 0; i < 4; i++) {
            children[i] = tree(depth - 1, random);
        }
        return children;
    }
}
