package varve.host;

import java.util.HashMap;
import java.util.Map;

/** What {@link System} asks of the process: its end, its clock, its environment. */
final class Process {
    private static Map<String, String> environment;

    private Process() {
    }

    static void exit(int code) {
        System.out.flush();
        System.err.flush();
        Wasi.exit(code);
        throw new IllegalStateException("the host went on after the exit of the program");
    }

    static long nanoTime() {
        int error = Wasi.clockTime(Wasi.CLOCK_MONOTONIC, 1, Memory.RESULT);
        if (error != Wasi.SUCCESS) {
            throw new IllegalStateException("the host has no monotonic clock, error " + error);
        }
        return Memory.int64(Memory.RESULT);
    }

    static String environment(String name) {
        if (environment == null) {
            environment = readEnvironment();
        }
        return environment.get(name);
    }

    private static Map<String, String> readEnvironment() {
        Map<String, String> variables = new HashMap<>();
        if (Wasi.environmentSizes(Memory.RESULT, Memory.RESULT + 4) != Wasi.SUCCESS) {
            return variables;
        }
        int count = Memory.int32(Memory.RESULT);
        int bytes = Memory.int32(Memory.RESULT + 4);
        int pointers = Memory.allocate(4 * count + 4);
        int text = Memory.allocate(bytes + 4);
        if (Wasi.environment(pointers, text) == Wasi.SUCCESS) {
            for (int i = 0; i < count; i++) {
                int start = Memory.int32(pointers + 4 * i);
                int end = start;
                while (Memory.uint8(end) != 0) {
                    end++;
                }
                String variable = Memory.text(start, end - start);
                int equals = variable.indexOf('=');
                if (equals > 0) {
                    variables.put(variable.substring(0, equals), variable.substring(equals + 1));
                }
            }
        }
        Memory.free(pointers);
        Memory.free(text);
        return variables;
    }
}
