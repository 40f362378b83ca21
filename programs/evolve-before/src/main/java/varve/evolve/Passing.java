package varve.evolve;

/** Not there any more in the next version. */
final class Passing {
    final int number = 7;
}
