package varve.kept;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;

/** One step of a case: its number, and what it prints. */
final class Step {
    /** 0 is the step that makes the value. */
    final int n;
    private final StringBuilder line = new StringBuilder();

    Step(int n) {
        this.n = n;
    }

    /** Adds objects to the line of this step. */
    Step say(Object... all) {
        for (Object each : all) {
            line.append(' ').append(each);
        }
        return this;
    }

    /** Adds the elements of a collection whose order no one promises. */
    Step sorted(Collection<?> all) {
        ArrayList<String> texts = new ArrayList<>();
        for (Object each : all) {
            texts.add(String.valueOf(each));
        }
        String[] array = texts.toArray(new String[0]);
        Arrays.sort(array);
        return say(Arrays.toString(array));
    }

    /** Adds the entries of a map whose order no one promises. */
    Step sorted(Map<?, ?> map) {
        return sorted(map.entrySet());
    }

    String line() {
        return line.toString();
    }
}
