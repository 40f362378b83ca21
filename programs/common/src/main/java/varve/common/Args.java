package varve.common;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The arguments of a program: words by position, and options {@code --name VALUE}. What is wrong ends the program with code 2. */
public final class Args {
    private static final int WRONG_USAGE = 2;

    private final String usage;
    private final List<String> words = new ArrayList<>();
    private final Map<String, String> options = new HashMap<>();

    /**
     * Reads arguments.
     *
     * @param usage one line that says which there are, without the word "usage"
     * @param args what main was given
     * @param mostWords how many arguments by position there may be
     * @param names the options, without dashes
     */
    public Args(String usage, String[] args, int mostWords, String... names) {
        this.usage = usage;
        for (int i = 0; i < args.length; i++) {
            String arg = args[i];
            if (arg.equals("--help")) {
                System.out.println("usage: " + usage);
                System.exit(0);
            } else if (arg.startsWith("--")) {
                String name = arg.substring(2);
                if (!List.of(names).contains(name)) {
                    fail("unknown option " + arg);
                }
                if (i + 1 == args.length) {
                    fail(arg + " needs a value");
                }
                options.put(name, args[++i]);
            } else {
                words.add(arg);
            }
        }
        if (words.size() > mostWords) {
            fail("unexpected argument " + words.get(mostWords));
        }
    }

    /** The word at a position, or the fallback. */
    public String word(int position, String fallback) {
        return position < words.size() ? words.get(position) : fallback;
    }

    /** The word at a position, which is one of some; the first of them is the fallback. */
    public String choice(int position, String... allowed) {
        String word = word(position, allowed[0]);
        if (!List.of(allowed).contains(word)) {
            fail("unknown argument " + word + ", not one of " + String.join(", ", allowed));
        }
        return word;
    }

    /** The number at a position, or the fallback. */
    public int number(int position, String meaning, int fallback, int least, int most) {
        return position < words.size() ? parse(meaning, words.get(position), least, most) : fallback;
    }

    /** The number that an option gives, or the fallback. */
    public int option(String name, int fallback, int least, int most) {
        String value = options.get(name);
        return value == null ? fallback : parse("--" + name, value, least, most);
    }

    /** Whether an option was given. */
    public boolean has(String name) {
        return options.containsKey(name);
    }

    private int parse(String what, String text, int least, int most) {
        try {
            int value = Integer.parseInt(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Said below, together with what would be right.
        }
        throw fail(what + " must be a number from " + least + " to " + most + ", not " + text);
    }

    /** Ends the program with a message and the usage line. */
    public IllegalArgumentException fail(String why) {
        System.err.println("error: " + why);
        System.err.println("usage: " + usage);
        System.exit(WRONG_USAGE);
        return new IllegalArgumentException(why);
    }

    /** What an option gives as it is, or null. */
    public String text(String name) {
        return options.get(name);
    }
}
