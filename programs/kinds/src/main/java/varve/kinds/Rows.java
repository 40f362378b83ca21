package varve.kinds;

import java.util.function.Consumer;
import java.util.function.Predicate;

/** A list in an array that grows, as programs that bring their own collections have. */
final class Rows<E> {
    private Object[] items;
    private int from;
    private int to;

    Rows() {
        this(10);
    }

    Rows(int room) {
        items = new Object[room];
    }

    @SuppressWarnings("unchecked")
    E at(int index) {
        return index >= to - from ? null : (E) items[from + index];
    }

    void put(int index, E item) {
        while (index >= items.length) {
            grow();
        }
        items[index] = item;
        if (to < index + 1) {
            to = index + 1;
        }
    }

    void add(E item) {
        if (to >= items.length) {
            grow();
        }
        items[to] = item;
        to++;
    }

    private void grow() {
        Object[] larger = new Object[2 * items.length + 1];
        System.arraycopy(items, 0, larger, 0, items.length);
        items = larger;
    }

    @SuppressWarnings("unchecked")
    void forEach(Consumer<? super E> action) {
        for (int i = from; i < to; i++) {
            action.accept((E) items[i]);
        }
    }

    @SuppressWarnings("unchecked")
    boolean any(Predicate<? super E> test) {
        for (int i = from; i < to; i++) {
            if (test.test((E) items[i])) {
                return true;
            }
        }
        return false;
    }

    @SuppressWarnings("unchecked")
    E removeFirst() {
        if (from == to) {
            return null;
        }
        E first = (E) items[from];
        items[from] = null;
        from++;
        return first;
    }

    boolean remove(E item) {
        Object[] kept = new Object[items.length];
        int n = 0;
        boolean found = false;
        for (int i = from; i < to; i++) {
            if (items[i] == item) {
                found = true;
            } else {
                kept[n++] = items[i];
            }
        }
        items = kept;
        from = 0;
        to = n;
        return found;
    }

    boolean isEmpty() {
        return from == to;
    }

    int size() {
        return to - from;
    }
}
