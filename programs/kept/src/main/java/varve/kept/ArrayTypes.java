package varve.kept;

import java.util.Arrays;
import java.util.List;

/** Arrays of all types and dimensions. */
final class ArrayTypes {
    private ArrayTypes() {
    }

    static void add(Suite suite) {
        suite.<boolean[]>change("boolean[]", () -> new boolean[5], (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == boolean[].class);
            a[s.n] = true;
        });
        suite.<byte[]>change("byte[]", () -> new byte[] {-128, 127, 0}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == byte[].class);
            a[s.n % 3] += 3;
        });
        suite.<short[]>change("short[]", () -> new short[] {-32768, 32767, 0}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == short[].class);
            a[s.n % 3] += 3;
        });
        suite.<char[]>change("char[]", () -> "a\uFFFFz".toCharArray(), (a, s) -> {
            s.say((int) a[0], (int) a[1], (int) a[2], a.getClass() == char[].class);
            a[s.n % 3] += 3;
        });
        suite.<int[]>change("int[]", () -> new int[] {Integer.MIN_VALUE, 1, 2}, (a, s) -> {
            s.say(Arrays.toString(a), Arrays.hashCode(a), a.getClass() == int[].class, a.getClass().getName());
            a[s.n % 3] -= 3;
        });
        suite.<long[]>change("long[]", () -> new long[] {Long.MIN_VALUE, 1, 2}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == long[].class);
            a[s.n % 3] -= 3;
        });
        suite.<float[]>change("float[]", () -> new float[] {Float.NaN, -0f, 2.5f}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == float[].class);
            a[s.n % 3] -= 3;
        });
        suite.<double[]>change("double[]", () -> new double[] {Double.NaN, -0.0, 2.5}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass() == double[].class);
            a[s.n % 3] -= 3;
        });
        suite.<Object[]>change("Object[]", () -> new Object[] {null, "text", 5, new int[] {1}, new String[] {"inner"}}, (a, s) -> {
            s.say(a.length, a[0], a[1], a[2], ((int[]) a[3])[0], ((String[]) a[4])[0], a.getClass() == Object[].class, a[4] instanceof String[],
                a[4] instanceof Object[], a[4].getClass() == String[].class);
            a[0] = s.n;
            ((int[]) a[3])[0] += s.n;
            ((String[]) a[4])[0] += s.n;
        });
        suite.<String[]>change("String[]", () -> new String[] {"b", null, "a"}, (a, s) -> {
            s.say(Arrays.toString(a), a.getClass().getName(), a.getClass().getComponentType() == String.class);
            a[1] = "s" + s.n;
            Arrays.sort(a);
        });
        suite.<int[][]>change("int[][]", () -> new int[3][4], (a, s) -> {
            s.say(Arrays.deepToString(a), a.getClass() == int[][].class, a[0].getClass() == int[].class);
            a[s.n % 3][0] = s.n + 1;
            a[2] = new int[] {s.n};
        });
        suite.<long[][][]>change("long[][][]", () -> new long[2][2][], (a, s) -> {
            s.say(Arrays.deepToString(a));
            a[s.n % 2][1] = new long[] {s.n};
        });
        suite.<String[][]>change("String[][]", () -> new String[][] {{"a"}, {}, null}, (a, s) -> {
            s.say(Arrays.deepToString(a), a.getClass() == String[][].class);
            a[2] = new String[s.n];
            a[0][0] += s.n;
        });
        suite.<List<?>[]>change("Array of lists", () -> new List<?>[] {List.of(1), null}, (a, s) -> {
            s.say(Arrays.toString(a));
            a[1] = List.of("s", s.n);
        });
        suite.<int[]>change("Large array", () -> new int[100_000], (a, s) -> {
            long sum = 0;
            for (int each : a) {
                sum += each;
            }
            s.say(a.length, sum);
            for (int i = 0; i < a.length; i += 1000) {
                a[i] += i + s.n;
            }
        });
        suite.<Object[]>change("Copies of arrays", () -> {
            int[] ints = {1, 2, 3};
            return new Object[] {ints, ints.clone(), Arrays.copyOf(ints, 5), new String[0], new Object[0][0]};
        }, (a, s) -> {
            s.say(Arrays.deepToString(a));
            System.arraycopy(a[0], 0, a[2], 2, 3);
            int[] next = ((int[]) a[1]).clone();
            next[0] = s.n;
            a[1] = next;
            Arrays.fill((int[]) a[0], s.n);
        });
    }
}
