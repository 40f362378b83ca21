package varve.durable;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.pcollections.HashPMap;
import org.pcollections.HashTreePMap;
import varve.Varve;
import varve.common.Rng;

/**
 * Changes durable collections and says which operation is over. After a crash, what is there must be what an undisturbed run has after as many
 * operations as were said to be over, or one more.
 */
final class Torture {
    /** Everything that an operation changes, in a failure-atomic region. */
    private static final class State {
        int operations;
        final Map<String, Integer> map = new HashMap<>();
        final TreeMap<Integer, String> tree = new TreeMap<>();
        final List<String> list = new ArrayList<>();
        HashPMap<Integer, String> functional = HashTreePMap.empty();
        int[] numbers = new int[32];
    }

    private Torture() {
    }

    static void run(int operations, int seed) {
        State state = Varve.root("torture", State::new);
        Sequence array = Sequence.open("marray", "copied");
        if (newest(array) < state.operations - 1) {
            // A crash came after the region and before the store.
            array.insert(array.size(), state.operations - 1);
        }
        for (int i = state.operations; i < operations; i++) {
            int number = i;
            Varve.region(() -> {
                apply(state, number, seed);
                state.operations = number + 1;
            });
            // Not in a region: one store publishes it.
            array.insert(array.size(), number);
            if (array.size() > 64) {
                array.remove(0);
            }
            System.out.println(i + 1);
        }
    }

    /** Compares with an undisturbed run. At least {@code over} operations were said to be over. */
    static void verify(int over, int seed) {
        State state = Varve.root("torture", State::new);
        State model = new State();
        for (int i = 0; i < state.operations; i++) {
            apply(model, i, seed);
        }
        check(state.operations >= over, "only " + state.operations + " operations survived of " + over);
        check(state.map.equals(model.map), "the hash map differs");
        check(state.tree.equals(model.tree), "the tree differs");
        check(state.list.equals(model.list), "the list differs");
        check(state.functional.equals(model.functional), "the functional map differs");
        for (int i = 0; i < model.numbers.length; i++) {
            check(state.numbers[i] == model.numbers[i], "number " + i + " differs");
        }
        Sequence array = Sequence.open("marray", "copied");
        for (int i = 1; i < array.size(); i++) {
            check(array.get(i) == array.get(i - 1) + 1, "the copied array has a gap at " + i);
        }
        check(newest(array) >= state.operations - 2, "the copied array ends at " + newest(array) + " after " + state.operations + " operations");
        System.out.println(state.operations + " operations, all there");
    }

    /** The number of the last operation that is in an array, -1 if there is none. */
    private static int newest(Sequence array) {
        return array.size() == 0 ? -1 : array.get(array.size() - 1);
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            System.out.println(otherwise);
            System.exit(1);
        }
    }

    private static void apply(State state, int number, int seed) {
        Rng rng = new Rng(seed * 1000003 + number);
        for (int i = 0; i < 3; i++) {
            int key = rng.below(200);
            switch (rng.below(9)) {
                case 0, 1 -> state.map.put("key " + key, number);
                case 2 -> state.map.remove("key " + key);
                case 3 -> state.tree.put(key, "value " + number);
                case 4 -> state.tree.remove(key);
                case 5 -> state.list.add("item " + number);
                case 6 -> {
                    if (!state.list.isEmpty()) {
                        state.list.remove(key % state.list.size());
                    }
                }
                case 7 -> state.functional = state.functional.plus(key, "functional " + number);
                default -> state.numbers[key % state.numbers.length] += number;
            }
        }
    }
}
