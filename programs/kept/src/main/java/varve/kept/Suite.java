package varve.kept;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Supplier;

/** The list of cases. */
final class Suite {
    /** A case: how its value is made, and what a step does with it. */
    static final class Case {
        final String name;
        final Supplier<?> make;
        final BiFunction<Object, Step, Object> step;

        Case(String name, Supplier<?> make, BiFunction<Object, Step, Object> step) {
            this.name = name;
            this.make = make;
            this.step = step;
        }
    }

    final List<Case> cases = new ArrayList<>();
    /** Values that must be refused when they become durable. */
    final List<Case> refused = new ArrayList<>();

    /** A case whose steps change the value itself. */
    @SuppressWarnings("unchecked")
    <T> void change(String name, Supplier<? extends T> make, BiConsumer<T, Step> step) {
        cases.add(new Case(name, make, (value, s) -> {
            step.accept((T) value, s);
            return value;
        }));
    }

    /** A case whose steps put another value in the place of the last one. */
    @SuppressWarnings("unchecked")
    <T> void replace(String name, Supplier<? extends T> make, BiFunction<T, Step, T> step) {
        cases.add(new Case(name, make, (value, s) -> step.apply((T) value, s)));
    }

    void refuse(String name, Supplier<?> make) {
        refused.add(new Case(name, make, (value, s) -> {
            s.say("it is durable");
            return value;
        }));
    }
}
