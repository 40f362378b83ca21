package varve.evolve;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import varve.Varve;

/** Objects of many classes in collections of any. The next version puts none of them there, and has to call their methods all the same. */
final class Notes {
    private Notes() {
    }

    /** Has an area. */
    interface Shape {
        double area();

        default String name() {
            return "shape";
        }
    }

    static final class Square implements Shape {
        final double side = 3;

        @Override
        public double area() {
            return side * side;
        }

        @Override
        public String toString() {
            return "square of " + side;
        }

        @Override
        public int hashCode() {
            return 5;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Square;
        }
    }

    static final class Circle implements Shape {
        @Override
        public double area() {
            return 3;
        }

        @Override
        public String name() {
            return "circle";
        }
    }

    /** A key with a class in it. */
    record Key(Class<?> type, int number) {
    }

    static void show() {
        Map<Object, Object> notes = Varve.root("notes", Notes::write);
        Map<Object, Object> sorted = new HashMap<>(notes);
        for (String key : List.of("date", "list", "number", "shape")) {
            System.out.println(key + " = " + sorted.remove(key));
        }
        System.out.println(notes.get(new Square()) + " " + notes.get(Customer.class) + " " + notes.get(int[].class) + " "
                + notes.get(new Key(String.class, 1)));
        List<Shape> shapes = Varve.root("shapes", ArrayList::new);
        for (Shape shape : shapes) {
            System.out.println(shape.name() + " " + shape.area());
        }
    }

    private static Map<Object, Object> write() {
        Map<Object, Object> notes = new HashMap<>();
        notes.put("date", LocalDate.of(2024, 5, 6));
        notes.put("list", new ArrayList<>(List.of(1, 2)));
        notes.put("number", 42);
        notes.put("shape", new Square());
        notes.put(new Square(), "by value");
        notes.put(Customer.class, "by class");
        notes.put(int[].class, "by class of an array");
        notes.put(new Key(String.class, 1), "by record");
        List<Shape> shapes = Varve.root("shapes", ArrayList::new);
        shapes.add(new Square());
        shapes.add(new Circle());
        return notes;
    }
}
