"""The benchmarks of the comparison of engines: what each one runs. Sizes give rounds of about 0.1 s to 1 s."""

from dataclasses import dataclass

ALLOCATION, COMPUTE, NATIVE = "allocation-heavy", "compute-heavy", "native"


@dataclass(frozen=True)
class Benchmark:
    """A program of `programs/` with arguments; or, if `module` is given, a module of `bench/modules` and the same work in Java; or, if `source` is
    given, a program in C or Rust that `bench/wasi/build` compiles for WASI.

    `quick` are the arguments of a smaller amount of the same work.
    """

    name: str
    group: str
    program: str
    arguments: tuple
    quick: tuple
    what: str
    module: str = ""
    source: str = ""

    def words(self, quick):
        """The program's arguments, without the number of rounds."""
        return list(self.quick if quick else self.arguments)


def _of(name, group, arguments, quick, what, module="", source=""):
    program, *words = arguments.split()
    return Benchmark(name, group, program, tuple(words), tuple(quick.split()[1:]), what, module, source)


BENCHMARKS = [
    _of("trees.wat", ALLOCATION, "trees 16", "trees 10", "binary trees in hand-written WebAssembly, depth 16", "trees"),
    _of("trees", ALLOCATION, "trees 16", "trees 10", "binary trees in Java, depth 16"),
    _of("linked", ALLOCATION, "collections linked 20000", "collections linked 500", "lists sorted by merging; a treap"),
    _of("maps", ALLOCATION, "collections maps 20000", "collections maps 500", "hash maps with entries that come and go"),
    _of("strings", ALLOCATION, "strings 20000", "strings 1000", "text made, indexed, sorted, formatted, replaced"),
    _of("fft", COMPUTE, "scimark fft 20", "scimark fft 1", "SciMark: Fourier transform"),
    _of("sor", COMPUTE, "scimark sor 10", "scimark sor 1", "SciMark: over-relaxation on a grid"),
    _of("montecarlo", COMPUTE, "scimark montecarlo 10", "scimark montecarlo 1", "SciMark: pi by random points, a lock at each"),
    _of("sparse", COMPUTE, "scimark sparse 10", "scimark sparse 1", "SciMark: sparse matrix by vector"),
    _of("lu", COMPUTE, "scimark lu 20", "scimark lu 1", "SciMark: dense factorization"),
    _of("nbody", COMPUTE, "classics nbody 200000", "classics nbody 10000", "planets under gravity"),
    _of("mandelbrot", COMPUTE, "classics mandelbrot 1000", "classics mandelbrot 100", "points that stay near"),
    _of("richards", COMPUTE, "classics richards 50", "classics richards 2", "the scheduler of an operating system"),
    _of("deltablue", COMPUTE, "classics deltablue 5000", "classics deltablue 300", "an incremental solver of constraints"),
    _of("json", COMPUTE, "strings 20000 --json 1", "strings 1000 --json 1", "JSON written, and read back"),
    _of("parser", ALLOCATION, "kinds parser 20", "kinds parser 1", "JSON read by strings of one character"),
    _of("arrays", ALLOCATION, "kinds arrays 100", "kinds arrays 5", "trees of arrays"),
    _of("loops", ALLOCATION, "kinds loops 5", "kinds loops 1", "loops of graphs, with java.util's lists, maps and sets"),
    _of("aircraft", ALLOCATION, "kinds aircraft 40", "kinds aircraft 1", "vectors that live for a moment; maps in order"),
    _of("lists", COMPUTE, "kinds lists 200", "kinds lists 5", "short recursive functions over linked lists"),
    _of("queens", COMPUTE, "kinds queens 200", "kinds queens 5", "eight queens: recursion, arrays of flags"),
    _of("tasks", COMPUTE, "kinds tasks 200", "kinds tasks 2", "a scheduler: states that are objects, calls through an interface"),
    _of("sieve", COMPUTE, "kinds sieve 100", "kinds sieve 5", "primes by a sieve of flags"),
    _of("permutations", COMPUTE, "kinds permutations 20", "kinds permutations 1", "all orders of six things"),
    _of("towers", COMPUTE, "kinds towers 200", "kinds towers 5", "towers of Hanoi, disks that are linked objects"),
    _of("balls", COMPUTE, "kinds balls 20", "kinds balls 1", "balls in a box"),
    _of("sudoku", COMPUTE, "kinds sudoku 20", "kinds sudoku 1", "sudoku: recursion over arrays of arrays"),
    _of("sort.c", NATIVE, "sort 100000", "sort 2000", "C: records by qsort, numbers by a quicksort", source="sort.c"),
    _of("hash.c", NATIVE, "hash 40000", "hash 500", "C: SHA-256, a hash table of words", source="hash.c"),
    _of("matrix.c", NATIVE, "matrix 512", "matrix 64", "C with vectors: products of matrices, a filter", source="matrix.c"),
    _of("sqlite", NATIVE, "sqlite 20000", "sqlite 1000", "SQLite on a database in memory", source="sql.c"),
    _of("words.rs", NATIVE, "words 200000", "words 5000", "Rust: words counted in maps, sorted, formatted", source="words.rs"),
]


def choose(names):
    """The benchmarks of these names, or all; a `KeyError` names one that is not there."""
    by_name = {b.name: b for b in BENCHMARKS}
    return [by_name[n] for n in names] if names else BENCHMARKS
