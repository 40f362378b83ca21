package varve.stores;

/** What survives when a write has returned. */
enum Durability {
    /** Nothing is promised: the target writes when it likes. */
    NONE,
    /** The write survives the death of the process: the system has it. */
    PROCESS,
    /** The write survives a loss of power: the medium has it. */
    MACHINE
}
