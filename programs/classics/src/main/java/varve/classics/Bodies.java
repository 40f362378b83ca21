package varve.classics;

import varve.common.Checksum;

/** The sun and its large planets under gravity, by small steps (symplectic: velocities first, then places). */
final class Bodies {
    private static final double DAYS_PER_YEAR = 365.24;
    private static final double SOLAR_MASS = 4 * Math.PI * Math.PI;
    private static final double STEP_YEARS = 0.01;

    /** Units: the distance of the earth from the sun, years, and a mass that makes the constant of gravity one. */
    private static final class Body {
        private final double mass;
        private double x;
        private double y;
        private double z;
        private double vx;
        private double vy;
        private double vz;

        Body(double x, double y, double z, double vxPerDay, double vyPerDay, double vzPerDay, double solarMasses) {
            this.x = x;
            this.y = y;
            this.z = z;
            vx = vxPerDay * DAYS_PER_YEAR;
            vy = vyPerDay * DAYS_PER_YEAR;
            vz = vzPerDay * DAYS_PER_YEAR;
            mass = solarMasses * SOLAR_MASS;
        }
    }

    private final Body[] bodies = {
        new Body(0, 0, 0, 0, 0, 0, 1),
        // Jupiter, Saturn, Uranus, Neptune, as the benchmarks game has them.
        new Body(4.84143144246472090, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694,
                0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609),
        new Body(8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411,
                0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812),
        new Body(12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618,
                0.0023784717395948095, -0.0000296589568540237556, 0.0000436624404335156298),
        new Body(15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322,
                0.00162824170038242295, -0.000095159225451971587, 0.0000515138902046611451),
    };

    private Bodies() {
        double px = 0;
        double py = 0;
        double pz = 0;
        for (Body b : bodies) {
            px += b.vx * b.mass;
            py += b.vy * b.mass;
            pz += b.vz * b.mass;
        }
        // The whole does not drift.
        bodies[0].vx = -px / SOLAR_MASS;
        bodies[0].vy = -py / SOLAR_MASS;
        bodies[0].vz = -pz / SOLAR_MASS;
    }

    static void run(int steps) {
        Bodies system = new Bodies();
        System.out.println("nbody: energy " + Math.round(system.energy() * 1e9) / 1e9);
        for (int i = 0; i < steps; i++) {
            system.advance();
        }
        Checksum checksum = new Checksum();
        for (Body b : system.bodies) {
            checksum.addExactly(b.x).addExactly(b.y).addExactly(b.z);
        }
        System.out.println("nbody: energy " + Math.round(system.energy() * 1e9) / 1e9 + ", checksum " + checksum);
    }

    private void advance() {
        for (int i = 0; i < bodies.length; i++) {
            Body a = bodies[i];
            for (int j = i + 1; j < bodies.length; j++) {
                Body b = bodies[j];
                double dx = a.x - b.x;
                double dy = a.y - b.y;
                double dz = a.z - b.z;
                double squared = dx * dx + dy * dy + dz * dz;
                double pull = STEP_YEARS / (squared * Math.sqrt(squared));
                a.vx -= dx * b.mass * pull;
                a.vy -= dy * b.mass * pull;
                a.vz -= dz * b.mass * pull;
                b.vx += dx * a.mass * pull;
                b.vy += dy * a.mass * pull;
                b.vz += dz * a.mass * pull;
            }
        }
        for (Body b : bodies) {
            b.x += STEP_YEARS * b.vx;
            b.y += STEP_YEARS * b.vy;
            b.z += STEP_YEARS * b.vz;
        }
    }

    private double energy() {
        double sum = 0;
        for (int i = 0; i < bodies.length; i++) {
            Body a = bodies[i];
            sum += a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz) / 2;
            for (int j = i + 1; j < bodies.length; j++) {
                Body b = bodies[j];
                double dx = a.x - b.x;
                double dy = a.y - b.y;
                double dz = a.z - b.z;
                sum -= a.mass * b.mass / Math.sqrt(dx * dx + dy * dy + dz * dz);
            }
        }
        return sum;
    }
}
