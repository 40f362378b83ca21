package varve.evolve;

/** One object of each class of numbers. */
final class Ware extends Thing {
    byte small = -100;
    short medium = -30000;
    char letter = '\uFFFD';
    int large = -2000000000;
    float real = 0.1f;
    long price;
    double weight = 2.5;
    int next = 3;

    Ware(String name, long price) {
        super(name, 4);
        this.price = price;
    }
}
