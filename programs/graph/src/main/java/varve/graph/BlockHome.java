package varve.graph;

/** Where the edges of a block are while they are not loaded. */
interface BlockHome {
    /** The edges' ends, encoded. Valid until another block is read. */
    byte[] adjacency();

    /** A copy of the edges' values. */
    double[] values();

    /** Takes the edges' values. */
    void store(double[] values);

    /** Bytes that it takes. */
    int bytes();
}
