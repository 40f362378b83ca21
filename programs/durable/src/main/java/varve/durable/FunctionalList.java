package varve.durable;

import org.pcollections.ConsPStack;
import org.pcollections.PSequence;
import org.pcollections.TreePVector;
import varve.Varve;

/** FArray and FList: PCollections' vector and stack, of which every operation makes a new one that one store publishes. */
final class FunctionalList implements Sequence {
    private static final class Holder {
        PSequence<Integer> elements;
    }

    private final Holder holder;

    FunctionalList(String root, boolean stack) {
        holder = Varve.root(root, () -> {
            Holder made = new Holder();
            made.elements = stack ? ConsPStack.empty() : TreePVector.empty();
            return made;
        });
    }

    @Override
    public int size() {
        return holder.elements.size();
    }

    @Override
    public int get(int index) {
        return holder.elements.get(index);
    }

    @Override
    public void set(int index, int value) {
        holder.elements = holder.elements.with(index, value);
    }

    @Override
    public void insert(int index, int value) {
        holder.elements = holder.elements.plus(index, value);
    }

    @Override
    public void remove(int index) {
        holder.elements = holder.elements.minus(index);
    }
}
