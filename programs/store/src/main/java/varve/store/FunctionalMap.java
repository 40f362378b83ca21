package varve.store;

import java.util.Iterator;
import java.util.Map;
import org.pcollections.HashPMap;
import org.pcollections.HashTreePMap;
import varve.Varve;

/** FHMap: a hash map that never changes; a change is a new map that shares most of the old one, and one store of a reference. */
final class FunctionalMap implements Table {
    /** What is durable. */
    private static final class Root {
        private HashPMap<Key, Value> map = HashTreePMap.empty();
    }

    private final Root root = Varve.root("fhmap", Root::new);

    @Override
    public Value get(Key key) {
        return root.map.get(key);
    }

    @Override
    public Value put(Key key, Value value) {
        HashPMap<Key, Value> map = root.map;
        Value before = map.get(key);
        root.map = map.plus(key, value);
        return before;
    }

    @Override
    public Value remove(Key key) {
        HashPMap<Key, Value> map = root.map;
        Value before = map.get(key);
        if (before != null) {
            root.map = map.minus(key);
        }
        return before;
    }

    @Override
    public void clear() {
        root.map = HashTreePMap.empty();
    }

    @Override
    public int size() {
        return root.map.size();
    }

    /** Of the map as it is now. */
    @Override
    public Cursor scan() {
        Iterator<Map.Entry<Key, Value>> entries = root.map.entrySet().iterator();
        return new Cursor() {
            private Map.Entry<Key, Value> entry;

            @Override
            public boolean next() {
                entry = entries.hasNext() ? entries.next() : null;
                return entry != null;
            }

            @Override
            public Key key() {
                return entry.getKey();
            }

            @Override
            public Value value() {
                return entry.getValue();
            }
        };
    }
}
