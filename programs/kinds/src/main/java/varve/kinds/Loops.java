package varve.kinds;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Finds the loops of graphs of control flow, after Havlak (1997), with lists, maps and sets of objects. */
final class Loops {
    private static final class Block {
        final int name;
        final List<Block> in = new ArrayList<>(2);
        final List<Block> out = new ArrayList<>(2);

        Block(int name) {
            this.name = name;
        }
    }

    private static final class Graph {
        final Map<Integer, Block> blocks = new HashMap<>();
        Block start;

        Block block(int name) {
            Block block = blocks.get(name);
            if (block == null) {
                block = new Block(name);
                blocks.put(name, block);
                if (start == null) {
                    start = block;
                }
            }
            return block;
        }

        void edge(int from, int to) {
            Block a = block(from);
            Block b = block(to);
            a.out.add(b);
            b.in.add(a);
        }

        int diamond(int start) {
            edge(start, start + 1);
            edge(start, start + 2);
            edge(start + 1, start + 3);
            edge(start + 2, start + 3);
            return start + 3;
        }

        int straight(int start, int n) {
            for (int i = 0; i < n; i++) {
                edge(start + i, start + i + 1);
            }
            return start + n;
        }

        int loop(int from) {
            int header = straight(from, 1);
            int one = diamond(header);
            int two = straight(one, 1);
            int three = diamond(two);
            edge(three, three + 1);
            edge(three + 1, header);
            return straight(three + 1, 1);
        }
    }

    private static final class Node {
        Node parent;
        final Block block;
        final int number;
        Found loop;

        Node(Block block, int number) {
            this.block = block;
            this.number = number;
            parent = this;
        }

        Node find() {
            List<Node> path = new ArrayList<>();
            Node node = this;
            while (node != node.parent) {
                if (node.parent != node.parent.parent) {
                    path.add(node);
                }
                node = node.parent;
            }
            Node root = node.parent;
            path.forEach(n -> n.parent = root);
            return node;
        }
    }

    private static final class Found {
        final Set<Block> blocks = new HashSet<>();
        final Set<Found> children = new HashSet<>();
        Found parent;
        final boolean reducible;

        Found(Block header, boolean reducible) {
            this.reducible = reducible;
            blocks.add(header);
        }
    }

    private final Map<Block, Integer> numbers = new HashMap<>();
    private final List<Found> found = new ArrayList<>();
    private Node[] nodes;
    private int[] last;
    private List<Set<Integer>> otherPredecessors;
    private List<List<Integer>> backPredecessors;

    static long run() {
        Graph graph = new Graph();
        graph.edge(0, 1);
        graph.edge(0, 2);
        int n = 2;
        for (int outer = 0; outer < 8; outer++) {
            int top = n;
            graph.edge(2, n + 1);
            n++;
            for (int i = 0; i < 20; i++) {
                int second = n;
                n = graph.straight(n, 1);
                for (int j = 0; j < 5; j++) {
                    n = graph.loop(n);
                }
                int bottom = graph.straight(n, 1);
                graph.edge(n, second);
                n = bottom;
            }
            n = graph.straight(n, 1);
            graph.edge(n, top + 1);
        }
        Loops loops = new Loops();
        loops.find(graph);
        long sum = loops.found.size();
        for (Found f : loops.found) {
            sum = sum * 5 + f.blocks.size() + f.children.size() + (f.reducible ? 1 : 0);
        }
        return sum;
    }

    private int search(Block block, int number) {
        nodes[number] = new Node(block, number);
        numbers.put(block, number);
        int highest = number;
        for (Block next : block.out) {
            if (numbers.get(next) == null) {
                highest = search(next, highest + 1);
            }
        }
        last[number] = highest;
        return highest;
    }

    private boolean isAncestor(int w, int v) {
        return w <= v && v <= last[w];
    }

    private void find(Graph graph) {
        int size = graph.blocks.size();
        nodes = new Node[size];
        last = new int[size];
        otherPredecessors = new ArrayList<>(size);
        backPredecessors = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            otherPredecessors.add(new HashSet<>());
            backPredecessors.add(new ArrayList<>());
        }
        search(graph.start, 0);
        for (int w = 0; w < size; w++) {
            Node node = nodes[w];
            if (node == null) {
                continue;
            }
            for (Block from : node.block.in) {
                Integer v = numbers.get(from);
                if (v != null) {
                    if (isAncestor(w, v)) {
                        backPredecessors.get(w).add(v);
                    } else {
                        otherPredecessors.get(w).add(v);
                    }
                }
            }
        }
        for (int w = size - 1; w >= 0; w--) {
            if (nodes[w] != null) {
                look(w);
            }
        }
    }

    private void look(int w) {
        Node header = nodes[w];
        List<Node> pool = new ArrayList<>();
        boolean self = false;
        for (int v : backPredecessors.get(w)) {
            if (v == w) {
                self = true;
            } else {
                pool.add(nodes[v].find());
            }
        }
        List<Node> work = new ArrayList<>(pool);
        boolean reducible = true;
        while (!work.isEmpty()) {
            Node x = work.remove(work.size() - 1);
            for (int y : new ArrayList<>(otherPredecessors.get(x.number))) {
                Node root = nodes[y].find();
                if (!isAncestor(w, root.number)) {
                    reducible = false;
                    otherPredecessors.get(w).add(root.number);
                } else if (root.number != w && !pool.contains(root)) {
                    work.add(root);
                    pool.add(root);
                }
            }
        }
        if (pool.isEmpty() && !self) {
            return;
        }
        Found loop = new Found(header.block, reducible);
        header.loop = loop;
        for (Node node : pool) {
            node.parent = header;
            if (node.loop != null) {
                node.loop.parent = loop;
                loop.children.add(node.loop);
            } else {
                loop.blocks.add(node.block);
            }
        }
        found.add(loop);
    }
}
