package varve.kinds;

/** Short recursive functions over linked lists. */
final class Lists {
    private static final class Link {
        final int value;
        Link next;

        Link(int value) {
            this.value = value;
        }

        int length() {
            return next == null ? 1 : 1 + next.length();
        }
    }

    static long run() {
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += turn(make(16), make(11), make(6)).length();
        }
        return sum;
    }

    private static Link make(int length) {
        if (length == 0) {
            return null;
        }
        Link link = new Link(length);
        link.next = make(length - 1);
        return link;
    }

    private static boolean isShorter(Link x, Link y) {
        Link left = x;
        Link right = y;
        while (right != null) {
            if (left == null) {
                return true;
            }
            left = left.next;
            right = right.next;
        }
        return false;
    }

    private static Link turn(Link x, Link y, Link z) {
        if (!isShorter(y, x)) {
            return z;
        }
        return turn(turn(x.next, y, z), turn(y.next, z, x), turn(z.next, x, y));
    }
}
