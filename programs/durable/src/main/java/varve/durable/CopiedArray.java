package varve.durable;

import varve.Varve;

/** MArray: insertions and deletions make a new array and publish it by one store; updates are in place. */
final class CopiedArray implements Sequence {
    private static final class Holder {
        int[] elements = new int[0];
    }

    private final Holder holder;

    CopiedArray(String root) {
        holder = Varve.root(root, Holder::new);
    }

    @Override
    public int size() {
        return holder.elements.length;
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
        int[] old = holder.elements;
        int[] copy = new int[old.length + 1];
        System.arraycopy(old, 0, copy, 0, index);
        copy[index] = value;
        System.arraycopy(old, index, copy, index + 1, old.length - index);
        holder.elements = copy;
    }

    @Override
    public void remove(int index) {
        int[] old = holder.elements;
        int[] copy = new int[old.length - 1];
        System.arraycopy(old, 0, copy, 0, index);
        System.arraycopy(old, index + 1, copy, index, copy.length - index);
        holder.elements = copy;
    }
}
