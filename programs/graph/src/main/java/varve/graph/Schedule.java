package varve.graph;

/** Which vertices have something to do, in this iteration and in the next. */
final class Schedule {
    private final long[] words;
    private long count;

    Schedule(int vertices) {
        words = new long[(vertices + Long.SIZE - 1) / Long.SIZE];
    }

    void add(int vertex) {
        long bit = 1L << vertex;
        if ((words[vertex / Long.SIZE] & bit) == 0) {
            words[vertex / Long.SIZE] |= bit;
            count++;
        }
    }

    /** Whether a vertex was there; it is not any more. */
    boolean take(int vertex) {
        long bit = 1L << vertex;
        boolean there = (words[vertex / Long.SIZE] & bit) != 0;
        if (there) {
            words[vertex / Long.SIZE] &= ~bit;
            count--;
        }
        return there;
    }

    boolean hasAny(int first, int last) {
        for (int word = first / Long.SIZE; word <= last / Long.SIZE; word++) {
            long bits = words[word];
            if (word == first / Long.SIZE) {
                bits &= -1L << first;
            }
            if (word == last / Long.SIZE) {
                bits &= -1L >>> Long.SIZE - 1 - last % Long.SIZE;
            }
            if (bits != 0) {
                return true;
            }
        }
        return false;
    }

    boolean isEmpty() {
        return count == 0;
    }
}
