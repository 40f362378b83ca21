package varve.jvm;

/** A program: what it has before its first iteration, and what one thread does in an iteration. */
interface Work extends AutoCloseable {
    /**
     * One thread's part of an iteration.
     *
     * @param thread its number, from 0
     * @param random its own numbers, the same in every iteration
     * @param size how much to do: about as many operations of the program
     * @return a digest of the answers, which is the same however threads take turns
     */
    long run(int thread, Random random, int size) throws Exception;

    /** Puts back what an iteration has changed; a digest of what it left. */
    default long reset() throws Exception {
        return 0;
    }

    @Override
    default void close() throws Exception {
    }
}
