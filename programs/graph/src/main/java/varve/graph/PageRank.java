package varve.graph;

/** How important vertices are: each shares its rank among those it points at. An edge carries the share. */
final class PageRank implements VertexProgram {
    private static final double DAMPING = 0.85;

    @Override
    public void update(Vertex vertex, int iteration, Schedule schedule) {
        double rank = 1;
        if (iteration > 0) {
            double sum = 0;
            for (int i = 0; i < vertex.incoming(); i++) {
                sum += vertex.incoming(i).value();
            }
            rank = 1 - DAMPING + DAMPING * sum;
        }
        vertex.setValue(rank);
        double share = rank / vertex.outgoing();
        for (int i = 0; i < vertex.outgoing(); i++) {
            vertex.outgoing(i).setValue(share);
        }
    }
}
