package varve.durable;

import varve.Varve;
import varve.common.Args;
import varve.common.Rng;

/** Kernels that keep a durable list under a random mix of operations, and a torture that says what it has done so that a crash can be checked. */
public final class Main {
    private static final String[] KINDS = {"marray", "mlist", "fararray", "farray", "flist"};

    public static void main(String[] arguments) {
        Args args = new Args("durable [marray|mlist|fararray|farray|flist|tasks|torture|verify] [--operations N] [--size N] [--seed N] [--rounds N]",
                arguments, 1, "operations", "size", "seed", "rounds");
        String what = args.choice(0, "marray", "mlist", "fararray", "farray", "flist", "tasks", "torture", "verify");
        switch (what) {
            case "tasks" -> Tasks.run(args.option("rounds", 1, 0, 1000));
            case "torture" -> Torture.run(args.option("operations", Integer.MAX_VALUE, 0, Integer.MAX_VALUE), args.option("seed", 1, 0, Integer.MAX_VALUE));
            case "verify" -> Torture.verify(args.option("operations", 0, 0, Integer.MAX_VALUE), args.option("seed", 1, 0, Integer.MAX_VALUE));
            default -> kernel(what, args.option("operations", 20000, 1, Integer.MAX_VALUE), args.option("size", 200, 1, 1 << 20), args.option("seed", 1, 0, Integer.MAX_VALUE),
                    args.option("rounds", 1, 1, 1000));
        }
    }

    private static void kernel(String kind, int operations, int size, int seed, int rounds) {
        for (int round = 1; round <= rounds; round++) {
            Sequence list = Sequence.open(kind, kind);
            while (list.size() > 0) {
                list.remove(list.size() - 1);
            }
            for (int i = 0; i < size; i++) {
                list.insert(i, i);
            }
            Rng rng = new Rng(seed);
            long start = System.nanoTime();
            long read = 0;
            for (int i = 0; i < operations; i++) {
                read = 31 * read + step(list, rng, size);
            }
            System.err.println("round: " + (System.nanoTime() - start) / 1000 / 1000.0 + " ms");
            long sum = 0;
            for (int i = 0; i < list.size(); i++) {
                sum = 31 * sum + list.get(i);
            }
            System.out.println(kind + (Varve.durable() ? " durable: " : ": ") + list.size() + " elements, " + Long.toHexString(sum)
                    + ", read " + Long.toHexString(read));
        }
    }

    /** A read, a write, an insertion or a deletion, each as likely as the others. */
    private static long step(Sequence list, Rng rng, int size) {
        int n = list.size();
        int at = rng.below(n);
        switch (rng.below(4)) {
            case 0 -> {
                return list.get(at);
            }
            case 1 -> list.set(at, rng.below(1 << 20));
            case 2 -> list.insert(at, rng.below(1 << 20));
            default -> {
                if (n > size / 2) {
                    list.remove(at);
                }
            }
        }
        return 0;
    }
}
