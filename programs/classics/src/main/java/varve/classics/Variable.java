package varve.classics;

import java.util.ArrayList;
import java.util.List;

/** A value under constraints. */
final class Variable {
    final String name;
    final List<Constraint> constraints = new ArrayList<>();
    int value;
    /** The constraint whose output this is; null if nothing says. */
    Constraint determinedBy;
    /** The strength of the weakest constraint that would have to give way for another to set this. */
    Strength walkabout = Strength.WEAKEST;
    /** Whether the value never changes while a plan runs. */
    boolean stays = true;
    int mark;

    Variable(String name, int value) {
        this.name = name;
        this.value = value;
    }

    void remove(Constraint constraint) {
        constraints.remove(constraint);
        if (determinedBy == constraint) {
            determinedBy = null;
        }
    }
}
