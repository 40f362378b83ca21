package varve.evolve;

import varve.Renamed;

/** Was a customer. */
@Renamed("varve.evolve.Customer")
final class Account {
    final Address address = new Address();
    @Renamed("year")
    final long born;
    final String name;

    /** Renamed with the class around it. */
    static final class Address {
        final String street = "St James's Square";
    }

    Account(String name, int born) {
        this.name = name;
        this.born = born;
    }
}
