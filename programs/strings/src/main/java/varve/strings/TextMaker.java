package varve.strings;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import varve.common.Rng;
import varve.common.Zipf;

/** Makes text: invented words of syllables, some far more frequent than others, in sentences and paragraphs. */
final class TextMaker {
    private static final String[] ONSETS = { "b", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v" };
    private static final String[] NUCLEI = { "a", "e", "i", "o", "u", "ä", "ei", "ou" };
    private static final String[] CODAS = { "", "", "l", "n", "r", "s", "t" };

    private final Rng rng;
    private final List<String> vocabulary;
    private final Zipf frequency;

    TextMaker(long seed, int words) {
        rng = new Rng(seed);
        Set<String> made = new LinkedHashSet<>();
        while (made.size() < words) {
            made.add(word());
        }
        vocabulary = new ArrayList<>(made);
        frequency = new Zipf(words);
    }

    private String word() {
        StringBuilder word = new StringBuilder();
        int syllables = 1 + rng.below(4);
        for (int i = 0; i < syllables; i++) {
            word.append(pick(ONSETS)).append(pick(NUCLEI)).append(pick(CODAS));
        }
        return word.toString();
    }

    private String pick(String[] of) {
        return of[rng.below(of.length)];
    }

    /** Lines that end with {@code \n}, an empty one between paragraphs. */
    String make(int words) {
        StringBuilder text = new StringBuilder();
        int column = 0;
        boolean begins = true;
        for (int i = 0; i < words; i++) {
            String word = vocabulary.get(frequency.next(rng));
            if (begins) {
                word = word.substring(0, 1).toUpperCase() + word.substring(1);
            }
            text.append(word);
            column += word.length() + 1;
            begins = rng.below(12) == 0;
            if (begins) {
                text.append('.');
            } else if (rng.below(10) == 0) {
                text.append(',');
            }
            if (begins && rng.below(6) == 0) {
                text.append("\n\n");
                column = 0;
            } else if (column > 70) {
                text.append('\n');
                column = 0;
            } else {
                text.append(' ');
            }
        }
        return text.append('\n').toString();
    }
}
