package varve.graph;

import java.io.IOException;

/** Where a graph comes from. */
interface EdgeSource {
    void forEach(EdgeConsumer consumer) throws IOException;
}
