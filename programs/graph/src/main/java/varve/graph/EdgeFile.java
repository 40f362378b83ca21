package varve.graph;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * A graph in text: a line for each edge, with source, target and, if it has one, a value, separated by blanks or commas. Lines that begin
 * with {@code #} or {@code %} say nothing. Read from a file, or from standard input if the name is {@code -}.
 */
final class EdgeFile implements EdgeSource {
    /** So that numbers of vertices stay good indexes. */
    private static final long MOST_VERTICES = 1L << 28;

    private final String name;
    private final byte[] buffer = new byte[1 << 16];
    private InputStream in;
    private int at;
    private int end;
    private long line;

    EdgeFile(String name) {
        this.name = name;
    }

    @Override
    public void forEach(EdgeConsumer consumer) throws IOException {
        in = name.equals("-") ? System.in : new FileInputStream(name);
        line = 1;
        for (int c = skipBlanks(next()); c >= 0; c = skipBlanks(next())) {
            if (c == '#' || c == '%') {
                skipLine(c);
            } else if (c != '\n') {
                edge(c, consumer);
            }
            line++;
        }
        if (in != System.in) {
            in.close();
        }
    }

    private void edge(int first, EdgeConsumer consumer) throws IOException {
        StringBuilder word = new StringBuilder();
        int c = word(first, word);
        int source = vertex(word);
        c = word(skipBlanks(c), word);
        int target = vertex(word);
        c = skipBlanks(c);
        double value = 0;
        if (c >= 0 && c != '\n') {
            c = word(c, word);
            value = value(word);
        }
        skipLine(c);
        consumer.edge(source, target, value);
    }

    private int word(int c, StringBuilder word) throws IOException {
        word.setLength(0);
        while (c > ' ' && c != ',') {
            word.append((char) c);
            c = next();
        }
        return c;
    }

    private int vertex(StringBuilder word) throws IOException {
        long number = 0;
        for (int i = 0; i < word.length(); i++) {
            int digit = word.charAt(i) - '0';
            if (digit < 0 || digit > 9) {
                throw wrong("`" + word + "` is no number of a vertex");
            }
            number = number * 10 + digit;
            if (number >= MOST_VERTICES) {
                throw wrong("vertices are numbered from 0 to " + (MOST_VERTICES - 1) + ", but this is `" + word + "`");
            }
        }
        if (word.length() == 0) {
            throw wrong("an edge needs a source and a target");
        }
        return (int) number;
    }

    private double value(StringBuilder word) throws IOException {
        try {
            double value = Double.parseDouble(word.toString());
            if (!Double.isNaN(value) && !Double.isInfinite(value)) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Said below.
        }
        throw wrong("`" + word + "` is no value of an edge");
    }

    private IOException wrong(String what) {
        return new IOException((name.equals("-") ? "standard input" : name) + ", line " + line + ": " + what);
    }

    private int skipBlanks(int c) throws IOException {
        while (c == ' ' || c == '\t' || c == '\r' || c == ',') {
            c = next();
        }
        return c;
    }

    private void skipLine(int c) throws IOException {
        while (c >= 0 && c != '\n') {
            c = next();
        }
    }

    private int next() throws IOException {
        if (at == end) {
            at = 0;
            end = Math.max(in.read(buffer, 0, buffer.length), 0);
            if (end == 0) {
                return -1;
            }
        }
        return buffer[at++] & 0xff;
    }
}
