package varve.evolve;

/** Came in between, and took a field along. */
class Priced extends Thing {
    long price;
    int discount;

    Priced(String name, int next) {
        super(name, next);
    }
}
