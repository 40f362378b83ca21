package varve.stores;

import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;

/** H2's MVStore. It writes in the background each second; a commit writes at once, without a sync. */
final class MvStore implements Target {
    private final MVStore store;
    private final MVMap<String, byte[]> map;
    private final Durability durability;

    MvStore(String folder, Durability durability) {
        this.durability = durability;
        store = new MVStore.Builder().fileName(folder + "/store.mv").open();
        map = store.openMap("values");
    }

    @Override
    public byte[] read(String key) {
        return map.get(key);
    }

    @Override
    public void write(String key, byte[] value) {
        map.put(key, value);
        if (durability != Durability.NONE) {
            store.commit();
        }
        if (durability == Durability.MACHINE) {
            store.sync();
        }
    }

    @Override
    public void close() {
        store.close();
    }
}
