package varve.evolve;

/** With wider numbers, in another order, and without a weight. */
final class Ware extends Priced {
    int next = 3;
    double real = 0.1f;
    long large = -2000000000;
    int letter = '\uFFFD';
    int medium = -30000;
    long small = -100;

    Ware(String name, long price) {
        super(name, 4);
        this.price = price;
    }
}
