import java.util.*; import varve.*;
// version 3: no code names dates or numbers, and nothing is stored any more
public final class F {
    interface Shape { double area(); default String name() { return "shape"; } }
    static class Sq implements Shape { double a = 3; public double area() { return a * a; } public String toString() { return "Sq " + a; } public int hashCode() { return 5; } public boolean equals(Object o) { return o instanceof Sq; } }
    static class Ci implements Shape { double r = 1; public double area() { return 3 * r * r; } public String name() { return "circle"; } public String toString() { return "Ci " + r; } }
    public static void main(String[] x) {
        Map<String, Object> attrs = Varve.root("attrs", HashMap::new);
        List<Shape> shapes = Varve.root("shapes", ArrayList::new);
        for (String k : new TreeSet<>(attrs.keySet())) System.out.println(k + " = " + attrs.get(k));
        for (Shape s : shapes) System.out.println(s.name() + " " + s.area());
    }
}
