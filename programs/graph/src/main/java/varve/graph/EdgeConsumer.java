package varve.graph;

/** Takes edges one by one. */
interface EdgeConsumer {
    void edge(int source, int target, double value);
}
