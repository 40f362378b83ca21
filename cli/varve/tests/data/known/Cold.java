import java.util.ArrayList;
import java.util.List;

/** Fills 32 MiB that it never reads again, and then works for a number of rounds, from a mark on. */
public class Cold {
    static final List<byte[]> cold = new ArrayList<>();

    public static void main(String[] words) {
        for (int i = 0; i < 512; i++) {
            byte[] block = new byte[65520];
            java.util.Arrays.fill(block, (byte) 1);
            cold.add(block);
        }
        System.gc();
        new java.io.File("/varve/record/begin").exists();
        long[] hot = new long[1 << 16];
        long sum = 0;
        int rounds = words.length > 0 ? Integer.parseInt(words[0]) : 1;
        for (int i = 0; i < rounds << 20; i++)
            sum += hot[i * 31 & hot.length - 1]++;
        System.out.println(sum + cold.size());
    }
}
