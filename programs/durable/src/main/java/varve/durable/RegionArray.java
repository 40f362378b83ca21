package varve.durable;

import varve.Varve;

/** FARArray: insertions and deletions shift in place, in a failure-atomic region each. */
final class RegionArray implements Sequence {
    private static final class Holder {
        int[] elements = new int[16];
        int size;
    }

    private final Holder holder;

    RegionArray(String root) {
        holder = Varve.root(root, Holder::new);
    }

    @Override
    public int size() {
        return holder.size;
    }

    @Override
    public int get(int index) {
        return holder.elements[index];
    }

    @Override
    public void set(int index, int value) {
        holder.elements[index] = value;
    }

    @Override
    public void insert(int index, int value) {
        Varve.begin();
        Holder h = holder;
        if (h.size == h.elements.length) {
            int[] larger = new int[2 * h.size];
            System.arraycopy(h.elements, 0, larger, 0, h.size);
            h.elements = larger;
        }
        for (int i = h.size; i > index; i--) {
            h.elements[i] = h.elements[i - 1];
        }
        h.elements[index] = value;
        h.size++;
        Varve.end();
    }

    @Override
    public void remove(int index) {
        Varve.begin();
        Holder h = holder;
        for (int i = index; i + 1 < h.size; i++) {
            h.elements[i] = h.elements[i + 1];
        }
        h.size--;
        Varve.end();
    }
}
