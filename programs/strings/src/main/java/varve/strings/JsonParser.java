package varve.strings;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON. Whole numbers become {@link Long}, others {@link Double}. */
final class JsonParser {
    private static final int DEEPEST = 500;

    private final String text;
    private int at;
    private int depth;

    private JsonParser(String text) {
        this.text = text;
    }

    /** The value that a text says; an {@link IllegalArgumentException} with the place if it says none. */
    static Object parse(String text) {
        JsonParser parser = new JsonParser(text);
        Object value = parser.value();
        parser.blanks();
        if (parser.at < text.length()) {
            throw parser.wrong("something after the value");
        }
        return value;
    }

    private IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException(what + " at " + at);
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        blanks();
        if (at == text.length()) {
            throw wrong("unexpected end");
        }
        return text.charAt(at);
    }

    private void expect(char c) {
        if (peek() != c) {
            throw wrong("expected " + c);
        }
        at++;
    }

    private boolean accept(char c) {
        if (peek() != c) {
            return false;
        }
        at++;
        return true;
    }

    private Object value() {
        if (++depth > DEEPEST) {
            throw wrong("nested too deeply");
        }
        Object value = switch (peek()) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> literal("true", true);
            case 'f' -> literal("false", false);
            case 'n' -> literal("null", null);
            default -> number();
        };
        depth--;
        return value;
    }

    private Map<String, Object> object() {
        Map<String, Object> map = new LinkedHashMap<>();
        expect('{');
        if (accept('}')) {
            return map;
        }
        do {
            if (peek() != '"') {
                throw wrong("expected a name");
            }
            String name = string();
            expect(':');
            map.put(name, value());
        } while (accept(','));
        expect('}');
        return map;
    }

    private List<Object> array() {
        List<Object> list = new ArrayList<>();
        expect('[');
        if (accept(']')) {
            return list;
        }
        do {
            list.add(value());
        } while (accept(','));
        expect(']');
        return list;
    }

    private Object literal(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong("unknown word");
        }
        at += word.length();
        return value;
    }

    private Object number() {
        int start = at;
        boolean whole = true;
        while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) {
            whole &= ".eE".indexOf(text.charAt(at)) < 0;
            at++;
        }
        String digits = text.substring(start, at);
        try {
            if (whole) {
                return Long.parseLong(digits);
            }
            return Double.parseDouble(digits);
        } catch (NumberFormatException e) {
            at = start;
            throw wrong("no value");
        }
    }

    private String string() {
        at++;
        StringBuilder string = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char c = text.charAt(at++);
            string.append(c == '\\' ? escape() : c);
        }
        if (at == text.length()) {
            throw wrong("a string without end");
        }
        at++;
        return string.toString();
    }

    private char escape() {
        char c = at < text.length() ? text.charAt(at++) : ' ';
        switch (c) {
            case '"', '\\', '/':
                return c;
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                if (at + 4 <= text.length()) {
                    try {
                        char unit = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                        return unit;
                    } catch (NumberFormatException e) {
                        throw wrong("no hexadecimal number");
                    }
                }
                throw wrong("an escape cut off");
            default:
                throw wrong("unknown escape");
        }
    }
}
