package varve.graph;

import java.util.List;

/** Which vertices hang together, whatever the direction of edges: the least number spreads. An edge carries the lesser of its ends. */
final class Components implements VertexProgram {
    @Override
    public boolean isSelective() {
        return true;
    }

    @Override
    public void update(Vertex vertex, int iteration, Schedule schedule) {
        double label = iteration == 0 ? vertex.id() : vertex.value();
        if (iteration > 0) {
            label = Math.min(label, Math.min(least(vertex.incoming()), least(vertex.outgoing())));
        }
        if (iteration == 0) {
            vertex.setValue(label);
            lower(vertex.incoming(), label, true, schedule);
            lower(vertex.outgoing(), label, true, schedule);
            schedule.add(vertex.id());
        } else if (label < vertex.value()) {
            vertex.setValue(label);
            lower(vertex.incoming(), label, false, schedule);
            lower(vertex.outgoing(), label, false, schedule);
        }
    }

    private static double least(List<Edge> edges) {
        double least = Double.POSITIVE_INFINITY;
        for (Edge edge : edges) {
            least = Math.min(least, edge.value());
        }
        return least;
    }

    /** In the first iteration the values of edges mean nothing where the neighbour had no turn yet. */
    private static void lower(List<Edge> edges, double label, boolean first, Schedule schedule) {
        for (Edge edge : edges) {
            boolean fresh = first && edge.neighbour() >= label;
            if (fresh || edge.value() > label) {
                edge.setValue(label);
                if (!first) {
                    schedule.add(edge.neighbour());
                }
            }
        }
    }
}
