package varve.evolve;

/** Classes without a name: the compiler numbers them in the order of the source. */
final class Greetings {
    private Greetings() {
    }

    static Greeting drop() {
        return new Greeting() {
            @Override
            public String greet() {
                return "DROP";
            }
        };
    }

    static Greeting keep() {
        return new Greeting() {
            @Override
            public String greet() {
                return "KEEP";
            }
        };
    }
}
