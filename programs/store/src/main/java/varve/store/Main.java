package varve.store;

import java.util.Arrays;
import varve.Varve;

/** Stores for a server: opens one, for the host to call {@link Requests}; or checks all of them. */
public final class Main {
    private static final String USAGE = "usage: store fhmap|pbtree|hbtree|outside | check [OPERATIONS] [--seed N]";

    /** The stores that regions may hold, each under a root of its name. */
    private static final String[] STORES = {"fhmap", "pbtree", "hbtree"};

    /** Exit code for a region that holds the first of them and not the one that is asked for, and so on; the host knows it too. */
    private static final int HOLDS = 10;

    private Main() {
    }

    /** Ends the program if the region has the values of another store: they would not be found, and nobody would know why. */
    private static void refuseOthers(String name) {
        if (!Varve.durable() || holds(name)) {
            return;
        }
        for (int i = 0; i < STORES.length; i++) {
            if (holds(STORES[i])) {
                System.exit(HOLDS + i);
            }
        }
    }

    /** Whether there is a root; none is made. */
    private static boolean holds(String root) {
        return Varve.root(root, () -> null) != null;
    }

    public static void main(String[] args) {
        String name = args.length == 0 ? "" : args[0];
        switch (name) {
            case "fhmap", "pbtree", "hbtree" -> {
                refuseOthers(name);
                Requests.serve(switch (name) {
                    case "fhmap" -> new FunctionalMap();
                    case "pbtree" -> TreeTable.persistent();
                    default -> TreeTable.hybrid();
                });
            }
            case "outside" -> Requests.serve(null);
            case "check" -> Check.run(Arrays.copyOfRange(args, 1, args.length));
            default -> {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
    }
}
