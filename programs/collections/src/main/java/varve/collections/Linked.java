package varve.collections;

import varve.common.Checksum;
import varve.common.Rng;

/** Structures of linked nodes, without any array: a list that is sorted by merging, and a search tree that stays balanced by chance. */
final class Linked {
    private Linked() {
    }

    static void run(int size) {
        list(size, new Rng(21));
        tree(size, new Rng(22));
    }

    private static final class Link {
        private final int value;
        private Link next;

        Link(int value, Link next) {
            this.value = value;
            this.next = next;
        }
    }

    /** The same numbers, sorted in place, then reversed into new links, and again. */
    private static void list(int size, Rng rng) {
        Link list = null;
        for (int i = 0; i < 4 * size; i++) {
            list = new Link(rng.below(1 << 20), list);
        }
        for (int i = 0; i < 4; i++) {
            list = reversed(sorted(list, 4 * size));
        }
        Checksum checksum = new Checksum();
        int length = 0;
        for (Link link = list; link != null; link = link.next) {
            if (length++ % 100 == 0) {
                checksum.add(link.value);
            }
        }
        System.out.println("list: " + length + " links from " + list.value + " downwards, checksum " + checksum);
    }

    private static Link sorted(Link list, int length) {
        if (length < 2) {
            return list;
        }
        Link last = list;
        for (int i = 1; i < length / 2; i++) {
            last = last.next;
        }
        Link rest = last.next;
        last.next = null;
        return merged(sorted(list, length / 2), sorted(rest, length - length / 2));
    }

    private static Link merged(Link a, Link b) {
        Link before = new Link(0, null);
        Link last = before;
        while (a != null && b != null) {
            if (a.value <= b.value) {
                last.next = a;
                a = a.next;
            } else {
                last.next = b;
                b = b.next;
            }
            last = last.next;
        }
        last.next = a == null ? b : a;
        return before.next;
    }

    private static Link reversed(Link list) {
        Link reversed = null;
        for (Link link = list; link != null; link = link.next) {
            reversed = new Link(link.value, reversed);
        }
        return reversed;
    }

    /** A treap (Seidel and Aragon): ordered by key from left to right, by random weight from top to bottom. */
    private static final class Node {
        private final int key;
        private final int weight;
        private int value;
        private Node left;
        private Node right;

        Node(int key, int weight, int value) {
            this.key = key;
            this.weight = weight;
            this.value = value;
        }
    }

    private static void tree(int size, Rng rng) {
        Node root = null;
        for (int i = 0; i < 8 * size; i++) {
            int key = rng.below(2 * size);
            if (rng.below(4) > 0) {
                root = inserted(root, key, rng.below(Integer.MAX_VALUE), i);
            } else {
                root = removed(root, key);
            }
        }
        Checksum checksum = new Checksum();
        int count = walk(root, checksum);
        System.out.println("tree: " + count + " nodes, height " + height(root) + ", checksum " + checksum);
    }

    private static Node inserted(Node node, int key, int weight, int value) {
        if (node == null) {
            return new Node(key, weight, value);
        }
        if (key == node.key) {
            node.value = value;
        } else if (key < node.key) {
            node.left = inserted(node.left, key, weight, value);
            if (node.left.weight > node.weight) {
                Node top = node.left;
                node.left = top.right;
                top.right = node;
                return top;
            }
        } else {
            node.right = inserted(node.right, key, weight, value);
            if (node.right.weight > node.weight) {
                Node top = node.right;
                node.right = top.left;
                top.left = node;
                return top;
            }
        }
        return node;
    }

    private static Node removed(Node node, int key) {
        if (node == null) {
            return null;
        }
        if (key == node.key) {
            return joined(node.left, node.right);
        }
        if (key < node.key) {
            node.left = removed(node.left, key);
        } else {
            node.right = removed(node.right, key);
        }
        return node;
    }

    /** All keys of the left tree are less than those of the right one. */
    private static Node joined(Node left, Node right) {
        if (left == null || right == null) {
            return left == null ? right : left;
        }
        if (left.weight > right.weight) {
            left.right = joined(left.right, right);
            return left;
        }
        right.left = joined(left, right.left);
        return right;
    }

    private static int height(Node node) {
        return node == null ? 0 : 1 + Math.max(height(node.left), height(node.right));
    }

    private static int walk(Node node, Checksum checksum) {
        if (node == null) {
            return 0;
        }
        int left = walk(node.left, checksum);
        checksum.add(node.key).add(node.value);
        return left + 1 + walk(node.right, checksum);
    }
}
