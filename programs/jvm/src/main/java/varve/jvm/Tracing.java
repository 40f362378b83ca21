package varve.jvm;

import java.util.ArrayList;
import java.util.List;

/** Traces rays through a scene of spheres with reflections and shadows: an operation is a line of the picture. Vectors are objects. */
final class Tracing implements Work {
    private static final int WIDTH = 160;
    private static final int HEIGHT = 120;
    private static final int BOUNCES = 4;
    private static final double NEAR = 1e-4;

    private record Vector(double x, double y, double z) {
        Vector plus(Vector o) {
            return new Vector(x + o.x, y + o.y, z + o.z);
        }

        Vector minus(Vector o) {
            return new Vector(x - o.x, y - o.y, z - o.z);
        }

        Vector times(double f) {
            return new Vector(x * f, y * f, z * f);
        }

        double dot(Vector o) {
            return x * o.x + y * o.y + z * o.z;
        }

        Vector unit() {
            return times(1 / Math.sqrt(dot(this)));
        }
    }

    private record Ray(Vector from, Vector way) {
        Vector at(double distance) {
            return from.plus(way.times(distance));
        }
    }

    private record Sphere(Vector middle, double radius, Vector colour, double mirror) {
        /** How far a ray goes to it; none if it misses. */
        Hit hit(Ray ray) {
            Vector to = ray.from.minus(middle);
            double b = to.dot(ray.way);
            double root = b * b - to.dot(to) + radius * radius;
            if (root < 0) {
                return null;
            }
            double distance = -b - Math.sqrt(root);
            return distance > NEAR ? new Hit(this, distance) : null;
        }
    }

    private record Hit(Sphere what, double distance) {
    }

    private final List<Sphere> spheres = new ArrayList<>();
    private final Vector light = new Vector(-0.5, 1, -0.7).unit();

    Tracing(long seed) {
        Random random = new Random(seed);
        for (int i = 0; i < 60; i++) {
            Vector middle = new Vector(random.below(200) / 10.0 - 10, random.below(140) / 10.0 - 7, 5 + random.below(200) / 10.0);
            Vector colour = new Vector(random.below(256), random.below(256), random.below(256));
            spheres.add(new Sphere(middle, 0.5 + random.below(20) / 10.0, colour, random.below(8) / 10.0));
        }
    }

    @Override
    public long run(int thread, Random random, int size) {
        long digest = 0;
        for (int number = 0; number < size; number++) {
            int y = random.below(HEIGHT);
            StringBuilder line = new StringBuilder();
            for (int x = 0; x < WIDTH; x++) {
                Vector way = new Vector((x - WIDTH / 2.0) / HEIGHT, (HEIGHT / 2.0 - y) / HEIGHT, 1).unit();
                Vector colour = trace(new Ray(new Vector(0, 0, -5), way), 0);
                line.append((int) colour.x).append(' ').append((int) colour.y).append(' ').append((int) colour.z).append('\n');
            }
            digest += Random.digest(line);
        }
        return digest;
    }

    private Vector trace(Ray ray, int bounce) {
        Hit nearest = nearest(ray);
        if (nearest == null) {
            return new Vector(40, 60, 120).times(1 + ray.way.y);
        }
        Sphere sphere = nearest.what;
        Vector at = ray.at(nearest.distance);
        Vector normal = at.minus(sphere.middle).unit();
        boolean lit = nearest(new Ray(at, light)) == null;
        Vector own = sphere.colour.times(0.1 + (lit ? 0.9 * Math.max(0, normal.dot(light)) : 0));
        if (bounce == BOUNCES || sphere.mirror == 0) {
            return own;
        }
        Vector way = ray.way.minus(normal.times(2 * normal.dot(ray.way)));
        return own.times(1 - sphere.mirror).plus(trace(new Ray(at, way), bounce + 1).times(sphere.mirror));
    }

    private Hit nearest(Ray ray) {
        Hit nearest = null;
        for (Sphere sphere : spheres) {
            Hit hit = sphere.hit(ray);
            if (hit != null && (nearest == null || hit.distance < nearest.distance)) {
                nearest = hit;
            }
        }
        return nearest;
    }
}
