package varve.graph;

import java.util.ArrayList;
import java.util.List;

/** The edges into one interval, ordered by source, in blocks: in memory, as they would lie on a disk, or in a file. */
final class Shard {
    private final List<Block> blocks = new ArrayList<>();

    /** Takes edges that are ordered by source, and by target for the same source. */
    Shard(int[] sources, int[] targets, double[] values, ShardFile file) {
        for (int from = 0; from < sources.length; from += Block.MOST_EDGES) {
            blocks.add(new Block(sources, targets, values, from, Math.min(from + Block.MOST_EDGES, sources.length),
                    file));
        }
    }

    /** Reads the edges whose source is in a range, and adds the chunks that hold their values. */
    void load(int firstSource, int lastSource, List<Chunk> chunks, EdgeVisitor visitor) {
        for (int i = lowerBound(firstSource); i < blocks.size() && blocks.get(i).firstSource() <= lastSource; i++) {
            Block block = blocks.get(i);
            block.decode(block.open(chunks), firstSource, lastSource, visitor);
        }
    }

    /** The first block whose last source is not before the given one. */
    private int lowerBound(int source) {
        int low = 0;
        int high = blocks.size();
        while (low < high) {
            int middle = low + high >>> 1;
            if (blocks.get(middle).lastSource() < source) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    long bytes() {
        long sum = 0;
        for (Block block : blocks) {
            sum += block.bytes();
        }
        return sum;
    }
}
