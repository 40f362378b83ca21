package varve.graph;

/** Sees an edge of a block, the number of the chunk that has its value, and where in the chunk that is. */
interface EdgeVisitor {
    void edge(int source, int target, int chunk, int slot);
}
