package varve.evolve;

/** Moved about in the next version. */
enum Mood {
    CALM {
        @Override
        String says() {
            return "calm";
        }
    },
    MERRY {
        @Override
        String says() {
            return "merry";
        }
    },
    PLAIN;

    String says() {
        return "plain";
    }
}
