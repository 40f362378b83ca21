package varve.store;

/** Values by key. What a method has changed when it returns survives a crash. */
interface Table {
    /** Null if there is none. */
    Value get(Key key);

    /** The value that was there, or null. */
    Value put(Key key, Value value);

    /** The value that was there, or null. */
    Value remove(Key key);

    void clear();

    int size();

    /** Begins before the first value. */
    Cursor scan();

    /**
     * Goes over all values. One that is put or removed meanwhile may be seen or not, and one that stays is seen at least once.
     */
    interface Cursor {
        /** Whether there was another one. */
        boolean next();

        Key key();

        Value value();
    }
}
