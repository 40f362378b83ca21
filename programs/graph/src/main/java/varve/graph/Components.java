package varve.graph;

/** Which vertices hang together, whatever the direction of edges: the least number spreads. An edge carries the lesser of its ends. */
final class Components implements VertexProgram {
    @Override
    public boolean isSelective() {
        return true;
    }

    @Override
    public void update(Vertex vertex, int iteration, Schedule schedule) {
        boolean first = iteration == 0;
        double label = first ? vertex.id() : least(vertex);
        if (first || label < vertex.value()) {
            vertex.setValue(label);
            for (int i = 0; i < vertex.incoming(); i++) {
                lower(vertex.incoming(i), label, first, schedule);
            }
            for (int i = 0; i < vertex.outgoing(); i++) {
                lower(vertex.outgoing(i), label, first, schedule);
            }
        }
        if (first) {
            schedule.add(vertex.id());
        }
    }

    private static double least(Vertex vertex) {
        double least = vertex.value();
        for (int i = 0; i < vertex.incoming(); i++) {
            least = Math.min(least, vertex.incoming(i).value());
        }
        for (int i = 0; i < vertex.outgoing(); i++) {
            least = Math.min(least, vertex.outgoing(i).value());
        }
        return least;
    }

    /** In the first iteration the values of edges mean nothing where the neighbour had no turn yet. */
    private static void lower(Edge edge, double label, boolean first, Schedule schedule) {
        boolean fresh = first && edge.neighbour() >= label;
        if (fresh || edge.value() > label) {
            edge.setValue(label);
            if (!first) {
                schedule.add(edge.neighbour());
            }
        }
    }
}
