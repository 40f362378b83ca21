package varve.trees;

import varve.common.Args;
import varve.common.Rounds;
import varve.common.Stopwatch;

/** Builds and walks many complete binary trees while one tree lives on, as the benchmarks game describes it. */
public final class Trees {
    private static final int LEAST_DEPTH = 4;

    private static final class Node {
        private final Node left;
        private final Node right;

        Node(Node left, Node right) {
            this.left = left;
            this.right = right;
        }

        static Node build(int depth) {
            return depth == 0 ? new Node(null, null) : new Node(build(depth - 1), build(depth - 1));
        }

        int count() {
            return left == null ? 1 : 1 + left.count() + right.count();
        }
    }

    public static void main(String[] args) {
        Args given = new Args("trees [DEPTH] [--rounds N]", args, 1, Rounds.OPTION);
        int depth = Math.max(given.number(0, "the depth", 16, 1, 26), LEAST_DEPTH + 2);
        Rounds.of(given, () -> run(depth));
    }

    private static void run(int depth) {
        Stopwatch stopwatch = new Stopwatch();
        System.out.println("stretch tree of depth " + (depth + 1) + ", nodes: " + Node.build(depth + 1).count());
        Node longLived = Node.build(depth);
        for (int d = LEAST_DEPTH; d <= depth; d += 2) {
            int trees = 1 << depth - d + LEAST_DEPTH;
            long nodes = 0;
            for (int i = 0; i < trees; i++) {
                nodes += Node.build(d).count();
            }
            System.out.println(trees + " trees of depth " + d + ", nodes: " + nodes);
        }
        System.out.println("long-lived tree of depth " + depth + ", nodes: " + longLived.count());
        stopwatch.lap("trees");
    }
}
