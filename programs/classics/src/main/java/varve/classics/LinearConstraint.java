package varve.classics;

import java.util.ArrayList;
import java.util.List;

/** Target = source times scale plus offset; either of source and target may be set, the others are only read. */
final class LinearConstraint extends Constraint {
    private final Variable source;
    /** Null for one. */
    private final Variable scale;
    /** Null for zero. */
    private final Variable offset;
    private final Variable target;
    private Variable output;

    LinearConstraint(Variable source, Variable scale, Variable offset, Variable target, Strength strength) {
        super(strength);
        this.source = source;
        this.scale = scale;
        this.offset = offset;
        this.target = target;
    }

    static Constraint equal(Variable x, Variable y) {
        return new LinearConstraint(x, null, null, y, Strength.REQUIRED);
    }

    @Override
    List<Variable> variables() {
        return scale == null ? List.of(source, target) : List.of(source, scale, offset, target);
    }

    @Override
    boolean choose(int mark) {
        boolean sourceFree = source.mark != mark && strength.strongerThan(source.walkabout);
        boolean targetFree = target.mark != mark && strength.strongerThan(target.walkabout);
        if (sourceFree && targetFree) {
            output = target.walkabout.strongerThan(source.walkabout) ? source : target;
        } else {
            output = targetFree ? target : sourceFree ? source : null;
        }
        return output != null;
    }

    @Override
    boolean isSatisfied() {
        return output != null;
    }

    @Override
    void unsatisfy() {
        output = null;
    }

    @Override
    Variable output() {
        return output;
    }

    @Override
    List<Variable> inputs() {
        List<Variable> inputs = new ArrayList<>();
        inputs.add(output == target ? source : target);
        if (scale != null) {
            inputs.add(scale);
            inputs.add(offset);
        }
        return inputs;
    }

    @Override
    void execute() {
        int factor = scale == null ? 1 : scale.value;
        int summand = offset == null ? 0 : offset.value;
        if (output == target) {
            target.value = source.value * factor + summand;
        } else {
            source.value = (target.value - summand) / factor;
        }
    }

    @Override
    boolean canSet(Variable v) {
        return v == source || v == target;
    }
}
