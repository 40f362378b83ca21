package varve.classics;

import java.util.List;

/** Says something of one variable: that it stays, or that it is changed from outside. */
final class UnaryConstraint extends Constraint {
    private final Variable variable;
    private final boolean edit;
    private boolean satisfied;

    private UnaryConstraint(Variable variable, Strength strength, boolean edit) {
        super(strength);
        this.variable = variable;
        this.edit = edit;
    }

    static Constraint stay(Variable variable, Strength strength) {
        return new UnaryConstraint(variable, strength, false);
    }

    static Constraint edit(Variable variable, Strength strength) {
        return new UnaryConstraint(variable, strength, true);
    }

    @Override
    List<Variable> variables() {
        return List.of(variable);
    }

    @Override
    boolean choose(int mark) {
        satisfied = variable.mark != mark && strength.strongerThan(variable.walkabout);
        return satisfied;
    }

    @Override
    boolean isSatisfied() {
        return satisfied;
    }

    @Override
    void unsatisfy() {
        satisfied = false;
    }

    @Override
    Variable output() {
        return variable;
    }

    @Override
    List<Variable> inputs() {
        return List.of();
    }

    @Override
    boolean isInput() {
        return edit;
    }

    @Override
    boolean changes() {
        return edit;
    }

    /** The value is there already. */
    @Override
    void execute() {
    }

    @Override
    boolean canSet(Variable v) {
        return true;
    }
}
