package varve.jvm;

import org.python.core.PyCode;
import org.python.core.PyInteger;
import org.python.util.PythonInterpreter;

/** Runs Python by Jython: an operation counts words, fills and sorts a dictionary, and solves six queens. Each thread has its interpreter. */
final class Interpreting implements Work {
    private static final String PROGRAM = """
            def queens(n, row=0, taken=()):
                if row == n:
                    return 1
                found = 0
                for column in range(n):
                    if all(c != column and abs(c - column) != row - r for r, c in enumerate(taken)):
                        found += queens(n, row + 1, taken + (column,))
                return found

            class Entry(object):
                def __init__(self, word):
                    self.word = word
                    self.count = 0

            counts = {}
            for word in text.split():
                if word not in counts:
                    counts[word] = Entry(word)
                counts[word].count += 1
            best = sorted(counts.values(), key=lambda e: (-e.count, e.word))[:20]
            answer = ','.join('%s:%d' % (e.word.upper(), e.count) for e in best) + str(queens(6))
            """;
    private static final int WORDS = 300;

    @Override
    public long run(int thread, Random random, int size) {
        long digest = 0;
        try (PythonInterpreter python = PythonInterpreter.threadLocalStateInterpreter(null)) {
            PyCode program = python.compile(PROGRAM);
            for (int number = 0; number < size; number++) {
                python.set("text", Text.sentence(random, WORDS));
                python.set("number", new PyInteger(number));
                python.exec(program);
                digest += Random.digest(python.get("answer").toString());
            }
        }
        return digest;
    }
}
