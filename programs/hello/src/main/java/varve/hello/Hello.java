package varve.hello;

/** Greets, by name if it is given one. */
public final class Hello {
    public static void main(String[] args) {
        System.out.println("Hello, " + (args.length > 0 ? String.join(" and ", args) : "world") + "!");
    }
}
