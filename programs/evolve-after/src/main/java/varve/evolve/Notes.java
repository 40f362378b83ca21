package varve.evolve;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import varve.Varve;

/** Reads what the first version has written. Its classes are used elsewhere, and nothing here puts their objects into these collections. */
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
        Square[] other = {new Square()};
        LocalDate[] days = {LocalDate.of(2024, 1, 1)};
        System.out.println(other[0].side + days[0].getDayOfMonth());
        Map<Object, Object> notes = Varve.root("notes", HashMap::new);
        Map<Object, Object> sorted = new HashMap<>(notes);
        for (String key : List.of("date", "list", "number", "shape")) {
            System.out.println(key + " = " + sorted.remove(key));
        }
        System.out.println(notes.get(new Square()) + " " + notes.get(Account.class) + " " + notes.get(int[].class) + " "
                + notes.get(new Key(String.class, 1)));
        List<Shape> shapes = Varve.root("shapes", ArrayList::new);
        for (Shape shape : shapes) {
            System.out.println(shape.name() + " " + shape.area());
        }
    }
}
