package varve.durable;

/** A list of numbers whose every operation survives as a whole, or not at all. */
interface Sequence {
    int size();

    int get(int index);

    void set(int index, int value);

    void insert(int index, int value);

    void remove(int index);

    static Sequence open(String kind, String root) {
        return switch (kind) {
            case "marray" -> new CopiedArray(root);
            case "mlist" -> new LinkedNodes(root);
            case "fararray" -> new RegionArray(root);
            case "farray" -> new FunctionalList(root, false);
            default -> new FunctionalList(root, true);
        };
    }
}
