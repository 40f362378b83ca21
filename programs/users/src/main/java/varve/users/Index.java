package varve.users;

/** A B+ tree from names' hashes to the rights of users and their profiles. */
final class Index {
    private static final int WIDTH = 32;

    private Node root = new Leaf();
    private int size;

    int size() {
        return size;
    }

    int rights(long name) {
        Leaf leaf = leaf(name);
        int at = leaf.find(name);
        return at < leaf.count && leaf.keys[at] == name ? leaf.rights[at] : 0;
    }

    Profile profile(long name) {
        Leaf leaf = leaf(name);
        return leaf.profiles[leaf.find(name)];
    }

    void put(long name, int rights, Profile profile) {
        Node right = root.put(name, rights, profile, this);
        if (right != null) {
            Inner above = new Inner();
            above.children[0] = root;
            above.children[1] = right;
            above.keys[0] = right.least();
            above.count = 1;
            root = above;
        }
    }

    private Leaf leaf(long name) {
        Node node = root;
        while (node instanceof Inner) {
            Inner inner = (Inner) node;
            node = inner.children[inner.after(name)];
        }
        return (Leaf) node;
    }

    private abstract static class Node {
        final long[] keys = new long[WIDTH];
        int count;

        /** The first place whose key is not less than this one. */
        final int find(long key) {
            int low = 0;
            int high = count;
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (keys[middle] < key) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }

        abstract long least();

        /** Returns the new right half of a node that was full; otherwise null. */
        abstract Node put(long name, int rights, Profile profile, Index index);
    }

    private static final class Leaf extends Node {
        final int[] rights = new int[WIDTH];
        final Profile[] profiles = new Profile[WIDTH];

        @Override
        long least() {
            return keys[0];
        }

        @Override
        Node put(long name, int rights, Profile profile, Index index) {
            int at = find(name);
            if (at < count && keys[at] == name) {
                this.rights[at] = rights;
                profiles[at] = profile;
                return null;
            }
            if (count == WIDTH) {
                Leaf right = split();
                (name < right.keys[0] ? this : right).put(name, rights, profile, index);
                return right;
            }
            System.arraycopy(keys, at, keys, at + 1, count - at);
            System.arraycopy(this.rights, at, this.rights, at + 1, count - at);
            System.arraycopy(profiles, at, profiles, at + 1, count - at);
            keys[at] = name;
            this.rights[at] = rights;
            profiles[at] = profile;
            count++;
            index.size++;
            return null;
        }

        private Leaf split() {
            Leaf right = new Leaf();
            int half = WIDTH / 2;
            System.arraycopy(keys, half, right.keys, 0, half);
            System.arraycopy(rights, half, right.rights, 0, half);
            System.arraycopy(profiles, half, right.profiles, 0, half);
            for (int i = half; i < WIDTH; i++) {
                profiles[i] = null;
            }
            right.count = half;
            count = half;
            return right;
        }
    }

    private static final class Inner extends Node {
        final Node[] children = new Node[WIDTH + 1];

        /** The child that has a key: the number of keys that are not greater. */
        int after(long key) {
            int at = find(key);
            return at < count && keys[at] == key ? at + 1 : at;
        }

        @Override
        long least() {
            return children[0].least();
        }

        @Override
        Node put(long name, int rights, Profile profile, Index index) {
            int at = after(name);
            Node below = children[at].put(name, rights, profile, index);
            if (below == null) {
                return null;
            }
            System.arraycopy(keys, at, keys, at + 1, count - at);
            System.arraycopy(children, at + 1, children, at + 2, count - at);
            keys[at] = below.least();
            children[at + 1] = below;
            count++;
            return count < WIDTH ? null : split();
        }

        private Inner split() {
            Inner right = new Inner();
            int half = WIDTH / 2;
            int moved = WIDTH - half - 1;
            System.arraycopy(keys, half + 1, right.keys, 0, moved);
            System.arraycopy(children, half + 1, right.children, 0, moved + 1);
            for (int i = half + 1; i <= WIDTH; i++) {
                children[i] = null;
            }
            right.count = moved;
            count = half;
            return right;
        }
    }
}
