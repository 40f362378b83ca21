package varve.classics;

import java.util.List;

/** Something that should hold of variables, with methods that make it hold by setting one of them. */
abstract class Constraint {
    final Strength strength;

    Constraint(Strength strength) {
        this.strength = strength;
    }

    abstract List<Variable> variables();

    /** Chooses the variable to set, among those that are not marked and weak enough; whether there is one. */
    abstract boolean choose(int mark);

    abstract boolean isSatisfied();

    abstract void unsatisfy();

    /** What the chosen method sets. */
    abstract Variable output();

    /** What the chosen method reads. */
    abstract List<Variable> inputs();

    /** Makes it hold. */
    abstract void execute();

    /** Whether the output comes from outside, so that a plan starts here. */
    boolean isInput() {
        return false;
    }

    /** Whether the output's value may change while a plan runs, whatever the inputs. */
    boolean changes() {
        return false;
    }

    void attach() {
        for (Variable v : variables()) {
            v.constraints.add(this);
        }
    }

    void detach() {
        for (Variable v : variables()) {
            v.remove(this);
        }
    }

    boolean inputsKnown(int mark) {
        for (Variable v : inputs()) {
            if (v.mark != mark && !v.stays && v.determinedBy != null) {
                return false;
            }
        }
        return true;
    }

    void markInputs(int mark) {
        for (Variable v : inputs()) {
            v.mark = mark;
        }
    }

    /** Brings what is known of the output up to date. */
    void recalculate() {
        Variable out = output();
        out.walkabout = strength;
        boolean stays = !changes();
        for (Variable v : inputs()) {
            stays &= v.stays;
        }
        // Another variable might give way in this one's place.
        for (Variable v : variables()) {
            if (v != out && canSet(v)) {
                out.walkabout = strength.weaker(v.walkabout);
            }
        }
        out.stays = stays;
        if (stays) {
            execute();
        }
    }

    /** Whether some method sets this variable. */
    abstract boolean canSet(Variable v);
}
