package varve.store;

import varve.Varve;

/** PBTree, a B+ tree that is durable as a whole, and HBTree, of which only the leaves are and whose inner nodes are made anew. */
final class TreeTable implements Table {
    private final Tree tree;

    /** Counted, not kept: a durable counter would be one more store with each value. */
    private int size;

    private TreeTable(Tree tree) {
        this.tree = tree;
        for (Leaf leaf = tree.first(); leaf != null; leaf = leaf.next) {
            size += leaf.count();
        }
    }

    static TreeTable persistent() {
        return new TreeTable(Varve.root("pbtree", () -> new Tree(new Leaves())));
    }

    static TreeTable hybrid() {
        return new TreeTable(new Tree(Varve.root("hbtree", Leaves::new)));
    }

    @Override
    public Value get(Key key) {
        Leaf.Entry entry = tree.find(key);
        return entry == null ? null : entry.value;
    }

    @Override
    public Value put(Key key, Value value) {
        Leaf.Entry entry = tree.find(key);
        if (entry == null) {
            tree.add(new Leaf.Entry(key, value));
            size++;
            return null;
        }
        Value before = entry.value;
        entry.value = value;
        return before;
    }

    @Override
    public Value remove(Key key) {
        Leaf.Entry entry = tree.remove(key);
        if (entry == null) {
            return null;
        }
        size--;
        return entry.value;
    }

    @Override
    public void clear() {
        tree.clear();
        size = 0;
    }

    @Override
    public int size() {
        return size;
    }

    /** See {@link Tree#verify}. */
    void verify() {
        tree.verify();
    }

    /** By leaves in the order of keys, and in no order within one. A leaf is left with what it has when it is left. */
    @Override
    public Cursor scan() {
        return new Cursor() {
            private Leaf leaf = tree.first();
            private int slot = -1;
            private Leaf.Entry entry;

            @Override
            public boolean next() {
                while (leaf != null) {
                    for (slot++; slot < Leaf.SLOTS; slot++) {
                        entry = leaf.entries[slot];
                        if (entry != null) {
                            return true;
                        }
                    }
                    leaf = leaf.next;
                    slot = -1;
                }
                return false;
            }

            @Override
            public Key key() {
                return entry;
            }

            @Override
            public Value value() {
                return entry.value;
            }
        };
    }
}
