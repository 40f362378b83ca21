package varve.membench;

import varve.Varve;
import varve.common.Args;
import varve.common.Rng;

/**
 * MemBench and NUMABench, after their description by Olson et al. (TACO 2018, section 6): objects of one integer each, hot ones among
 * many cold ones, born in random order. The program walks its hot objects in random order and writes a number to each, with a pause of
 * so many turns of an empty loop between two writes. What is hot has a type, and an allocation site, of its own.
 *
 * A thread is an instance of the program: with {@code --threads N} it takes its Nth part of the objects, and N instances together are the
 * benchmark with N threads.
 */
public final class MemBench {
    private static final String USAGE = "membench membench|numabench [--hot N] [--cold N] [--delay SPINS] [--threads N]"
            + " [--remote PERCENT] [--writes N] [--seed N]";
    private static final int MOST = 1 << 28;

    /** An object with a number: 8 bytes of header and 4 of it here, 12 and 4 in the paper's virtual machine. */
    private abstract static class Item {
        int value;
    }

    private static final class ColdObject extends Item {
    }

    private static final class HotObject extends Item {
    }

    private static final class RemoteHotObject extends Item {
    }

    private final Item[] hot;
    private final Item[] cold;
    private final int delay;

    private MemBench(int hotObjects, int coldObjects, int remotePercent, int delay, Rng rng) {
        hot = new Item[hotObjects];
        cold = new Item[coldObjects];
        this.delay = delay;
        int born = 0;
        int buried = 0;
        while (born < hotObjects || buried < coldObjects) {
            int left = hotObjects - born + coldObjects - buried;
            if (rng.below(left) < hotObjects - born) {
                boolean far = born % 100 < remotePercent;
                hot[born++] = far ? Varve.critical(new RemoteHotObject()) : Varve.critical(new HotObject());
            } else {
                cold[buried++] = new ColdObject();
            }
        }
        shuffle(hot, rng);
    }

    private static void shuffle(Item[] items, Rng rng) {
        for (int i = items.length - 1; i > 0; i--) {
            int j = rng.below(i + 1);
            Item item = items[i];
            items[i] = items[j];
            items[j] = item;
        }
    }

    /** Writes to hot objects, one after the other. */
    private void run(int writes) {
        int next = 0;
        for (int i = 0; i < writes; i++) {
            hot[next].value = i;
            next = next + 1 == hot.length ? 0 : next + 1;
            pause();
        }
    }

    private void pause() {
        for (int i = 0; i < delay; i++) {
            spun++;
        }
    }

    /** Kept, so that no compiler takes the pause away. */
    private static int spun;

    private long sum() {
        long sum = 0;
        for (Item item : hot) {
            sum += item.value;
        }
        for (Item item : cold) {
            sum += item.value;
        }
        return sum;
    }

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 1, "hot", "cold", "delay", "threads", "remote", "writes", "seed");
        boolean numa = given.choice(0, "membench", "numabench").equals("numabench");
        int threads = given.option("threads", 1, 1, 1 << 10);
        int hotObjects = given.option("hot", 1_000_000, 1, MOST) / threads;
        int coldObjects = given.option("cold", 4_000_000, 0, MOST) / threads;
        int remote = given.option("remote", numa ? 40 : 0, 0, 100);
        int writes = given.option("writes", 2_000_000, 1, Integer.MAX_VALUE);
        if (hotObjects == 0) {
            throw given.fail("--hot must be at least --threads");
        }
        if (!numa && given.has("remote")) {
            throw given.fail("--remote is for numabench");
        }
        MemBench bench = new MemBench(hotObjects, coldObjects, remote, given.option("delay", 0, 0, 1 << 20),
                new Rng(given.option("seed", 1, 0, MOST)));
        long start = System.nanoTime();
        bench.run(writes);
        long nanos = Math.max(1, System.nanoTime() - start);
        System.out.println(hotObjects + " hot and " + coldObjects + " cold objects, " + writes + " writes, sum " + bench.sum());
        System.err.println("time: " + nanos / 1000 / 1000.0 + " ms, " + nanos / writes + " ns for a write");
    }
}
