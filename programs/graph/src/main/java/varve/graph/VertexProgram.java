package varve.graph;

/** What is computed: an update of one vertex that looks at its edges and changes their values. */
interface VertexProgram {
    /** Updates a vertex; neighbours for whom something changed are scheduled. */
    void update(Vertex vertex, int iteration, Schedule schedule);

    /** After every vertex had its turn; what there is to say of the iteration. */
    default String afterIteration(int iteration) {
        return null;
    }

    /** Whether only scheduled vertices are updated after the first iteration. */
    default boolean isSelective() {
        return false;
    }
}
