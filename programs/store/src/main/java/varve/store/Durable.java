package varve.store;

import java.util.function.Supplier;

/** What the stores need of durable objects. */
final class Durable {
    private Durable() {
    }

    static <T> T root(String name, Supplier<T> fresh) {
        return fresh.get();
    }

    static void region(Runnable stores) {
        stores.run();
    }
}
