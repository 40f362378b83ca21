"""What the runs of the engines come to: medians, spreads, ratios, geometric means, and tables of them."""

import math
import statistics

WIDTH = 80
NAME, CELL = 13, 10
NOTHING = "-"


def steady(rounds):
    """The median of the later half of the rounds: code is compiled, the heap has grown."""
    return statistics.median(rounds[len(rounds) // 2:])


# What is said of a run.
KINDS = {
    "steady": lambda run: steady(run["rounds_ms"]),
    "first": lambda run: run["rounds_ms"][0],
    "process": lambda run: run["process_ms"],
    "processor": lambda run: run["processor_ms"],
}


class Result:
    """The runs of a benchmark on an engine: for each, the times of its rounds, and of the whole process the elapsed and the processor's
    time, in ms; or why there are none.
    """

    def __init__(self, benchmark, engine, runs=(), failed=None):
        self.benchmark, self.engine, self.runs, self.failed = benchmark, engine, list(runs), failed

    def values(self, kind):
        """One value of each run, in ms; `KINDS` has the kinds."""
        return sorted(map(KINDS[kind], self.runs))

    def median(self, kind):
        """None if it failed."""
        return statistics.median(self.values(kind)) if self.runs and not self.failed else None

    def data(self):
        """For JSON."""
        summary = {f"{kind}_ms": self.median(kind) for kind in KINDS}
        return {"benchmark": self.benchmark.name, "group": self.benchmark.group, "engine": self.engine.name,
                **summary, "runs": self.runs, "failed": self.failed}


def short(value):
    """Three digits that count, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def time_cell(result, kind):
    """Median and, after the sign, half the distance of the extremes in percent of it."""
    median = result.median(kind) if result else None
    if median is None:
        return NOTHING
    values = result.values(kind)
    if len(values) < 2:
        return short(median)
    return f"{short(median)} ±{50 * (values[-1] - values[0]) / median:.0f}%"


class Table:
    """A title, names of columns, and rows of a name and cells. A row of None is a line."""

    def __init__(self, title, columns):
        self.title, self.columns, self.rows = title, columns, []

    def text(self):
        """Lines that fit the width; more columns than that follow below, with the first one again."""
        fit = (WIDTH - NAME) // CELL
        rest = self.columns[1:]
        yield self.title
        while True:
            columns, rest = self.columns[:1] + rest[:fit - 1], rest[fit - 1:]
            yield ""
            yield " " * NAME + "".join(f"{c:>{CELL}}" for c in columns)
            for row in self.rows:
                if row is None:
                    yield "-" * (NAME + CELL * len(columns))
                    continue
                name, cells = row
                yield f"{name:<{NAME}}" + "".join(f"{cells[c]:>{CELL}}" for c in columns)
            if not rest:
                return

    def markdown(self):
        """Lines of a page."""
        yield self.title
        yield ""
        yield "| | " + " | ".join(self.columns) + " |"
        yield "|---|" + "--:|" * len(self.columns)
        for name, cells in filter(None, self.rows):
            yield f"| {name} | " + " | ".join(cells[c] for c in self.columns) + " |"


def times(title, kind, benchmarks, engines, results):
    """A table of times in ms."""
    table = Table(title, [e.name for e in engines])
    group = None
    for b in benchmarks:
        if group not in (None, b.group):
            table.rows.append(None)
        group = b.group
        table.rows.append((b.name, {e.name: time_cell(results.get((b.name, e.name)), kind) for e in engines}))
    return table


def ratios(title, kind, benchmarks, engines, results):
    """A table of the first engine's times to each other's, with the geometric means of the groups."""
    ours, peers = engines[0], engines[1:]
    table = Table(title, [e.name for e in peers])
    groups = list(dict.fromkeys(b.group for b in benchmarks))
    for group in groups:
        if table.rows:
            table.rows.append(None)
        members = [b for b in benchmarks if b.group == group]
        found = {e.name: [] for e in peers}
        for b in members:
            cells = {}
            for e in peers:
                pair = [results.get((b.name, name)) for name in (ours.name, e.name)]
                own, other = [r.median(kind) if r else None for r in pair]
                cells[e.name] = NOTHING if not own or not other else f"{short(own / other)}x"
                if own and other:
                    found[e.name].append(own / other)
            table.rows.append((b.name, cells))
        means = {name: mean_cell(values, len(members)) for name, values in found.items()}
        table.rows.append(("geo. mean", means))
    return table


def mean_cell(values, of):
    """The geometric mean; with how many benchmarks it is over, if some are missing."""
    if not values:
        return NOTHING
    mean = math.exp(statistics.fmean(map(math.log, values)))
    return f"{short(mean)}x" + (f" ({len(values)})" if len(values) < of else "")
