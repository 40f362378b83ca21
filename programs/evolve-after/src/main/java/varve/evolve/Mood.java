package varve.evolve;

/** One constant came, the others moved. */
enum Mood {
    PLAIN,
    SAD {
        @Override
        String says() {
            return "sad";
        }
    },
    MERRY {
        @Override
        String says() {
            return "merry";
        }
    },
    CALM {
        @Override
        String says() {
            return "calm";
        }
    };

    String says() {
        return "plain";
    }
}
