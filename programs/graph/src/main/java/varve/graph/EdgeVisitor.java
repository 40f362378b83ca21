package varve.graph;

/** Sees an edge of a block, and where in the chunk its value is. */
interface EdgeVisitor {
    void edge(int source, int target, Chunk chunk, int slot);
}
