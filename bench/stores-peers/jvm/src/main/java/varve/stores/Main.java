package varve.stores;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.Stream;
import site.ycsb.Utils;
import site.ycsb.generator.AcknowledgedCounterGenerator;
import site.ycsb.generator.NumberGenerator;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.SkewedLatestGenerator;

/** Runs one workload on one store; prints a line of JSON: {@code TARGET DURABILITY WORKLOAD RECORDS OPERATIONS VALUE-BYTES FOLDER}. */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws IOException {
        Durability durability = Durability.valueOf(args[1].toUpperCase());
        char workload = args[2].charAt(0);
        int records = Integer.parseInt(args[3]);
        int operations = Integer.parseInt(args[4]);
        int bytes = Integer.parseInt(args[5]);
        Path folder = Files.createTempDirectory(Path.of(args[6]), "store");
        try (Target target = open(args[0], folder.toString(), durability)) {
            for (int i = 0; i < records; i++) {
                target.write(key(i), value(i, 0, bytes));
            }
            run(target, workload, records, operations, bytes);
        } catch (UnsupportedOperationException e) {
            System.out.println("{\"unsupported\": \"" + e.getMessage() + "\"}");
        } finally {
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private static Target open(String name, String folder, Durability durability) {
        return switch (name) {
            case "mvstore" -> new MvStore(folder, durability);
            case "mapdb" -> new MapDb(folder, durability);
            case "eclipsestore" -> new EclipseStore(folder, durability);
            default -> throw new IllegalArgumentException("no store " + name);
        };
    }

    private static void run(Target target, char workload, int records, int operations, int bytes) {
        double reads = switch (workload) {
            case 'a', 'f' -> 0.5;
            case 'b', 'd' -> 0.95;
            case 'c' -> 1;
            default -> throw new IllegalArgumentException("no workload " + workload);
        };
        AcknowledgedCounterGenerator inserted = new AcknowledgedCounterGenerator(records);
        NumberGenerator choice = workload == 'd' ? new SkewedLatestGenerator(inserted) : new ScrambledZipfianGenerator(0, records - 1);
        Random random = new Random(1);
        long missed = 0;
        long sum = 0;
        long start = System.nanoTime();
        for (int i = 1; i <= operations; i++) {
            boolean read = random.nextDouble() < reads;
            if (!read && workload == 'd') {
                long number = inserted.nextValue();
                target.write(key(number), value(number, i, bytes));
                inserted.acknowledge(number);
                continue;
            }
            long number = choice.nextValue().longValue();
            String key = key(number);
            if (read || workload == 'f') {
                byte[] found = target.read(key);
                if (found == null) {
                    missed++;
                } else {
                    for (int b = 0; b < found.length; b += 8) {
                        sum += found[b];
                    }
                }
            }
            if (!read) {
                target.write(key, value(number, i, bytes));
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.println("{\"operations\": " + operations + ", \"missed\": " + missed + ", \"seconds\": " + seconds + ", \"sum\": " + sum + "}");
    }

    private static String key(long number) {
        return "user" + Utils.hash(number);
    }

    /** Letters that are hard to guess and cheap to make. */
    private static byte[] value(long number, long version, int bytes) {
        byte[] value = new byte[bytes];
        long state = Utils.hash(number) ^ version * 0x9e3779b97f4a7c15L;
        for (int i = 0; i < bytes; i += 8) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            for (int b = 0; b < 8 && i + b < bytes; b++) {
                value[i + b] = (byte) (' ' + (state >>> 8 * b & 0xff) % 95);
            }
        }
        return value;
    }
}
