package varve.graph;

import java.util.ArrayList;
import java.util.List;

/** A vertex with its edges, while its interval is loaded. */
final class Vertex {
    private final int id;
    private final List<Edge> incoming = new ArrayList<>();
    private final List<Edge> outgoing;
    private double value;

    Vertex(int id, double value, int outDegree) {
        this.id = id;
        this.value = value;
        this.outgoing = new ArrayList<>(outDegree);
    }

    int id() {
        return id;
    }

    double value() {
        return value;
    }

    void setValue(double value) {
        this.value = value;
    }

    List<Edge> incoming() {
        return incoming;
    }

    List<Edge> outgoing() {
        return outgoing;
    }
}
