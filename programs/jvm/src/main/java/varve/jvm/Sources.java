package varve.jvm;

/** Java classes that compile, of about eighty lines, for compilers and analysers. */
final class Sources {
    private static final int METHODS = 8;

    private Sources() {
    }

    static String name(int number) {
        return "Class" + number;
    }

    static String of(Random random, int number) {
        StringBuilder text = new StringBuilder("package generated;\n\nimport java.util.*;\nimport java.util.function.*;\n\n");
        text.append("/** ").append(Text.sentence(random, 12)).append(". */\npublic class ").append(name(number)).append(" {\n");
        text.append("    private final Map<String, List<Integer>> all = new HashMap<>();\n    private int count = ").append(random.below(100))
                .append(";\n\n");
        for (int method = 0; method < METHODS; method++) {
            switch (random.below(4)) {
                case 0 -> text.append("    public int method").append(method).append("(int n) {\n        int sum = count;\n        for (int i = 0; i < n; i++) {\n")
                        .append("            if (i % ").append(2 + random.below(9)).append(" == 0) {\n                sum += i * ").append(random.below(50))
                        .append(";\n            } else {\n                sum ^= i << ").append(random.below(8)).append(";\n            }\n        }\n        return sum;\n    }\n\n");
                case 1 -> text.append("    public String method").append(method).append("(String word) {\n        StringBuilder out = new StringBuilder(\"")
                        .append(Text.word(random)).append("\");\n        for (char c : word.toCharArray()) {\n            switch (c) {\n                case 'a': out.append('")
                        .append((char) ('a' + random.below(26))).append("'); break;\n                default: out.append(c).append(count++);\n            }\n        }\n")
                        .append("        return out.toString();\n    }\n\n");
                case 2 -> text.append("    public List<Integer> method").append(method).append("(String key) {\n        List<Integer> found = all.computeIfAbsent(key, k -> new ArrayList<>());\n")
                        .append("        found.add(").append(random.below(1000)).append(");\n        Collections.sort(found, Comparator.reverseOrder());\n")
                        .append("        return new ArrayList<>(found.subList(0, Math.min(found.size(), ").append(1 + random.below(9)).append(")));\n    }\n\n");
                default -> text.append("    public <T extends Comparable<T>> T method").append(method).append("(Collection<? extends T> some, Supplier<T> other) {\n        T best = null;\n")
                        .append("        for (T each : some) {\n            try {\n                best = best == null || each.compareTo(best) > 0 ? each : best;\n")
                        .append("            } catch (RuntimeException e) {\n                count += ").append(random.below(7)).append(";\n            }\n        }\n")
                        .append("        return best == null ? other.get() : best;\n    }\n\n");
            }
        }
        return text.append("}\n").toString();
    }
}
