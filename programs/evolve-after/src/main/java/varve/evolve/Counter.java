package varve.evolve;

/** Of no other use than to have such fields. */
final class Counter {
    int version;
    int head;
    int tail;
    int next;
    Object[] elements = new Object[1];
    String name = " arguments";

    void count(int n) {
        version += n;
        head = version;
        tail = head;
        next = tail;
        elements[0] = name;
    }
}
