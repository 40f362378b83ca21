package varve.jvm;

/** Words and sentences as a natural language has them: few words are frequent. */
final class Text {
    private static final int WORDS = 20_000;
    private static final String[] SYLLABLES = {"ka", "lo", "mi", "ter", "san", "ve", "ru", "po", "den", "al", "fi", "go", "hus", "ni",
        "or", "tum", "ba", "ce", "dri", "ew"};
    private static final String[] ALL = words();

    private Text() {
    }

    private static String[] words() {
        String[] words = new String[WORDS];
        for (int i = 0; i < WORDS; i++) {
            StringBuilder word = new StringBuilder();
            for (int rest = i + 1; rest > 0; rest /= SYLLABLES.length) {
                word.append(SYLLABLES[rest % SYLLABLES.length]);
            }
            words[i] = word.toString();
        }
        return words;
    }

    static String word(Random random) {
        return ALL[random.skewed(WORDS)];
    }

    static String sentence(Random random, int words) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < words; i++) {
            text.append(i == 0 ? "" : " ").append(word(random));
        }
        return text.toString();
    }
}
