package varve.kept;

/** The durable state of a case. */
final class Kept {
    /** What the case stores. */
    Object value;
    /** How many steps are done. */
    int steps;
}
