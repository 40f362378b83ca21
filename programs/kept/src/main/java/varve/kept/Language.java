package varve.kept;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import varve.Varve;

/** Features of the language. */
final class Language {
    private Language() {
    }

    interface Shape {
        double area();

        default String describe() {
            return name() + " of " + area();
        }

        default String name() {
            return "shape";
        }
    }

    record Square(double side) implements Shape {
        @Override
        public double area() {
            return side * side;
        }
    }

    static final class Circle implements Shape {
        double radius = 1;

        @Override
        public double area() {
            return 3 * radius * radius;
        }

        @Override
        public String name() {
            return "circle";
        }
    }

    record Pair<A, B>(A first, B second) {
    }

    record Checked(int low, int high, List<String> names) {
        Checked {
            if (low > high) {
                throw new IllegalArgumentException(low + " > " + high);
            }
            names = List.copyOf(names);
        }
    }

    enum Plain {
        ONE, TWO, THREE
    }

    enum Operation {
        ADD("+") {
            @Override
            int apply(int a, int b) {
                return a + b;
            }
        },
        MULTIPLY("*") {
            @Override
            int apply(int a, int b) {
                return a * b;
            }
        };

        final String sign;
        int used;

        Operation(String sign) {
            this.sign = sign;
        }

        abstract int apply(int a, int b);
    }

    abstract static class Animal {
        String name;
        int legs = 4;

        Animal(String name) {
            this.name = name;
        }

        abstract String sound();

        String say() {
            return name + " says " + sound() + " on " + legs;
        }
    }

    static class Dog extends Animal {
        /** Hides a field of the superclass. */
        String name = "dog";

        Dog(String name) {
            super(name);
        }

        @Override
        String sound() {
            return "woof";
        }
    }

    static final class Puppy extends Dog {
        byte months = 3;

        Puppy(String name) {
            super(name);
        }

        @Override
        String sound() {
            return super.sound() + months;
        }
    }

    static final class Fields {
        boolean yes;
        byte small = Byte.MIN_VALUE;
        short medium = Short.MIN_VALUE;
        char letter = '\uFFFF';
        int number = Integer.MIN_VALUE;
        long large = Long.MIN_VALUE;
        float real = Float.MIN_VALUE;
        double twice = Double.MIN_VALUE;
        final int fixed;
        String text;
        Object any = this;
        transient int passing = 5;
        volatile int shared = 6;
        static int counted = 7;

        Fields(int fixed) {
            this.fixed = fixed;
        }
    }

    /** Has inner classes, which refer to the object around them. */
    static final class Outer {
        int n = 1;

        final class Inner {
            int m = 10;

            final class Innermost {
                int sum() {
                    return n + m++;
                }
            }
        }
    }

    static final class Chain<T> implements Iterable<T> {
        private Node<T> head;
        private int size;

        private static final class Node<T> {
            T value;
            Node<T> next;
        }

        void push(T value) {
            Node<T> node = new Node<>();
            node.value = value;
            node.next = head;
            head = node;
            size++;
        }

        @Override
        public Iterator<T> iterator() {
            return new Iterator<T>() {
                private Node<T> at = head;

                @Override
                public boolean hasNext() {
                    return at != null;
                }

                @Override
                public T next() {
                    if (at == null) {
                        throw new NoSuchElementException();
                    }
                    T value = at.value;
                    at = at.next;
                    return value;
                }
            };
        }
    }

    static final class Key implements Comparable<Key> {
        final String a;
        final int b;

        Key(String a, int b) {
            this.a = a;
            this.b = b;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).a.equals(a) && ((Key) other).b == b;
        }

        @Override
        public int hashCode() {
            return Objects.hash(a, b);
        }

        @Override
        public int compareTo(Key other) {
            int first = a.compareTo(other.a);
            return first != 0 ? first : Integer.compare(b, other.b);
        }

