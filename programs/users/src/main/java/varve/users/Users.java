package varve.users;

import varve.common.Args;
import varve.common.Checksum;
import varve.common.Rng;
import varve.common.Stopwatch;

/**
 * A directory of users in memory. Most requests ask whether a user may do something, which the index answers; some read a user's
 * profile, and a few replace it.
 */
public final class Users {
    private static final String USAGE = "users [REQUESTS] [--users N] [--profile-bytes N] [--profiles PERCENT]"
            + " [--updates PERCENT] [--seed N]";

    private final Index index = new Index();
    private final Rng rng;
    private final int profileBytes;

    private Users(long seed, int profileBytes) {
        rng = new Rng(seed);
        this.profileBytes = profileBytes;
    }

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 1, "users", "profile-bytes", "profiles", "updates", "seed");
        int requests = given.number(0, "the number of requests", 1_000_000, 1, 1_000_000_000);
        int users = given.option("users", 100_000, 1, 100_000_000);
        int profiles = given.option("profiles", 9, 0, 100);
        int updates = given.option("updates", 1, 0, 100);
        if (profiles + updates > 100) {
            given.fail("profiles and updates are more than 100 percent together");
        }
        Users directory = new Users(given.option("seed", 1, 0, Integer.MAX_VALUE),
                given.option("profile-bytes", 300, 1, 1 << 20));
        Stopwatch stopwatch = new Stopwatch();
        directory.load(users);
        stopwatch.lap("load");
        directory.serve(requests, users, profiles, updates);
        stopwatch.lap("requests");
    }

    /** The hash of a user's name, by which the index is ordered. */
    private static long name(int user) {
        long hash = user * 0x9e3779b97f4a7c15L;
        hash = (hash ^ (hash >>> 32)) * 0xd6e8feb86659fd93L;
        return hash ^ (hash >>> 32);
    }

    private void load(int users) {
        for (int user = 0; user < users; user++) {
            index.put(name(user), rng.below(16), new Profile(profileBytes, user));
        }
        System.out.println(index.size() + " users");
    }

    private void serve(int requests, int users, int profiles, int updates) {
        int allowed = 0;
        Checksum checksum = new Checksum();
        for (int i = 0; i < requests; i++) {
            long name = name(rng.below(users));
            int kind = rng.below(100);
            if (kind < profiles) {
                checksum.add(index.profile(name).read());
            } else if (kind < profiles + updates) {
                index.put(name, rng.below(16), new Profile(profileBytes, i));
            } else if ((index.rights(name) & 1 << (i & 3)) != 0) {
                allowed++;
            }
        }
        System.out.println(requests + " requests, " + allowed + " were allowed");
        System.out.println("checksum " + checksum.add(allowed));
    }
}
