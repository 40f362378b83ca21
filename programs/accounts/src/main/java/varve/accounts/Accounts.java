package varve.accounts;

import java.util.HashMap;
import java.util.Map;
import varve.Varve;

/** Moves money between two accounts until it is killed. What it moved survives, and none gets lost on the way. */
public final class Accounts {
    public static void main(String[] args) {
        Map<String, Long> accounts = Varve.root("accounts", HashMap::new);
        Varve.region(() -> {
            accounts.putIfAbsent("ada", 1000L);
            accounts.putIfAbsent("grace", 1000L);
        });
        long transfers = args.length > 0 ? Long.parseLong(args[0]) : Long.MAX_VALUE;
        System.out.println(accounts.get("ada") + " + " + accounts.get("grace") + " after "
                + accounts.getOrDefault("transfers", 0L) + " transfers");
        for (long i = 0; i < transfers; i++) {
            Varve.region(() -> {
                accounts.merge("ada", -1L, Long::sum);
                accounts.merge("grace", 1L, Long::sum);
                accounts.merge("transfers", 1L, Long::sum);
            });
        }
    }
}
