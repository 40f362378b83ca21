package varve.stores;

import java.util.HashMap;
import org.eclipse.store.storage.embedded.types.EmbeddedStorage;
import org.eclipse.store.storage.embedded.types.EmbeddedStorageManager;
import java.nio.file.Path;

/**
 * EclipseStore: objects in memory, stored one by one when the program says so. Values are in holders, so that one is stored without its
 * neighbours; a new key stores the small map that it is in. It does not offer a sync.
 */
final class EclipseStore implements Target {
    private static final int MAPS = 1 << 14;

    /** A value that may be stored alone. */
    static final class Holder {
        byte[] value;

        Holder(byte[] value) {
            this.value = value;
        }
    }

    /** Reached from the root. */
    static final class Maps {
        @SuppressWarnings("unchecked")
        final HashMap<String, Holder>[] maps = new HashMap[MAPS];

        Maps() {
            for (int i = 0; i < MAPS; i++) {
                maps[i] = new HashMap<>();
            }
        }
    }

    private final EmbeddedStorageManager storage;
    private final Maps maps = new Maps();
    private final Durability durability;

    EclipseStore(String folder, Durability durability) {
        this.durability = durability;
        if (durability == Durability.MACHINE) {
            throw new UnsupportedOperationException("it does not offer a sync");
        }
        storage = EmbeddedStorage.start(maps, Path.of(folder));
    }

    private HashMap<String, Holder> map(String key) {
        int hash = key.hashCode();
        return maps.maps[(hash ^ hash >>> 16) & MAPS - 1];
    }

    @Override
    public byte[] read(String key) {
        Holder holder = map(key).get(key);
        return holder == null ? null : holder.value;
    }

    @Override
    public void write(String key, byte[] value) {
        HashMap<String, Holder> map = map(key);
        Holder holder = map.get(key);
        boolean stores = durability != Durability.NONE;
        if (holder != null) {
            holder.value = value;
            if (stores) {
                storage.store(holder);
            }
        } else {
            map.put(key, new Holder(value));
            if (stores) {
                storage.store(map);
            }
        }
    }

    @Override
    public void close() {
        storage.shutdown();
    }
}
