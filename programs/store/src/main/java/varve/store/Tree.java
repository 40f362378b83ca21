package varve.store;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import varve.Varve;

/**
 * A B+ tree above a list of leaves. Nodes that are full are split on the way down; leaves that are empty are taken out, and nodes are not merged.
 */
final class Tree {
    /** How full the nodes of a new index are: with room for some splits. */
    private static final int NEW_CHILDREN = Inner.CHILDREN * 3 / 4;

    private final Leaves leaves;
    private Object root;

    /** The index of leaves that are there, in time that grows with their number. */
    Tree(Leaves leaves) {
        this.leaves = leaves;
        index();
    }

    Leaf first() {
        return leaves.first;
    }

    Leaf.Entry find(Key key) {
        Object node = root;
        while (node instanceof Inner inner) {
            node = inner.children[inner.position(key)];
        }
        return ((Leaf) node).find(key);
    }

    /** Adds an entry whose key is not there. */
    void add(Leaf.Entry entry) {
        if (root instanceof Inner inner && inner.isFull()) {
            Varve.region(() -> {
                Inner above = new Inner();
                above.children[0] = inner;
                above.count = 1;
                split(above, 0, inner);
                root = above;
            });
        }
        Inner above = null;
        int position = 0;
        Object node = root;
        while (node instanceof Inner inner) {
            if (inner.isFull()) {
                Inner parent = above;
                int at = position;
                Varve.region(() -> split(parent, at, inner));
                // One of the halves.
                position = above.position(entry);
                node = above.children[position];
                continue;
            }
            above = inner;
            position = inner.position(entry);
            node = inner.children[position];
        }
        Leaf leaf = (Leaf) node;
        if (leaf.add(entry)) {
            return;
        }
        Inner parent = above;
        int at = position;
        Varve.region(() -> split(parent, at, leaf, entry));
    }

    private static void split(Inner parent, int position, Inner full) {
        Inner right = new Inner();
        int kept = Inner.CHILDREN / 2;
        right.count = Inner.CHILDREN - kept;
        System.arraycopy(full.children, kept, right.children, 0, right.count);
        System.arraycopy(full.keys, kept, right.keys, 0, right.count - 1);
        Key least = full.keys[kept - 1];
        parent.insert(position, least, right);
        Arrays.fill(full.children, kept, Inner.CHILDREN, null);
        Arrays.fill(full.keys, kept - 1, Inner.CHILDREN - 1, null);
        full.count = kept;
    }

    /** Splits a full leaf for one more entry. Without a parent the leaf was the root. */
    private void split(Inner parent, int position, Leaf full, Leaf.Entry entry) {
        Leaf.Entry[] sorted = full.entries.clone();
        Arrays.sort(sorted);
        Leaf.Entry middle = sorted[Leaf.SLOTS / 2];
        Leaf right = new Leaf();
        for (int i = Leaf.SLOTS / 2; i < Leaf.SLOTS; i++) {
            right.add(sorted[i]);
        }
        if (entry.compareTo(middle) >= 0) {
            right.add(entry);
        }
        right.next = full.next;
        // Not the entry itself, which would keep a value alive.
        Key least = new Key(middle);
        right.from = least;
        Inner above = parent == null ? new Inner() : parent;
        // All that needs room of the heap is there now: one that is full leaves the tree as it was. A region that is full has what is durable taken
        // back, and so that comes before what is not.
        full.next = right;
        for (int i = 0; i < Leaf.SLOTS; i++) {
            if (full.entries[i].compareTo(middle) >= 0) {
                full.entries[i] = null;
            }
        }
        if (entry.compareTo(middle) < 0) {
            full.add(entry);
        }
        if (parent == null) {
            above.children[0] = full;
            above.count = 1;
        }
        above.insert(position, least, right);
        if (parent == null) {
            root = above;
        }
    }

    /** The entry that was there, or null. */
    Leaf.Entry remove(Key key) {
        List<Inner> path = new ArrayList<>();
        List<Integer> positions = new ArrayList<>();
        Object node = root;
        while (node instanceof Inner inner) {
            int position = inner.position(key);
            path.add(inner);
            positions.add(position);
            node = inner.children[position];
        }
        Leaf leaf = (Leaf) node;
        int slot = leaf.slot(key);
        if (slot < 0) {
            return null;
        }
        Leaf.Entry entry = leaf.entries[slot];
        leaf.entries[slot] = null;
        if (leaf.isEmpty()) {
            unlink(leaf, path, positions);
        }
        return entry;
    }

