package varve.store;

/** An inner node of a B+ tree: the child at i has the keys from the one at i on, the first child those below. */
final class Inner {
    static final int CHILDREN = 64;

    /** Children in use; keys are one fewer, and the one at i - 1 is the least of child i. */
    int count;
    final Key[] keys = new Key[CHILDREN - 1];
    final Object[] children = new Object[CHILDREN];

    /** The child that a key belongs to. */
    int position(Key key) {
        int low = 0;
        int high = count - 1;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (keys[middle].compareTo(key) <= 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    boolean isFull() {
        return count == CHILDREN;
    }

    /** Puts a child after the one at a position. There is room. */
    void insert(int position, Key least, Object child) {
        System.arraycopy(keys, position, keys, position + 1, count - 1 - position);
        System.arraycopy(children, position + 1, children, position + 2, count - 1 - position);
        keys[position] = least;
        children[position + 1] = child;
        count++;
    }

    /** Takes a child away; one is left at least. */
    void remove(int position) {
        int key = Math.max(position - 1, 0);
        System.arraycopy(keys, key + 1, keys, key, count - 2 - key);
        System.arraycopy(children, position + 1, children, position, count - 1 - position);
        count--;
        keys[count - 1] = null;
        children[count] = null;
    }
}
