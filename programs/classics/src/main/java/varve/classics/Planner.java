package varve.classics;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Keeps as many constraints satisfied as their strengths allow, step by step as they come and go (Freeman-Benson, Maloney, Borning). */
final class Planner {
    private int mark;

    void add(Constraint constraint) {
        constraint.attach();
        int now = ++mark;
        Constraint overridden = satisfy(constraint, now);
        while (overridden != null) {
            overridden = satisfy(overridden, now);
        }
    }

    void remove(Constraint constraint) {
        if (!constraint.isSatisfied()) {
            constraint.detach();
            return;
        }
        Variable out = constraint.output();
        constraint.unsatisfy();
        constraint.detach();
        List<Constraint> unsatisfied = release(out);
        for (Strength strength = Strength.REQUIRED; strength != Strength.WEAKEST; strength = strength.next()) {
            for (Constraint c : unsatisfied) {
                if (c.strength == strength) {
                    int now = ++mark;
                    Constraint overridden = satisfy(c, now);
                    while (overridden != null) {
                        overridden = satisfy(overridden, now);
                    }
                }
            }
        }
    }

    /** Tries to satisfy a constraint; the one that had to give way for it, if any. */
    private Constraint satisfy(Constraint constraint, int now) {
        if (!constraint.choose(now)) {
            if (constraint.strength == Strength.REQUIRED) {
                throw new IllegalStateException("a required constraint cannot be satisfied");
            }
            return null;
        }
        constraint.markInputs(now);
        Variable out = constraint.output();
        Constraint overridden = out.determinedBy;
        if (overridden != null) {
            overridden.unsatisfy();
        }
        out.determinedBy = constraint;
        if (!propagate(constraint, now)) {
            throw new IllegalStateException("the constraints form a cycle");
        }
        out.mark = now;
        return overridden;
    }

    /** Brings up to date what depends on a constraint's output; not if that leads back to where it began. */
    private boolean propagate(Constraint constraint, int now) {
        Deque<Constraint> todo = new ArrayDeque<>();
        todo.add(constraint);
        while (!todo.isEmpty()) {
            Constraint c = todo.removeFirst();
            if (c != constraint && c.output().mark == now) {
                return false;
            }
            c.recalculate();
            addReaders(c.output(), todo);
        }
        return true;
    }

    private static void addReaders(Variable variable, Deque<Constraint> to) {
        for (Constraint c : variable.constraints) {
            if (c != variable.determinedBy && c.isSatisfied()) {
                to.addLast(c);
            }
        }
    }

    /** Lets go of a variable and what depended on it; the constraints that might be satisfied now. */
    private static List<Constraint> release(Variable out) {
        out.determinedBy = null;
        out.walkabout = Strength.WEAKEST;
        out.stays = true;
        List<Constraint> unsatisfied = new ArrayList<>();
        Deque<Variable> todo = new ArrayDeque<>();
        todo.add(out);
        while (!todo.isEmpty()) {
            Variable v = todo.removeFirst();
            for (Constraint c : v.constraints) {
                if (!c.isSatisfied()) {
                    unsatisfied.add(c);
                } else if (c != v.determinedBy) {
                    c.recalculate();
                    todo.addLast(c.output());
                }
            }
        }
        return unsatisfied;
    }

    /** The constraints that have to be executed, in order, when those that take input from outside have. */
    List<Constraint> plan(List<Constraint> sources) {
        int now = ++mark;
        List<Constraint> plan = new ArrayList<>();
        Deque<Constraint> todo = new ArrayDeque<>();
        for (Constraint c : sources) {
            if (c.isInput() && c.isSatisfied()) {
                todo.add(c);
            }
        }
        while (!todo.isEmpty()) {
            Constraint c = todo.removeFirst();
            if (c.output().mark != now && c.inputsKnown(now)) {
                plan.add(c);
                c.output().mark = now;
                addReaders(c.output(), todo);
            }
        }
        return plan;
    }
}
