package varve.errors;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import varve.common.Args;
import varve.common.Checksum;

/** Meets the world outside, and fails in every way that a program can. */
public final class Errors {
    private static final String USAGE = "errors caught|exhausted|full|throw|null|cast|index|divide|recursion|memory|exit [CODE]|input|args [WORD..]"
            + "|clocks|environment NAME|read FILE|write FILE|list DIRECTORY";

    public static void main(String[] args) throws IOException {
        if (args.length > 0 && args[0].equals("args")) {
            words(args);
            return;
        }
        Args given = new Args(USAGE, args, 2);
        String what = given.choice(0, "caught", "exhausted", "full", "throw", "null", "cast", "index", "divide", "recursion", "memory", "exit",
                "input", "clocks", "environment", "read", "write", "list");
        switch (what) {
            case "caught" -> Failures.caught();
            case "exhausted" -> Exhausted.caught();
            case "full" -> Exhausted.full();
            case "exit" -> exit(given.number(1, "the exit code", 3, 0, 255));
            case "input" -> input();
            case "clocks" -> clocks();
            case "environment" -> System.out.println(System.getenv(given.word(1, "HOME")));
            case "read" -> read(new File(path(given)));
            case "write" -> write(new File(path(given)));
            case "list" -> list(new File(path(given)));
            default -> Failures.fail(what);
        }
    }

    private static String path(Args given) {
        String path = given.word(1, null);
        if (path == null) {
            given.fail("a path is missing");
        }
        return path;
    }

    private static void words(String[] args) {
        for (int i = 1; i < args.length; i++) {
            System.out.println(i + ": " + args[i] + " (" + args[i].length() + " UTF-16 units)");
        }
    }

    private static void exit(int code) {
        try {
            System.out.println("leaving with " + code);
            System.exit(code);
        } finally {
            System.out.println("never reached");
        }
    }

    private static void input() throws IOException {
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int lines = 0;
        int words = 0;
        Checksum checksum = new Checksum();
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            lines++;
            for (String word : line.trim().split("\\s+")) {
                if (!word.isEmpty()) {
                    words++;
                    checksum.add(word);
                }
            }
        }
        System.out.println(lines + " lines, " + words + " words, checksum " + checksum);
    }

    /** Clocks run forward, and agree about how long a while is. */
    private static void clocks() {
        long wall = System.currentTimeMillis();
        long first = System.nanoTime();
        long now = first;
        int steps = 0;
        // A busy host may give the program few turns in the while.
        while (now - first < 50_000_000L || steps <= 10 && now - first < 10_000_000_000L) {
            long next = System.nanoTime();
            if (next < now) {
                throw new IllegalStateException("the clock runs backwards");
            }
            if (next > now) {
                steps++;
            }
            now = next;
        }
        long elapsed = System.currentTimeMillis() - wall;
        System.out.println("steps " + (steps > 10 ? "fine" : "coarse: " + steps));
        long took = (now - first) / 1_000_000;
        boolean agree = elapsed >= took - 10 && elapsed < took + 5000;
        System.out.println("50 ms take " + (agree ? "about 50 ms" : elapsed + " ms"));
        System.out.println("the year is " + (wall > 1_700_000_000_000L ? "plausible" : "in the past"));
    }

    private static void read(File file) throws IOException {
        int[] counts = new int[256];
        long bytes = 0;
        try (InputStream in = new BufferedInputStream(new FileInputStream(file))) {
            for (int b = in.read(); b >= 0; b = in.read()) {
                counts[b]++;
                bytes++;
            }
        }
        Checksum checksum = new Checksum();
        Arrays.stream(counts).forEach(checksum::add);
        System.out.println(bytes + " bytes, " + counts['\n'] + " lines, checksum " + checksum);
    }

    private static void write(File file) throws IOException {
        try (FileOutputStream out = new FileOutputStream(file)) {
            out.write("first line\n".getBytes(StandardCharsets.UTF_8));
        }
        try (FileOutputStream out = new FileOutputStream(file, true)) {
            out.write("zweite Zeile, größer\n".getBytes(StandardCharsets.UTF_8));
        }
        List<String> lines = new ArrayList<>();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(new FileInputStream(file), StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
            }
        }
        System.out.println(lines + ", " + file.length() + " bytes");
        System.out.println("deleted: " + file.delete() + ", there: " + file.exists());
    }

    private static void list(File directory) {
        File[] files = directory.listFiles();
        if (files == null) {
            System.out.println("no directory");
            return;
        }
        Arrays.sort(files);
        for (File file : files) {
            System.out.println(file.getName() + (file.isDirectory() ? "/" : " " + file.length()));
        }
    }
}
