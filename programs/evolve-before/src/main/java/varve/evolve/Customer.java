package varve.evolve;

/** Called otherwise in the next version, and so is one of its fields. */
final class Customer {
    final String name;
    final int year;
    final Address address = new Address();

    /** Renamed with the class around it. */
    static final class Address {
        final String street = "St James's Square";
    }

    Customer(String name, int year) {
        this.name = name;
        this.year = year;
    }
}