    /** Takes out a leaf that is empty, unless it is the last one. */
    private void unlink(Leaf leaf, List<Inner> path, List<Integer> positions) {
        int level = path.size() - 1;
        while (level >= 0 && path.get(level).count == 1) {
            level--;
        }
        if (level < 0) {
            return;
        }
        Inner shrinks = path.get(level);
        int position = positions.get(level);
        Leaf before = before(path, positions);
        Varve.region(() -> {
            if (before == null) {
                leaves.first = leaf.next;
            } else {
                before.next = leaf.next;
            }
            shrinks.remove(position);
            while (root instanceof Inner inner && inner.count == 1) {
                root = inner.children[0];
            }
        });
    }

    /** The leaf before the one that a path leads to. */
    private static Leaf before(List<Inner> path, List<Integer> positions) {
        for (int level = path.size() - 1; level >= 0; level--) {
            int position = positions.get(level);
            if (position > 0) {
                Object node = path.get(level).children[position - 1];
                while (node instanceof Inner inner) {
                    node = inner.children[inner.count - 1];
                }
                return (Leaf) node;
            }
        }
        return null;
    }

    void clear() {
        Varve.region(() -> {
            leaves.first = new Leaf();
            root = leaves.first;
        });
    }

    /** Fails if a key is where it would not be found, leaves are not in order, or an index made anew would be another tree's. */
    void verify() {
        Leaf end = verify(root, null, null, leaves.first);
        if (end != null) {
            throw new IllegalStateException("leaves after the last one of the index");
        }
        Tree anew = new Tree(leaves);
        for (Leaf leaf = leaves.first; leaf != null; leaf = leaf.next) {
            for (Leaf.Entry entry : leaf.entries) {
                if (entry != null && anew.find(entry) != entry) {
                    throw new IllegalStateException("an index made anew does not find an entry");
                }
            }
        }
    }

    /** Checks a node whose first leaf must be the one given, and whose keys must be from {@code from} to below {@code to}; the leaf after its last. */
    private static Leaf verify(Object node, Key from, Key to, Leaf first) {
        if (node instanceof Inner inner) {
            Leaf leaf = first;
            for (int i = 0; i < inner.count; i++) {
                Key low = i == 0 ? from : inner.keys[i - 1];
                Key high = i == inner.count - 1 ? to : inner.keys[i];
                leaf = verify(inner.children[i], low, high, leaf);
            }
            return leaf;
        }
        Leaf leaf = (Leaf) node;
        if (leaf != first) {
            throw new IllegalStateException("the list of leaves is not in the index's order");
        }
        for (Leaf.Entry entry : leaf.entries) {
            if (entry != null && (from != null && entry.compareTo(from) < 0 || to != null && entry.compareTo(to) >= 0)) {
                throw new IllegalStateException("a key is in another leaf than its own");
            }
        }
        return leaf.next;
    }

    private void index() {
        List<Object> nodes = new ArrayList<>();
        List<Key> least = new ArrayList<>();
        for (Leaf leaf = leaves.first; leaf != null; leaf = leaf.next) {
            nodes.add(leaf);
            Key key = leaf.least();
            Key from = leaf.from;
            if (from == null || key == null || from.compareTo(key) > 0) {
                from = key == null ? null : new Key(key);
            }
            least.add(from);
        }
        while (nodes.size() > 1) {
            List<Object> above = new ArrayList<>();
            List<Key> leastAbove = new ArrayList<>();
            for (int from = 0; from < nodes.size(); from += NEW_CHILDREN) {
                Inner inner = new Inner();
                inner.count = Math.min(NEW_CHILDREN, nodes.size() - from);
                for (int i = 0; i < inner.count; i++) {
                    inner.children[i] = nodes.get(from + i);
                    if (i > 0) {
                        inner.keys[i - 1] = least.get(from + i);
                    }
                }
                above.add(inner);
                leastAbove.add(least.get(from));
            }
            nodes = above;
            least = leastAbove;
        }
        root = nodes.get(0);
    }
}
