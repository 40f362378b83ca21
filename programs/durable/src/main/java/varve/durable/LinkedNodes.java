package varve.durable;

import varve.Varve;

/**
 * MList: a doubly linked list. What counts are the links forward, each changed by one store; links backward and the length, which other stores
 * change, are put right when the list is opened.
 */
final class LinkedNodes implements Sequence {
    private static final class Node {
        int value;
        Node next;
        Node previous;
    }

    private final Node head;
    private int size;

    LinkedNodes(String root) {
        head = Varve.root(root, Node::new);
        for (Node node = head; node.next != null; node = node.next) {
            if (node.next.previous != node) {
                node.next.previous = node;
            }
            size++;
        }
    }

    /** The node before an index. */
    private Node before(int index) {
        Node node = head;
        for (int i = 0; i < index; i++) {
            node = node.next;
        }
        return node;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public int get(int index) {
        return before(index).next.value;
    }

    @Override
    public void set(int index, int value) {
        before(index).next.value = value;
    }

    @Override
    public void insert(int index, int value) {
        Node before = before(index);
        Node node = new Node();
        node.value = value;
        node.next = before.next;
        node.previous = before;
        before.next = node;
        if (node.next != null) {
            node.next.previous = node;
        }
        size++;
    }

    @Override
    public void remove(int index) {
        Node before = before(index);
        Node after = before.next.next;
        before.next = after;
        if (after != null) {
            after.previous = before;
        }
        size--;
    }
}
