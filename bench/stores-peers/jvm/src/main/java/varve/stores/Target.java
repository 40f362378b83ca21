package varve.stores;

/** What keeps values. What a write has promised when it returns depends on the durability that the target was opened with. */
interface Target extends AutoCloseable {
    /** Null if there is none. */
    byte[] read(String key);

    void write(String key, byte[] value);

    @Override
    void close();
}
