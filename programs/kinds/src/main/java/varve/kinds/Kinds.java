package varve.kinds;

import varve.common.Args;
import varve.common.Rounds;
import varve.common.Stopwatch;

/** Small programs of the kinds that larger ones are made of: recursion, virtual calls, characters, collections of one's own. */
public final class Kinds {
    private static final String[] NAMES = {
        "parser", "lists", "queens", "tasks", "arrays", "sieve", "loops", "aircraft", "permutations", "towers", "balls",
        "sudoku",
    };
    private static final String USAGE = "kinds parser|lists|queens|tasks|arrays|sieve|loops|aircraft|permutations|towers|balls"
            + "|sudoku [REPETITIONS] [--rounds N]";

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 2, Rounds.OPTION);
        String program = given.choice(0, NAMES);
        int repetitions = given.number(1, "the number of repetitions", 10, 1, 1_000_000);
        Rounds.of(given, () -> {
            Stopwatch stopwatch = new Stopwatch();
            long answer = 0;
            for (int i = 0; i < repetitions; i++) {
                answer = answer * 31 + run(program);
            }
            System.out.println(program + " " + answer);
            stopwatch.lap(program);
        });
    }

    private static long run(String program) {
        return switch (program) {
            case "parser" -> Parser.run();
            case "lists" -> Lists.run();
            case "queens" -> Queens.run();
            case "tasks" -> Tasks.run();
            case "arrays" -> Arrays.run();
            case "sieve" -> Sieve.run();
            case "loops" -> Loops.run();
            case "aircraft" -> Aircraft.run();
            case "permutations" -> Permutations.run();
            case "towers" -> Towers.run();
            case "sudoku" -> Sudoku.run();
            default -> Balls.run();
        };
    }
}
