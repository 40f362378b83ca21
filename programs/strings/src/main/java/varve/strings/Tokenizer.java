package varve.strings;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** The words of a text, in small letters, with the line of each. */
final class Tokenizer implements Iterator<Token> {
    private final String text;
    private int at;
    private int line = 1;

    Tokenizer(String text) {
        this.text = text;
        skip();
    }

    @Override
    public boolean hasNext() {
        return at < text.length();
    }

    @Override
    public Token next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        int start = at;
        while (at < text.length() && Character.isLetter(text.charAt(at))) {
            at++;
        }
        Token token = new Token(text.substring(start, at).toLowerCase(), line);
        skip();
        return token;
    }

    private void skip() {
        while (at < text.length() && !Character.isLetter(text.charAt(at))) {
            if (text.charAt(at) == '\n') {
                line++;
            }
            at++;
        }
    }
}
