package varve.kinds;

/** The towers of Hanoi, with disks that are linked objects. */
final class Towers {
    private static final class Disk {
        final int size;
        Disk below;

        Disk(int size) {
            this.size = size;
        }
    }

    private final Disk[] piles = new Disk[3];
    private int moves;

    static long run() {
        long sum = 0;
        for (int i = 0; i < 5; i++) {
            Towers towers = new Towers();
            for (int size = 13; size >= 0; size--) {
                towers.push(new Disk(size), 0);
            }
            towers.move(13, 0, 1);
            sum += towers.moves;
        }
        return sum;
    }

    private void push(Disk disk, int pile) {
        Disk top = piles[pile];
        if (top != null && disk.size >= top.size) {
            throw new IllegalStateException("a larger disk on a smaller one");
        }
        disk.below = top;
        piles[pile] = disk;
    }

    private Disk pop(int pile) {
        Disk top = piles[pile];
        if (top == null) {
            throw new IllegalStateException("an empty pile");
        }
        piles[pile] = top.below;
        top.below = null;
        return top;
    }

    private void moveTop(int from, int to) {
        push(pop(from), to);
        moves++;
    }

    private void move(int disks, int from, int to) {
        if (disks == 1) {
            moveTop(from, to);
            return;
        }
        int other = 3 - from - to;
        move(disks - 1, from, other);
        moveTop(from, to);
        move(disks - 1, other, to);
    }
}
