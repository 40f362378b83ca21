package varve.errors;

import java.util.ArrayList;
import java.util.List;

/** Fills the stack and the heap, catches what is thrown then, and goes on. */
final class Exhausted {
    private static final int ROUNDS = 100;

    private static int depth;
    private static int handled;

    private Exhausted() {
    }

    private static final class Node {
        final Node next;
        final long value;

        Node(Node next, long value) {
            this.next = next;
            this.value = value;
        }
    }

    /** What a program does with a full stack, and with arrays that no heap has room for. */
    static void caught() {
        int caught = 0;
        for (int i = 0; i < ROUNDS; i++) {
            try {
                System.out.println(down(i));
            } catch (StackOverflowError e) {
                caught++;
            }
        }
        System.out.println("recursion caught " + caught + " times");
        for (int i = 0; i < ROUNDS; i++) {
            try {
                System.out.println(careful(i));
            } catch (StackOverflowError e) {
                handled++;
            }
        }
        System.out.println("finally ran at each depth: " + (depth == 0) + ", caught " + handled + " times");
        try {
            System.out.println(passedOn(0));
        } catch (Error e) {
            System.out.println("passed on from depth to depth: " + e.getClass().getName() + ", " + (handled > 2 * ROUNDS));
        }
        System.out.println("handled where it happened: " + (handledThere(0) > 0));
        System.out.println("by virtual calls: " + each(new ArrayList<>()));
        long sum = 0;
        for (int i = 0; i < 20 * ROUNDS; i++) {
            sum += room(i % 2 == 0 ? 1 << 30 : i);
        }
        System.out.println("arrays " + sum);
        System.out.println("local state " + state(1 << 30));
        try (Resource resource = new Resource()) {
            System.out.println(new long[resource.size()].length);
        } catch (OutOfMemoryError e) {
            System.out.println(e.getClass().getName());
        } finally {
            System.out.println("finally");
        }
    }

    private record Resource() implements AutoCloseable {
        int size() {
            return 1 << 30;
        }

        @Override
        public void close() {
            System.out.println("closed");
        }
    }

    private static int down(int n) {
        return down(n + 1) + n;
    }

    private static int careful(int n) {
        depth++;
        try {
            return careful(n + 1) + n;
        } finally {
            depth--;
        }
    }

    private static int passedOn(int n) {
        try {
            return passedOn(n + 1) + n;
        } catch (StackOverflowError e) {
            handled++;
            throw e;
        }
    }

    private static int handledThere(int n) {
        try {
            return handledThere(n + 1) + 1;
        } catch (StackOverflowError e) {
            return 1;
        }
    }

    /** A list that holds itself. */
    private static String each(List<Object> list) {
        list.add(list);
        try {
            return "" + list.hashCode();
        } catch (VirtualMachineError e) {
            return e.getClass().getName();
        }
    }

    /** Inlined where it is called: what is thrown is caught in the frame that allocates. */
    private static int room(int length) {
        try {
            return new long[length].length;
        } catch (OutOfMemoryError e) {
            return -1;
        }
    }

    private static String state(int length) {
        String state = "before";
        int steps = 1;
        Node node = new Node(null, 7);
        try {
            state = "inside";
            steps++;
            node = new Node(node, steps);
            steps += new long[length].length;
            state = "behind";
        } catch (OutOfMemoryError e) {
            steps += 10;
        }
        return state + " " + steps + " " + node.value + " " + node.next.value;
    }

    /** Fills the heap with objects of every size, again and again. */
    static void full() {
        String expected = null;
        for (int i = 0; i < 6; i++) {
            int kind = i % 3;
            long kept = 0;
            try {
                kept = switch (kind) {
                    case 0 -> nodes();
                    case 1 -> arrays(5000);
                    default -> arrays(100_000);
                };
            } catch (OutOfMemoryError e) {
                kept = -1;
                expected = e.getClass().getName();
            }
            // There is room again.
            List<Node> some = new ArrayList<>();
            for (int j = 0; j < 1000; j++) {
                some.add(new Node(null, j));
            }
            long sum = 0;
            for (Node node : some) {
                sum += node.value;
            }
            System.out.println("round " + i + ": " + kept + ", then " + sum);
        }
        System.out.println(expected);
        System.out.println("kept by hand: " + (keeper() > 1000));
    }

    private static long nodes() {
        Node head = null;
        for (long i = 0;; i++) {
            head = new Node(head, i);
            if (head.value < 0) {
                return head.next.value;
            }
        }
    }

    private static long arrays(int length) {
        List<int[]> kept = new ArrayList<>();
        while (kept.size() >= 0) {
            kept.add(new int[length]);
        }
        return kept.size();
    }

    /** Caught where the objects are still held, and let go there. */
    private static long keeper() {
        Node head = null;
        long count = 0;
        try {
            while (count >= 0) {
                head = new Node(head, count);
                count++;
            }
        } catch (OutOfMemoryError e) {
            long held = head.value;
            head = null;
            return held;
        }
        return 0;
    }
}
