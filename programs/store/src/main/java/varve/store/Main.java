package varve.store;

import java.util.Arrays;

/** Stores for a server: opens one, for the host to call {@link Requests}; or checks all of them. */
public final class Main {
    private static final String USAGE = "usage: store fhmap|pbtree|hbtree|outside | check [OPERATIONS] [--seed N]";

    private Main() {
    }

    public static void main(String[] args) {
        String name = args.length == 0 ? "" : args[0];
        switch (name) {
            case "fhmap" -> Requests.serve(new FunctionalMap());
            case "pbtree" -> Requests.serve(TreeTable.persistent());
            case "hbtree" -> Requests.serve(TreeTable.hybrid());
            case "outside" -> Requests.serve(null);
            case "check" -> Check.run(Arrays.copyOfRange(args, 1, args.length));
            default -> {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
    }
}