        @Override
        public String toString() {
            return a + b;
        }
    }

    static final class TooMuch extends RuntimeException {
        final int limit;

        TooMuch(String message, int limit, Throwable cause) {
            super(message, cause);
            this.limit = limit;
        }
    }

    static final class Cell {
        long a = 100;
        long b = 100;
    }

    static final class Copied implements Cloneable {
        int n = 1;
        int[] shared = {1};

        Copied copy() {
            try {
                return (Copied) clone();
            } catch (CloneNotSupportedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void add(Suite suite) {
        suite.<List<Shape>>change("Interfaces with default methods", () -> new ArrayList<>(List.of(new Square(3), new Circle())), (list, s) -> {
            for (Shape each : list) {
                s.say(each.describe());
            }
            list.add(s.n % 2 == 0 ? new Square(s.n) : new Circle());
            ((Circle) list.get(1)).radius += 1;
        });
        suite.<Pair<String, Pair<Integer, Plain>>>replace("Records", () -> new Pair<>("p", new Pair<>(1, Plain.ONE)), (p, s) -> {
            s.say(p, p.equals(new Pair<>("p", new Pair<>(1, Plain.ONE))), p.second().second() == Plain.ONE);
            return new Pair<>("p" + s.n, new Pair<>(s.n, Plain.values()[s.n % 3]));
        });
        suite.<Map<Pair<String, Integer>, String>>change("Records as keys", HashMap::new, (map, s) -> {
            s.sorted(map).say(map.get(new Pair<>("k", 0)), map.get(new Pair<>("k", null)));
            map.put(new Pair<>("k", s.n), "v" + s.n);
            map.put(new Pair<>("k", null), "none" + s.n);
        });
        suite.<Checked>replace("Records with a compact constructor", () -> new Checked(1, 2, List.of("a")), (c, s) -> {
            s.say(c, c.names().size());
            return new Checked(c.low() + 1, c.high() + 2, List.of("a" + s.n, "b"));
        });
        suite.<Plain[]>change("Enumeration", () -> new Plain[] {Plain.ONE, Plain.TWO}, (all, s) -> {
            s.say(all[0], all[1], all[1] == Plain.TWO || all[1] == Plain.THREE, all[0].ordinal(), all[0].compareTo(all[1]) < 0, Plain.valueOf(all[1].name()) == all[1]);
            switch (all[1]) {
                case TWO -> s.say("two");
                case THREE -> s.say("three");
                default -> s.say("other");
            }
            all[1] = all[1] == Plain.TWO ? Plain.THREE : Plain.TWO;
        });
        suite.<List<Operation>>change("Enumeration with bodies and fields", () -> new ArrayList<>(List.of(Operation.ADD)), (list, s) -> {
            for (Operation each : list) {
                s.say(each, each.sign, each.apply(3, 4), each.getDeclaringClass() == Operation.class, each.used++);
            }
            list.add(Operation.values()[(s.n + 1) % 2]);
        });
        suite.<Map<Operation, Integer>>change("EnumMap of an enumeration with bodies", () -> new EnumMap<>(Operation.class), (map, s) -> {
            s.say(map, map.get(Operation.MULTIPLY));
            map.put(Operation.values()[(s.n + 1) % 2], s.n);
        });
        suite.<List<Animal>>change("Inheritance and hidden fields", () -> new ArrayList<>(List.of(new Dog("rex"), new Puppy("kid"))), (list, s) -> {
            for (Animal each : list) {
                s.say(each.say(), ((Dog) each).name, each instanceof Puppy);
                each.legs--;
                ((Dog) each).name += s.n;
            }
            list.add(new Puppy("p" + s.n));
        });
        suite.<Fields>change("Fields of all types", () -> new Fields(42), (f, s) -> {
            s.say(f.yes, f.small, f.medium, (int) f.letter, f.number, f.large, Float.floatToIntBits(f.real), Double.doubleToLongBits(f.twice), f.fixed, f.text, f.any == f,
                f.passing, f.shared);
            f.yes = !f.yes;
            f.small--;
            f.medium--;
            f.letter++;
            f.number--;
            f.large--;
            f.real *= 2;
            f.twice *= 3;
            f.text = "t" + s.n;
            f.passing++;
            f.shared += s.n;
        });
        suite.<Object[]>change("Inner classes", () -> {
            Outer outer = new Outer();
            Outer.Inner inner = outer.new Inner();
            return new Object[] {outer, inner, inner.new Innermost()};
        }, (all, s) -> {
            ((Outer) all[0]).n += 100;
            s.say(((Outer.Inner.Innermost) all[2]).sum(), ((Outer.Inner) all[1]).m);
        });
        suite.<Object[]>change("Local class", () -> {
            int base = 7;
            final class Local {
                int n;

                int next() {
                    return base + n++;
                }
            }
            return new Object[] {new Local()};
        }, (all, s) -> s.say(all[0].getClass().getName().startsWith("varve.kept.Language$")));
        suite.<Shape>change("Anonymous class", () -> {
            double[] side = {2};
            return new Shape() {
                @Override
                public double area() {
                    return side[0]++;
                }

                @Override
                public String name() {
                    return "anonymous " + side[0];
                }
            };
        }, (shape, s) -> s.say(shape.area(), shape.describe()));
        suite.<TreeSet<String>>change("Anonymous comparator", () -> new TreeSet<>(new Comparator<String>() {
            @Override
            public int compare(String a, String b) {
                return b.compareTo(a);
            }
        }), (set, s) -> {
            set.add("a" + s.n);
            set.add("b" + s.n);
            s.say(set);
        });
        suite.<Chain<Object>>change("A list of one's own", Chain::new, (chain, s) -> {
            StringBuilder text = new StringBuilder();
            for (Object each : chain) {
                text.append(each).append(';');
            }
            s.say(chain.size, text);
            chain.push(s.n);
            chain.push("text" + s.n);
        });
        suite.<Object[]>change("Keys with equals, hashCode and compareTo", () -> new Object[] {new HashMap<Key, String>(), new TreeMap<Key, String>()}, (all, s) -> {
            @SuppressWarnings("unchecked")
            Map<Key, String> hashed = (Map<Key, String>) all[0];
            @SuppressWarnings("unchecked")
            Map<Key, String> sorted = (Map<Key, String>) all[1];
            s.sorted(hashed).say(sorted, hashed.get(new Key("k", 1)), sorted.get(new Key("k", 1)));
            hashed.put(new Key("k", s.n), "h" + s.n);
            sorted.put(new Key("k", -s.n), "s" + s.n);
            hashed.put(new Key("k", 1), "one" + s.n);
        });
        suite.<List<RuntimeException>>change("Exceptions as values", () -> new ArrayList<>(List.of(new IllegalStateException("first"))), (list, s) -> {
            for (RuntimeException each : list) {
                s.say(each.getClass().getName(), each.getMessage());
            }
            list.add(new IllegalArgumentException("a" + s.n));
        });
        suite.<TooMuch>replace("Exceptions with causes and fields", () -> new TooMuch("first", 1, null), (e, s) -> {
            try {
                throw e;
            } catch (TooMuch caught) {
                s.say(caught.getMessage(), caught.limit, caught.getCause() == null ? "" : caught.getCause().getMessage());
            }
            return new TooMuch("next", s.n, e);
        });
        suite.<Copied[]>change("Clones", () -> new Copied[] {new Copied(), null}, (all, s) -> {
            s.say(all[0].n, all[0].shared[0], all[1] == null ? -1 : all[1].n);
            all[1] = all[0].copy();
            all[1].n += 10;
            all[1].shared[0]++;
            all[0].n++;
        });
        suite.<Cell>change("A region within a region throws", Cell::new, (cell, s) -> {
            s.say(cell.a + cell.b);
            Varve.region(() -> {
                cell.a -= 50;
                try {
                    Varve.region(() -> {
                        throw new IllegalStateException("audit failed");
                    });
                } catch (IllegalStateException e) {
                    s.say("caught", e.getMessage());
                }
                cell.b += 50;
            });
            s.say(cell.a, cell.b, cell.a + cell.b);
        });
        suite.<Object[]>change("A cycle", () -> {
            Object[] first = new Object[3];
            first[0] = new Object[] {first, "second"};
            first[1] = first;
            return first;
        }, (all, s) -> {
            s.say(((Object[]) all[0])[0] == all, all[1] == all, all[2]);
            all[2] = s.n;
        });
        suite.<List<Object>>change("One object twice", () -> {
            List<Object> shared = new ArrayList<>(List.of("x"));
            return new ArrayList<>(List.of(shared, shared, new ArrayList<>(shared)));
        }, (list, s) -> {
            s.say(list, list.get(0) == list.get(1), list.get(1) == list.get(2), list.get(1).equals(list.get(2)));
            @SuppressWarnings("unchecked")
            List<Object> first = (List<Object>) list.get(0);
            first.add(s.n);
        });
        suite.<Chain<Integer>>change("A long chain", Chain::new, (chain, s) -> {
            long sum = 0;
            for (int each : chain) {
                sum += each;
            }
            s.say(chain.size, sum);
            for (int i = 0; i < 20_000; i++) {
                chain.push(i);
            }
        });
    }
}
