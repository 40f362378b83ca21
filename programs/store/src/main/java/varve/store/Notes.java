package varve.store;

/** What a server has promised besides its values. */
final class Notes {
    /** When all values are to be forgotten, seconds since 1970; 0 if they are not. */
    long flushAt;
}
