package varve.host;

/** Operations that WebAssembly would answer with a trap, which Java could not catch, where the language wants an exception or a value. */
final class Checks {
    private Checks() {
    }

    static int divide(int dividend, int divisor) {
        if (divisor == 0) {
            throw new ArithmeticException("/ by zero");
        }
        // The least number divided so is too large, and Java's answer is the least number.
        return divisor == -1 ? -dividend : dividend / divisor;
    }

    static long divide(long dividend, long divisor) {
        if (divisor == 0) {
            throw new ArithmeticException("/ by zero");
        }
        return divisor == -1 ? -dividend : dividend / divisor;
    }

    static int remainder(int dividend, int divisor) {
        if (divisor == 0) {
            throw new ArithmeticException("/ by zero");
        }
        return dividend % divisor;
    }

    static long remainder(long dividend, long divisor) {
        if (divisor == 0) {
            throw new ArithmeticException("/ by zero");
        }
        return dividend % divisor;
    }

    static int arraySize(int size) {
        if (size < 0) {
            throw new NegativeArraySizeException(Integer.toString(size));
        }
        return size;
    }
}
