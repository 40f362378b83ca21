package varve.kinds;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** Aircraft that come too near each other: vectors as objects that live for a moment, and maps in order. */
final class Aircraft {
    private record Vector(double x, double y, double z) {
        Vector plus(Vector o) {
            return new Vector(x + o.x, y + o.y, z + o.z);
        }

        Vector minus(Vector o) {
            return new Vector(x - o.x, y - o.y, z - o.z);
        }

        double dot(Vector o) {
            return x * o.x + y * o.y + z * o.z;
        }

        double square() {
            return dot(this);
        }

        Vector times(double by) {
            return new Vector(x * by, y * by, z * by);
        }
    }

    private static final class Cell implements Comparable<Cell> {
        final int x;
        final int y;

        Cell(int x, int y) {
            this.x = x;
            this.y = y;
        }

        @Override
        public int compareTo(Cell o) {
            int by = Integer.compare(x, o.x);
            return by != 0 ? by : Integer.compare(y, o.y);
        }
    }

    private record Motion(int sign, Vector from, Vector to) {
        Vector at(double part) {
            return from.plus(to.minus(from).times(part));
        }

        boolean meets(Motion o) {
            Vector apart = from.minus(o.from);
            Vector turn = to.minus(from).minus(o.to.minus(o.from));
            double a = turn.square();
            double best = a == 0 ? 0 : -apart.dot(turn) / a;
            double part = Math.max(0, Math.min(1, best));
            return at(part).minus(o.at(part)).square() < 1;
        }
    }

    static long run() {
        TreeMap<Integer, Vector> places = new TreeMap<>();
        long meetings = 0;
        for (int frame = 0; frame < 20; frame++) {
            double time = frame / 10.0;
            List<Motion> motions = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                double angle = time + i * 0.7;
                Vector now = new Vector(20 + time * (i % 7) + 5 * Math.cos(angle), 10 + i * 0.1 + 5 * Math.sin(angle), 10);
                Vector before = places.put(i, now);
                motions.add(new Motion(i, before == null ? now : before, now));
            }
            meetings = meetings * 3 + look(motions);
        }
        return meetings;
    }

    private static int look(List<Motion> motions) {
        TreeMap<Cell, List<Motion>> cells = new TreeMap<>();
        for (Motion m : motions) {
            int x0 = (int) (Math.min(m.from.x, m.to.x) / 2);
            int x1 = (int) (Math.max(m.from.x, m.to.x) / 2);
            int y0 = (int) (Math.min(m.from.y, m.to.y) / 2);
            int y1 = (int) (Math.max(m.from.y, m.to.y) / 2);
            for (int x = x0; x <= x1; x++) {
                for (int y = y0; y <= y1; y++) {
                    cells.computeIfAbsent(new Cell(x, y), c -> new ArrayList<>()).add(m);
                }
            }
        }
        int meetings = 0;
        for (List<Motion> near : cells.values()) {
            for (int i = 0; i < near.size(); i++) {
                for (int k = i + 1; k < near.size(); k++) {
                    if (near.get(i).meets(near.get(k))) {
                        meetings++;
                    }
                }
            }
        }
        return meetings;
    }
}
