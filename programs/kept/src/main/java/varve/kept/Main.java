package varve.kept;

import java.util.HashMap;
import java.util.Map;
import varve.Varve;

/**
 * Small cases, each of a class of the library or a feature of the language. A step reads what the steps before have stored, prints it and
 * changes it. On an ordinary virtual machine all steps are of one process; with a region each step may be a process of its own. Both print the
 * same.
 */
public final class Main {
    private static Map<String, Kept> all;
    private static boolean regions;

    private Main() {
    }

    public static void main(String[] arguments) {
        Suite suite = new Suite();
        Lists.add(suite);
        Maps.add(suite);
        Sets.add(suite);
        Wrappers.add(suite);
        Concurrent.add(suite);
        Numbers.add(suite);
        Texts.add(suite);
        Times.add(suite);
        Values.add(suite);
        ArrayTypes.add(suite);
        Language.add(suite);
        Classes.add(suite);
        Sentinels.add(suite);
        Refused.add(suite);
        int first = 0;
        if (arguments.length > 0 && arguments[0].equals("--regions")) {
            regions = true;
            first = 1;
        }
        if (arguments.length == first) {
            System.err.println("usage: kept [--regions] CASE|all STEP...; kept list; kept refused");
            System.exit(2);
        }
        String which = arguments[first];
        if (which.equals("list") || which.equals("refused")) {
            for (Suite.Case one : which.equals("list") ? suite.cases : suite.refused) {
                System.out.println(one.name);
            }
            return;
        }
        // Work of a process before its first root: objects get other hash codes, and caches fill in another order.
        for (int i = 0; i < arguments[arguments.length - 1].charAt(0) - '0'; i++) {
            new Object().hashCode();
        }
        all = Varve.root("cases", HashMap::new);
        boolean found = false;
        for (int i = first + 1; i < arguments.length; i++) {
            int n = Integer.parseInt(arguments[i]);
            for (Suite.Case one : suite.cases) {
                if (which.equals("all") || which.equals(one.name)) {
                    run(one, n);
                    found = true;
                }
            }
            for (Suite.Case one : suite.refused) {
                if (which.equals(one.name)) {
                    run(one, n);
                    found = true;
                }
            }
        }
        if (!found) {
            System.err.println("no case " + which + ", or no step");
            System.exit(2);
        }
    }

    /** Runs a step, in a failure-atomic region if that is wanted. A step that was done before is not done again then. */
    private static void run(Suite.Case one, int n) {
        if (!regions) {
            step(one, n);
            return;
        }
        Kept kept = all.get(one.name);
        if (kept != null && kept.steps > n) {
            return;
        }
        Varve.region(() -> step(one, n));
    }

    private static void step(Suite.Case one, int n) {
        Step step = new Step(n);
        try {
            Kept kept = all.get(one.name);
            if (kept == null) {
                Kept fresh = new Kept();
                fresh.value = one.make.get();
                all.put(one.name, fresh);
                kept = all.get(one.name);
            }
            Object next = one.step.apply(kept.value, step);
            if (next != kept.value) {
                kept.value = next;
            }
            kept.steps = n + 1;
        } catch (Throwable e) {
            step.say("threw", e);
        }
        System.out.println(one.name + " " + n + ":" + step.line());
    }
}
