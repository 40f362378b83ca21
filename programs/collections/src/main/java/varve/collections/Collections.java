package varve.collections;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Ordinary Java: collections, strings, streams, formatting, exceptions. Prints what it computed. */
public final class Collections {
    public static void main(String[] args) {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 100_000;
        maps(n);
        words();
        streams(n);
        formatting();
        exceptions();
        queues(n);
        if (args.length > 1 && args[1].equals("fail")) {
            throw new IllegalStateException("asked to fail");
        }
    }

    private static void maps(int n) {
        Map<Integer, Integer> squares = new HashMap<>();
        for (int i = 0; i < n; i++) {
            squares.put(i, i * i);
        }
        long sum = 0;
        for (int i = 0; i < n; i += 7) {
            sum += squares.get(i);
        }
        for (int i = 0; i < n; i += 2) {
            squares.remove(i);
        }
        System.out.println("maps: sum " + sum + ", left " + squares.size());
        TreeMap<String, Integer> tree = new TreeMap<>();
        for (int i = 0; i < n / 10; i++) {
            tree.merge("key" + (i * 7919) % 1000, 1, Integer::sum);
        }
        System.out.println("tree: " + tree.firstEntry() + " .. " + tree.lastEntry() + ", " + tree.size() + " keys");
    }

    private static void words() {
        String text = "the quick brown fox jumps over the lazy dog and the dog sleeps";
        Map<String, Integer> counts = new LinkedHashMap<>();
        for (String word : text.split(" ")) {
            counts.merge(word, 1, Integer::sum);
        }
        StringBuilder line = new StringBuilder();
        counts.entrySet().stream()
                .sorted(Map.Entry.<String, Integer>comparingByValue(Comparator.reverseOrder())
                        .thenComparing(Map.Entry.comparingByKey()))
                .limit(3)
                .forEach(e -> line.append(' ').append(e.getKey()).append('=').append(e.getValue()));
        System.out.println("words:" + line);
        System.out.println("strings: " + "Varve".toUpperCase().replace('V', 'W').concat("!").indexOf('!')
                + " " + "äöü€".length() + " äöü€");
    }

    private static void streams(int n) {
        List<Integer> list = IntStream.range(0, n).boxed().filter(i -> i % 3 == 0).collect(Collectors.toList());
        Map<Integer, Long> byDigit = list.stream().collect(Collectors.groupingBy(i -> i % 10, Collectors.counting()));
        System.out.println("streams: " + list.size() + " " + byDigit);
    }

    private static void formatting() {
        System.out.println(String.format("format: %d|%5d|%-5s|%05.2f|%x|%s", 42, 42, "ab", 3.14159, 255, List.of(1, 2, 3)));
        System.out.println("numbers: " + 1.0 / 3 + " " + (float) 0.1 + " " + Long.MAX_VALUE + " " + Double.parseDouble("2.5e10")
                + " " + Math.sin(1) + " " + Math.pow(2, 0.5));
    }

    private static void exceptions() {
        int caught = 0;
        try {
            Object o = "text";
            Integer i = (Integer) o;
            System.out.println(i);
        } catch (ClassCastException e) {
            caught++;
        }
        try {
            int[] a = new int[3];
            a[Integer.parseInt("3")] = 1;
        } catch (ArrayIndexOutOfBoundsException e) {
            caught++;
        }
        try {
            String s = Integer.parseInt("1") == 2 ? "" : null;
            System.out.println(s.length());
        } catch (NullPointerException e) {
            caught++;
        }
        // Division by zero is a trap in TeaVM's output, not an exception.
        try {
            Integer.parseInt("forty-two");
        } catch (NumberFormatException e) {
            caught++;
        } finally {
            caught += 10;
        }
        try {
            throw new IllegalArgumentException("reason", new RuntimeException("cause"));
        } catch (IllegalArgumentException e) {
            System.out.println("exceptions: " + caught + " " + e.getMessage() + " <- " + e.getCause().getMessage());
        }
    }

    private static void queues(int n) {
        // TeaVM's Random draws other numbers than the JDK's.
        int random = 42;
        Deque<Integer> deque = new ArrayDeque<>();
        List<int[]> kept = new ArrayList<>();
        long check = 0;
        for (int i = 0; i < n; i++) {
            random = random * 1103515245 + 12345;
            deque.addLast((random >>> 16) % 1000);
            if (deque.size() > 100) {
                check = check * 31 + deque.removeFirst();
            }
            int[] garbage = new int[16];
            garbage[3] = i;
            if (i % 100 == 0) {
                kept.add(garbage);
            }
        }
        long sum = 0;
        for (int[] a : kept) {
            sum += a[3];
        }
        System.out.println("queues: " + check + " " + sum);
    }
}
