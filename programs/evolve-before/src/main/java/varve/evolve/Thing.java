package varve.evolve;

/** What all wares are. */
class Thing {
    final String name;
    /** Ware has a field of that name too. */
    int next;

    Thing(String name, int next) {
        this.name = name;
        this.next = next;
    }
}
