package varve.graph;

import java.util.List;
import varve.Varve;

/** A vertex with its edges, while its interval is loaded. */
final class Vertex {
    private static final int NUMBERS = 3;

    private final int id;
    /** The incoming edges and then the outgoing ones, each as its neighbour, the number of its chunk, and its slot in it. */
    private final int[] edges;
    private final int mostIncoming;
    private final List<Chunk> chunks;
    private int incoming;
    private int outgoing;
    private double value;

    /** A vertex with room for so many edges; their values are in the chunks. */
    Vertex(int id, double value, int inDegree, int outDegree, List<Chunk> chunks) {
        this.id = id;
        this.value = value;
        this.edges = Varve.critical(new int[NUMBERS * (inDegree + outDegree)]);
        this.mostIncoming = inDegree;
        this.chunks = chunks;
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

    /** How many edges come in. */
    int incoming() {
        return incoming;
    }

    /** How many edges go out. */
    int outgoing() {
        return outgoing;
    }

    void addIncoming(int neighbour, int chunk, int slot) {
        put(incoming++, neighbour, chunk, slot);
    }

    void addOutgoing(int neighbour, int chunk, int slot) {
        put(mostIncoming + outgoing++, neighbour, chunk, slot);
    }

    private void put(int at, int neighbour, int chunk, int slot) {
        edges[NUMBERS * at] = neighbour;
        edges[NUMBERS * at + 1] = chunk;
        edges[NUMBERS * at + 2] = slot;
    }

    /** The incoming edge of a number, from 0. */
    Edge incoming(int number) {
        return edge(number);
    }

    /** The outgoing edge of a number, from 0. */
    Edge outgoing(int number) {
        return edge(mostIncoming + number);
    }

    private Edge edge(int at) {
        return new Edge(edges[NUMBERS * at], chunks.get(edges[NUMBERS * at + 1]), edges[NUMBERS * at + 2]);
    }
}
