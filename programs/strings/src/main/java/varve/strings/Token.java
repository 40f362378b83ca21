package varve.strings;

/** A word and the line on which it stands. */
record Token(String word, int line) {
}
