package varve.strings;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import varve.common.Args;
import varve.common.Checksum;
import varve.common.Rounds;
import varve.common.Stopwatch;

/** Works on text: makes it, counts its words, indexes and sorts it, formats a report, writes it as JSON and reads that back. */
public final class Strings {
    private static final int VOCABULARY = 5000;
    private static final int LONGEST_LIST = 200;

    private final String text;
    private final Map<String, List<Integer>> lines = new HashMap<>();

    private Strings(String text) {
        this.text = text;
    }

    public static void main(String[] args) {
        Args given = new Args("strings [WORDS] [--seed N] [--json 1 (only JSON)] [--rounds N]", args, 1, "seed", "json", Rounds.OPTION);
        int words = given.number(0, "the number of words", 80_000, 1, 100_000_000);
        int seed = given.option("seed", 1, 0, Integer.MAX_VALUE);
        if (given.option("json", 0, 0, 1) == 1) {
            Strings strings = new Strings(new TextMaker(seed, VOCABULARY).make(words));
            strings.index();
            Rounds.of(given, strings::json);
        } else {
            Rounds.of(given, () -> everything(seed, words));
        }
    }

    private static void everything(int seed, int words) {
        Stopwatch stopwatch = new Stopwatch();
        Strings strings = new Strings(new TextMaker(seed, VOCABULARY).make(words));
        say("text", strings.text.length() + " characters", strings.text);
        stopwatch.lap("text");
        strings.index();
        stopwatch.lap("index");
        strings.report();
        stopwatch.lap("report");
        strings.sort();
        stopwatch.lap("sort");
        strings.replace();
        stopwatch.lap("replace");
        strings.json();
        stopwatch.lap("json");
    }

    private static void say(String what, String result, CharSequence all) {
        System.out.println(what + ": " + result + ", checksum " + new Checksum().add(all));
    }

    private void index() {
        int words = 0;
        Tokenizer tokens = new Tokenizer(text);
        while (tokens.hasNext()) {
            Token token = tokens.next();
            lines.computeIfAbsent(token.word(), w -> new ArrayList<>()).add(token.line());
            words++;
        }
        System.out.println("index: " + words + " words, " + lines.size() + " different ones");
    }

    private void report() {
        List<Map.Entry<String, List<Integer>>> entries = new ArrayList<>(lines.entrySet());
        entries.sort(Comparator.<Map.Entry<String, List<Integer>>>comparingInt(e -> -e.getValue().size())
                .thenComparing(Map.Entry::getKey));
        StringBuilder report = new StringBuilder();
        int rank = 0;
        for (Map.Entry<String, List<Integer>> entry : entries) {
            List<Integer> at = entry.getValue();
            report.append(String.format("%6d %-20s %8d  first on line %d\n", ++rank, entry.getKey(), at.size(), at.get(0)));
        }
        for (String line : report.toString().split("\n", 4)) {
            if (line.length() < 80) {
                System.out.println(line);
            }
        }
        say("report", report.length() + " characters", report);
    }

    private void sort() {
        List<String> sorted = new ArrayList<>(List.of(text.split("[ \n]+")));
        Collections.sort(sorted);
        List<String> caseless = new ArrayList<>(sorted);
        caseless.sort(String.CASE_INSENSITIVE_ORDER.thenComparing(Comparator.reverseOrder()));
        say("sort", sorted.size() + " words, last " + sorted.get(sorted.size() - 1), String.join(" ", sorted));
        say("caseless", "first " + caseless.get(0), String.join(" ", caseless));
    }

    private void replace() {
        StringBuilder changed = new StringBuilder();
        for (String paragraph : text.split("\n\n")) {
            String one = paragraph.replace('\n', ' ').trim();
            changed.append(one.replace(", ", "; ").concat(" (" + one.length() + ")"), 0, Math.min(one.length(), 60)).append('\n');
            changed.append(one.contains("st") ? one.toUpperCase().indexOf("ST") : one.lastIndexOf('a')).append('\n');
        }
        say("replace", changed.length() + " characters", changed);
    }

    private void json() {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("title", "An \"index\"\n\tof \\ words");
        document.put("complete", true);
        document.put("nothing", null);
        document.put("words", (long) lines.size());
        Map<String, Object> entries = new TreeMap<>();
        for (Map.Entry<String, List<Integer>> entry : lines.entrySet()) {
            Map<String, Object> value = new LinkedHashMap<>();
            List<Integer> at = entry.getValue();
            value.put("count", (long) at.size());
            value.put("share", at.size() / 1024.0);
            List<Object> first = new ArrayList<>();
            for (Integer line : at.subList(0, Math.min(LONGEST_LIST, at.size()))) {
                first.add((long) line);
            }
            value.put("lines", first);
            entries.put(entry.getKey(), value);
        }
        document.put("entries", new LinkedHashMap<>(entries));
        String written = Json.write(document);
        Object read = JsonParser.parse(written);
        say("json", written.length() + " characters, " + (read.equals(document) ? "read back equal" : "read back different"), written);
        try {
            JsonParser.parse(written.substring(0, written.length() / 2));
        } catch (IllegalArgumentException e) {
            System.out.println("cut off: " + e.getMessage());
        }
    }
}
