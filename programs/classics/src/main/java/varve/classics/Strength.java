package varve.classics;

/** How much a constraint matters, the most important first. */
enum Strength {
    REQUIRED, STRONG_PREFERRED, PREFERRED, STRONG_DEFAULT, NORMAL, WEAK_DEFAULT, WEAKEST;

    boolean strongerThan(Strength other) {
        return ordinal() < other.ordinal();
    }

    Strength weaker(Strength other) {
        return strongerThan(other) ? other : this;
    }

    Strength next() {
        return values()[ordinal() + 1];
    }
}
