package varve.kept;

import java.text.ChoiceFormat;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.text.MessageFormat;
import java.text.ParsePosition;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.StringTokenizer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Texts, patterns and formats. */
final class Texts {
    private Texts() {
    }

    static void add(Suite suite) {
        suite.<String>replace("String", () -> "grün 𝄞", (text, s) -> {
            s.say(text, text.length(), text.hashCode(), text.codePointCount(0, text.length()), text.equals("grün 𝄞"), text.toUpperCase(), text.indexOf('n'));
            return text + "|" + s.n;
        });
        suite.<Map<String, String>>change("Strings as keys", HashMap::new, (map, s) -> {
            s.sorted(map).say(map.get("a" + 0), map.get(new String(new char[] {'a', '1'})), map.get("literal"));
            map.put("a" + s.n, "x".repeat(s.n + 1));
            map.put("literal", "again" + s.n);
            map.put("", "empty");
        });
        suite.<String[]>change("String of all characters", () -> {
            StringBuilder all = new StringBuilder();
            for (int i = 0; i < 65536; i += 7) {
                all.append((char) i);
            }
            return new String[] {all.toString(), "", "\0", "ÿ", "\uFFFF", "a\uD800"};
        }, (all, s) -> {
            for (String each : all) {
                s.say(each.length(), each.hashCode());
            }
            all[1] += (char) (0xD800 + s.n);
        });
        suite.<StringBuilder>change("StringBuilder", () -> new StringBuilder("abc"), (text, s) -> {
            s.say(text, text.length(), text.indexOf("c"));
            text.append(s.n).append(true).append(2.5).insert(0, 'x').reverse();
            text.setCharAt(1, '_');
            text.deleteCharAt(2);
        });
        suite.<StringBuffer>change("StringBuffer", () -> new StringBuffer("abc"), (text, s) -> {
            s.say(text);
            text.append(s.n).insert(0, "<").append(">");
        });
        suite.<StringTokenizer>change("StringTokenizer", () -> new StringTokenizer("a b c d e f"), (words, s) -> s.say(words.countTokens(), words.nextToken()));
        suite.<Pattern>change("Pattern", () -> Pattern.compile("(\\w+)@(?:\\w+\\.)+(com|org)|[^a-z]{3,}x?"), (pattern, s) -> {
            Matcher matcher = pattern.matcher("to ada" + s.n + "@mail.example.org, or 123");
            while (matcher.find()) {
                s.say(matcher.group(), matcher.group(1), matcher.start());
            }
            s.say(pattern.pattern(), pattern.matcher("a@b.com").matches());
        });
        suite.<Map<String, Pattern>>change("Patterns", HashMap::new, (map, s) -> {
            String[] all = {"a*b", "(?i)HELLO\\s+\\p{L}+", "\\d+(,\\d+)*", "a+?b"};
            for (String each : all) {
                Pattern pattern = map.get(each);
                if (pattern == null) {
                    map.put(each, Pattern.compile(each));
                } else {
                    s.say(pattern.matcher("aaab").matches(), pattern.matcher("hello wörld").find(), pattern.matcher("1,234,567").matches(),
                        pattern.matcher("xabacax").find());
                }
            }
        });
        suite.<Matcher>change("Matcher", () -> Pattern.compile("\\d+").matcher("a1b22c333d4444"), (matcher, s) -> s.say(matcher.find(), matcher.group(), matcher.end()));
        suite.<Locale>replace("Locale", () -> Locale.ENGLISH, (locale, s) -> {
            s.say(locale, locale.getLanguage(), locale.equals(Locale.ENGLISH), locale.hashCode() == Locale.ENGLISH.hashCode());
            return s.n == 0 ? new Locale("de", "AT") : Locale.ENGLISH;
        });
        suite.<DecimalFormat>change("DecimalFormat", () -> new DecimalFormat("#,##0.00", new DecimalFormatSymbols(Locale.ENGLISH)), (format, s) -> {
            s.say(format.format(1234567.891), format.format(-s.n));
            format.setMinimumFractionDigits(3);
        });
        suite.<MessageFormat>change("MessageFormat", () -> new MessageFormat("{0} has {1}", Locale.ENGLISH), (format, s) ->
            s.say(format.format(new Object[] {"Ada", "a" + s.n}), format.toPattern()));
        suite.<ChoiceFormat>change("ChoiceFormat", () -> new ChoiceFormat("0#none|1#one|2#many"), (format, s) -> s.say(format.format(s.n)));
        suite.<ParsePosition>change("ParsePosition", () -> new ParsePosition(1), (position, s) -> {
            s.say(position.getIndex(), position.getErrorIndex());
            position.setIndex(position.getIndex() + s.n);
        });
        suite.<List<Charset>>change("Charset", () -> new ArrayList<>(List.of(StandardCharsets.UTF_8)), (all, s) -> {
            s.say(all.size(), all.get(0).name(), all.get(0).equals(StandardCharsets.UTF_8), new String("grün".getBytes(all.get(0)), all.get(0)));
            all.add(StandardCharsets.ISO_8859_1);
        });
        suite.<CharSequence[]>change("CharSequences", () -> new CharSequence[] {"string", new StringBuilder("builder"), new StringBuffer("buffer"),
            new StringBuilder("part").subSequence(1, 3)}, (all, s) -> {
                for (CharSequence each : all) {
                    s.say(each, each.length(), each.charAt(1));
                }
            });
    }
}
