package varve.store;

/** The list of a tree's leaves, from least to greatest keys: all that must be kept to have the tree again. */
final class Leaves {
    /** Never null. */
    Leaf first = new Leaf();
}
