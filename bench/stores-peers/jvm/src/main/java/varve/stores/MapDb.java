package varve.stores;

import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.HTreeMap;
import org.mapdb.Serializer;

/** MapDB's hash map. With transactions it has a log, and a commit syncs it: there is nothing between none of it and all. */
final class MapDb implements Target {
    private final DB db;
    private final HTreeMap<String, byte[]> map;
    private final Durability durability;

    MapDb(String folder, Durability durability) {
        this.durability = durability;
        if (durability == Durability.PROCESS) {
            throw new UnsupportedOperationException("a commit always syncs");
        }
        DBMaker.Maker maker = DBMaker.fileDB(folder + "/store.mapdb").fileMmapEnableIfSupported();
        if (durability == Durability.MACHINE) {
            maker = maker.transactionEnable();
        }
        db = maker.make();
        map = db.hashMap("values", Serializer.STRING, Serializer.BYTE_ARRAY).createOrOpen();
    }

    @Override
    public byte[] read(String key) {
        return map.get(key);
    }

    @Override
    public void write(String key, byte[] value) {
        map.put(key, value);
        if (durability == Durability.MACHINE) {
            db.commit();
        }
    }

    @Override
    public void close() {
        db.close();
    }
}
