package varve.kinds;

/** Balls in a box. */
final class Balls {
    private int x;
    private int y;
    private int dx;
    private int dy;

    private Balls(Random random) {
        x = random.next() % 500;
        y = random.next() % 500;
        dx = random.next() % 300 - 150;
        dy = random.next() % 300 - 150;
    }

    static long run() {
        long bounces = 0;
        for (int i = 0; i < 100; i++) {
            Random random = new Random(74);
            Balls[] balls = new Balls[100];
            for (int k = 0; k < balls.length; k++) {
                balls[k] = new Balls(random);
            }
            for (int step = 0; step < 50; step++) {
                for (Balls ball : balls) {
                    if (ball.bounces()) {
                        bounces++;
                    }
                }
            }
        }
        return bounces;
    }

    private boolean bounces() {
        boolean hit = false;
        x += dx;
        y += dy;
        if (x > 500) {
            x = 500;
            dx = -Math.abs(dx);
            hit = true;
        }
        if (x < 0) {
            x = 0;
            dx = Math.abs(dx);
            hit = true;
        }
        if (y > 500) {
            y = 500;
            dy = -Math.abs(dy);
            hit = true;
        }
        if (y < 0) {
            y = 0;
            dy = Math.abs(dy);
            hit = true;
        }
        return hit;
    }
}
