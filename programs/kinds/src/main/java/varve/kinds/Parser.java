package varve.kinds;

/** Reads JSON one character at a time, where a character is a string of one, into maps and lists of its own. */
final class Parser {
    private static final String TEXT = text();

    private final String input;
    private int index = -1;
    private int line = 1;
    private int column;
    private String current = "";
    private String captured = "";
    private int captureStart = -1;

    private Parser(String input) {
        this.input = input;
    }

    static long run() {
        Value value = new Parser(TEXT).parse();
        return value.weigh();
    }

    private static String text() {
        StringBuilder out = new StringBuilder("{\"name\": \"a catalogue\", \"rows\": [");
        Random random = new Random(42);
        for (int i = 0; i < 400; i++) {
            out.append(i == 0 ? "\n" : ",\n").append("  {\"id\": ").append(i)
                    .append(", \"title\": \"entry number ").append(random.next()).append("\\n\"")
                    .append(", \"price\": ").append(random.next() % 1000).append('.').append(random.next() % 100)
                    .append(", \"there\": ").append(random.next() % 2 == 0 ? "true" : "false")
                    .append(", \"tags\": [\"red\", \"round\", null, ").append(-random.next()).append("e2]}");
        }
        return out.append("]}").toString();
    }

    abstract static class Value {
        abstract long weigh();
    }

    static final class Word extends Value {
        final String word;

        Word(String word) {
            this.word = word;
        }

        @Override
        long weigh() {
            return word.length();
        }
    }

    static final class Numeral extends Value {
        final String digits;

        Numeral(String digits) {
            this.digits = digits;
        }

        @Override
        long weigh() {
            return 2 * digits.length();
        }
    }

    static final class Text extends Value {
        final String text;

        Text(String text) {
            this.text = text;
        }

        @Override
        long weigh() {
            return text.hashCode() & 0xff;
        }
    }

    static final class ListOf extends Value {
        final Rows<Value> items = new Rows<>();

        @Override
        long weigh() {
            long[] sum = {1};
            items.forEach(v -> sum[0] = sum[0] * 7 + v.weigh());
            return sum[0];
        }
    }

    static final class MapOf extends Value {
        final Rows<String> names = new Rows<>();
        final Rows<Value> values = new Rows<>();
        private final int[] places = new int[32];

        void put(String name, Value value) {
            int at = names.size();
            names.add(name);
            values.add(value);
            if (at < 0xff) {
                places[name.hashCode() & 31] = at + 1;
            }
        }

        Value get(String name) {
            int at = places[name.hashCode() & 31] - 1;
            if (at >= 0 && names.at(at).equals(name)) {
                return values.at(at);
            }
            for (int i = 0; i < names.size(); i++) {
                if (names.at(i).equals(name)) {
                    return values.at(i);
                }
            }
            return null;
        }

        @Override
        long weigh() {
            long sum = names.size();
            for (int i = 0; i < names.size(); i++) {
                sum = sum * 3 + get(names.at(i)).weigh();
            }
            return sum;
        }
    }

    private Value parse() {
        read();
        skipBlanks();
        Value value = value();
        skipBlanks();
        if (index < input.length()) {
            throw new IllegalStateException("more at line " + line + ":" + column);
        }
        return value;
    }

    private void read() {
        if ("\n".equals(current)) {
            line++;
            column = 0;
        }
        index++;
        current = index < input.length() ? input.substring(index, index + 1) : null;
        column++;
    }

    private Value value() {
        return switch (current) {
            case "n" -> word("null");
            case "t" -> word("true");
            case "f" -> word("false");
            case "\"" -> new Text(string());
            case "[" -> list();
            case "{" -> map();
            default -> number();
        };
    }

    private Value word(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (!word.substring(i, i + 1).equals(current)) {
                throw new IllegalStateException("expected " + word);
            }
            read();
        }
        return new Word(word);
    }

    private Value list() {
        read();
        ListOf list = new ListOf();
        skipBlanks();
        if (accept("]")) {
            return list;
        }
        do {
            skipBlanks();
            list.items.add(value());
            skipBlanks();
        } while (accept(","));
        expect("]");
        return list;
    }

    private Value map() {
        read();
        MapOf map = new MapOf();
        skipBlanks();
        if (accept("}")) {
            return map;
        }
        do {
            skipBlanks();
            String name = string();
            skipBlanks();
            expect(":");
            skipBlanks();
            map.put(name, value());
            skipBlanks();
        } while (accept(","));
        expect("}");
        return map;
    }

    private String string() {
        read();
        startCapture();
        while (!"\"".equals(current)) {
            if ("\\".equals(current)) {
                pauseCapture();
                read();
                captured += "n".equals(current) ? "\n" : current;
                read();
                startCapture();
            } else {
                read();
            }
        }
        String text = endCapture();
        read();
        return text;
    }

    private Value number() {
        startCapture();
        accept("-");
        digits();
        if (accept(".")) {
            digits();
        }
        if (accept("e") || accept("E")) {
            if (!accept("+")) {
                accept("-");
            }
            digits();
        }
        return new Numeral(endCapture());
    }

    private void digits() {
        if (!isDigit()) {
            throw new IllegalStateException("expected a digit at line " + line + ":" + column);
        }
        while (isDigit()) {
            read();
        }
    }

    private boolean isDigit() {
        return "0".equals(current) || "1".equals(current) || "2".equals(current) || "3".equals(current)
                || "4".equals(current) || "5".equals(current) || "6".equals(current) || "7".equals(current)
                || "8".equals(current) || "9".equals(current);
    }

    private boolean isBlank() {
        return " ".equals(current) || "\t".equals(current) || "\n".equals(current) || "\r".equals(current);
    }

    private void skipBlanks() {
        while (isBlank()) {
            read();
        }
    }

    private boolean accept(String character) {
        if (!character.equals(current)) {
            return false;
        }
        read();
        return true;
    }

    private void expect(String character) {
        if (!accept(character)) {
            throw new IllegalStateException("expected " + character + " at line " + line + ":" + column);
        }
    }

    private void startCapture() {
        captureStart = index;
    }

    private void pauseCapture() {
        captured += input.substring(captureStart, index);
        captureStart = -1;
    }

    private String endCapture() {
        int end = current == null ? index : index;
        String text = "".equals(captured)
                ? input.substring(captureStart, end)
                : captured + input.substring(captureStart, end);
        captureStart = -1;
        captured = "";
        return text;
    }
}
