package varve.classics;

import varve.common.Args;
import varve.common.Rounds;
import varve.common.Stopwatch;

/** Four well-known small programs, each written anew after its published description. */
public final class Classics {
    private static final String USAGE = "classics richards|deltablue|nbody|mandelbrot [SIZE] [--rounds N]"
            + " (sizes: repetitions, chain length, steps, pixels on a side)";

    public static void main(String[] args) {
        Args given = new Args(USAGE, args, 2, Rounds.OPTION);
        String program = given.choice(0, "richards", "deltablue", "nbody", "mandelbrot");
        Rounds.of(given, () -> run(program, given));
    }

    private static void run(String program, Args given) {
        Stopwatch stopwatch = new Stopwatch();
        switch (program) {
            case "richards" -> Richards.run(given.number(1, "the number of repetitions", 300, 1, 1_000_000));
            case "deltablue" -> DeltaBlue.run(given.number(1, "the length of chains", 5000, 2, 100_000));
            case "nbody" -> Bodies.run(given.number(1, "the number of steps", 5_000_000, 0, 1_000_000_000));
            default -> Mandelbrot.run(given.number(1, "the number of pixels", 1500, 8, 16_000));
        }
        stopwatch.lap(program);
    }
}
