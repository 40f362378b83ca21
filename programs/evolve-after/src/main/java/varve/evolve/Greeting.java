package varve.evolve;

/** Says something. */
interface Greeting {
    String greet();
}
