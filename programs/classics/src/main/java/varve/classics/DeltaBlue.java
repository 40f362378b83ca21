package varve.classics;

import java.util.ArrayList;
import java.util.List;

/** An incremental solver of constraints at work: a long chain of equalities, and many small linear equations that share two variables. */
final class DeltaBlue {
    private static final int PLAN_RUNS = 100;

    private final Planner planner = new Planner();

    private DeltaBlue() {
    }

    static void run(int length) {
        new DeltaBlue().chain(length);
        new DeltaBlue().projection(length);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    /** What is set at one end arrives at the other. */
    private void chain(int length) {
        List<Variable> variables = new ArrayList<>();
        for (int i = 0; i <= length; i++) {
            variables.add(new Variable("v" + i, 0));
        }
        for (int i = 0; i < length; i++) {
            planner.add(LinearConstraint.equal(variables.get(i), variables.get(i + 1)));
        }
        Variable first = variables.get(0);
        Variable last = variables.get(length);
        planner.add(UnaryConstraint.stay(last, Strength.STRONG_DEFAULT));
        Constraint edit = UnaryConstraint.edit(first, Strength.PREFERRED);
        planner.add(edit);
        List<Constraint> plan = planner.plan(List.of(edit));
        for (int value = 0; value < PLAN_RUNS; value++) {
            first.value = value;
            plan.forEach(Constraint::execute);
            check(last.value == value, "the chain does not pass " + value + " on");
        }
        planner.remove(edit);
        System.out.println("deltablue: a plan of " + plan.size() + " steps along a chain of " + length);
    }

    /** Points of one line are mapped to another, and back. */
    private void projection(int length) {
        Variable scale = new Variable("scale", 10);
        Variable offset = new Variable("offset", 1000);
        List<Variable> sources = new ArrayList<>();
        List<Variable> targets = new ArrayList<>();
        for (int i = 0; i < length; i++) {
            Variable source = new Variable("source" + i, i);
            Variable target = new Variable("target" + i, i);
            sources.add(source);
            targets.add(target);
            planner.add(UnaryConstraint.stay(source, Strength.NORMAL));
            planner.add(new LinearConstraint(source, scale, offset, target, Strength.REQUIRED));
        }
        Variable source = sources.get(length - 1);
        Variable target = targets.get(length - 1);
        change(source, 17);
        check(target.value == 1170, "the target does not follow its source: " + target.value);
        change(target, 1050);
        check(source.value == 5, "the source does not follow its target: " + source.value);
        change(scale, 5);
        long sum = 0;
        for (int i = 0; i < length - 1; i++) {
            check(targets.get(i).value == 5 * i + 1000, "the target does not follow the scale: " + targets.get(i).value);
            sum += targets.get(i).value;
        }
        change(offset, 2000);
        for (int i = 0; i < length - 1; i++) {
            check(targets.get(i).value == 5 * i + 2000, "the target does not follow the offset: " + targets.get(i).value);
            sum += targets.get(i).value;
        }
        System.out.println("deltablue: a projection of " + length + " points, sum " + sum);
    }

    private void change(Variable variable, int value) {
        Constraint edit = UnaryConstraint.edit(variable, Strength.PREFERRED);
        planner.add(edit);
        List<Constraint> plan = planner.plan(List.of(edit));
        for (int i = 0; i < 10; i++) {
            variable.value = value;
            plan.forEach(Constraint::execute);
        }
        planner.remove(edit);
    }
}
