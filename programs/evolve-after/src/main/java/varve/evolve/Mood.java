package varve.evolve;

import varve.Renamed;

/** One constant came, the others moved, and one is called otherwise. */
enum Mood {
    PLAIN,
    SAD {
        @Override
        String says() {
            return "sad";
        }
    },
    @Renamed("MERRY")
    GLAD {
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
