package varve.errors;

import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;

/** The ways in which Java code fails. */
final class Failures {
    private Failures() {
    }

    /** A failure with a resource, to be seen closing. */
    private record Resource(String name) implements AutoCloseable {
        @Override
        public void close() {
            System.out.println("closed " + name);
        }
    }

    private static final class Refused extends Exception {
        private final int code;

        Refused(String message, int code, Throwable cause) {
            super(message, cause);
            this.code = code;
        }
    }

    /** Fails, and lets nobody catch it. */
    static void fail(String how) {
        switch (how) {
            case "throw" -> outer();
            case "null" -> System.out.println(length(null));
            case "cast" -> System.out.println(number("text"));
            case "index" -> System.out.println(element(new int[3], pick(5)));
            case "divide" -> System.out.println(pick(7) / pick(0));
            case "recursion" -> System.out.println(down(1));
            case "memory" -> System.out.println(hoard());
            default -> throw new IllegalArgumentException(how);
        }
    }

    private static void outer() {
        try {
            inner("the reason");
        } catch (Refused e) {
            throw new IllegalStateException("gave up with code " + e.code, e);
        }
    }

    private static void inner(String why) throws Refused {
        throw new Refused(why, pick(42), new NoSuchElementException("the cause"));
    }

    /** A number that the compiler does not see through. */
    private static int pick(int n) {
        return Integer.parseInt(Integer.toString(n));
    }

    private static int element(int[] array, int index) {
        return array[index];
    }

    private static int length(String text) {
        return text.length();
    }

    private static int number(Object o) {
        return (Integer) o + 1;
    }

    private static int down(int n) {
        return down(n + 1) + n;
    }

    private static int hoard() {
        List<int[]> kept = new ArrayList<>();
        while (kept.size() < 1 << 20) {
            kept.add(new int[1 << 20]);
        }
        return kept.size();
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void attempt(String name, Action action) {
        try (Resource resource = new Resource(name)) {
            action.run();
            System.out.println(name + ": nothing happened");
        } catch (Refused e) {
            System.out.println(name + ": " + e.getMessage() + ", " + e.code + ", because of " + e.getCause().getMessage());
        } catch (RuntimeException e) {
            System.out.println(name + ": " + e.getClass().getName());
        } catch (Exception e) {
            System.out.println(name + ": checked, " + e.getMessage());
        } finally {
            System.out.println("finally " + name);
        }
    }

    /** Fails in many ways, and catches each. */
    static void caught() {
        attempt("null", () -> length(null));
        attempt("cast", () -> number("text"));
        attempt("index", () -> System.out.println(element(new int[3], pick(5))));
        attempt("negative", () -> hoardOf(pick(-1)));
        attempt("divide", () -> System.out.println(pick(7) / pick(0)));
        attempt("remainder", () -> System.out.println((long) pick(7) % (long) pick(0)));
        attempt("parse", () -> Integer.parseInt("12x"));
        attempt("outer", Failures::outer);
        attempt("inner", () -> inner("a reason"));
        attempt("iterate", () -> {
            List<Integer> list = new ArrayList<>(List.of(1, 2, 3));
            for (Integer i : list) {
                list.remove(i);
            }
        });
        attempt("fine", () -> System.out.println("minimum divided by -1: " + Integer.MIN_VALUE / pick(-1)));
    }

    private static int hoardOf(int n) {
        return new int[n].length;
    }
}
