"""What bench/engines must get right, on stand-ins for engines: times read and summed up, failures told apart, tables that fit."""

import tempfile
from pathlib import Path

import benchmarks as suite
import hosts
import tables
from tools import Failed, Missing

# A process that does its rounds, with a first one of 5 ms and later ones of the number given.
HONEST = 'echo "checksum 1"; echo "round: 5000 us" >&2; echo "round: {0} ms" >&2; echo "round: {0} ms" >&2'


class StandIn(hosts.Engine):
    """An engine whose every command is the same script."""

    def __init__(self, name, script, before=0):
        super().__init__(name, "a stand-in")
        self.script = script
        self.before = before

    def prepare(self, folder):
        if not self.script:
            raise Missing("it was never there")
        return "1.0"

    def command(self, benchmark, quick, rounds, heap_mib):
        return ["sh", "-c", self.script]


STAND_INS = [
    StandIn("ours", HONEST.format(2)),
    StandIn("twice", HONEST.format(4), before=1),
    StandIn("missing", ""),
    StandIn("crashes", "echo 'out of heap' >&2; exit 3"),
    StandIn("shirks", "echo 'checksum 1'; echo 'round: 1 ms' >&2"),
    StandIn("lies", HONEST.format(1).replace("checksum 1", "checksum 2")),
    StandIn("slow", HONEST.format(16).replace("checksum 1\"", "checksum 1\"; sleep 1.1")),
    *(StandIn(f"more {i}", HONEST.format(8)) for i in range(5)),
]


def run(engines):
    """Checks; what was checked. `engines` is the script's module."""
    registry()
    choices(engines)
    numbers()
    comparison(engines)
    return f"{len(suite.BENCHMARKS)} benchmarks and {len(hosts.ENGINES)} engines: commands, times, ratios, failures and tables are right"


def registry():
    names = [b.name for b in suite.BENCHMARKS]
    assert len(set(names)) == len(names), "two benchmarks of one name"
    assert all(len(n) <= tables.NAME for n in names), "a name is too long for its column"
    assert all(len(e.name) < tables.CELL for e in hosts.ENGINES), "an engine's name is too long for its column"
    for b in suite.BENCHMARKS:
        if b.source:
            assert (hosts.WORKSPACE / "bench/wasi" / b.source).is_file(), f"{b.name}: there is no {b.source}"
            continue
        assert hosts.module(b).is_file(), f"{b.name}: there is no {hosts.module(b)}"
        assert hosts.main_class(b.program), b.program
    try:
        suite.choose(["no such benchmark"])
    except KeyError:
        pass
    else:
        raise AssertionError("a benchmark that is not there is found")


def choices(engines):
    """What is measured unless it is asked for, and how often."""
    assert "beside" not in [e.name for e in engines.arguments([]).chosen]
    asked = engines.arguments(["--engines", "varve,beside", "--little", "--runs", "9"])
    assert [e.name for e in asked.chosen] == ["varve", "beside"]
    assert (asked.runs, asked.little, asked.quick) == (9, True, False)
    assert engines.arguments(["--quick"]).little, "quick is little work, too"


def numbers():
    assert tables.steady([100, 9, 4, 2]) == 3
    assert tables.steady([7]) == 7
    assert tables.mean_cell([1, 4], 2) == "2x"
    assert tables.mean_cell([1, 4], 3) == "2x (2)"
    assert tables.mean_cell([], 3) == tables.NOTHING
    three = tables.Result(None, None, [{"rounds_ms": [50, t], "process_ms": 60, "processor_ms": 70} for t in (90, 100, 120)])
    assert tables.time_cell(three, "steady") == "100 ±15%", tables.time_cell(three, "steady")
    assert tables.time_cell(three, "first") == "50 ±0%"
    assert tables.time_cell(None, "first") == tables.NOTHING
    assert [tables.short(x) for x in (0.01234, 1.234, 99.94, 12345.6)] == ["0.0123", "1.23", "99.9", "12346"]


def comparison(engines):
    options = engines.arguments(["trees", "fft", "nbody", "--rounds", "3", "--runs", "2", "--once", "1"])
    options.chosen = STAND_INS
    kept, hosts.say = hosts.say, lambda text: None
    try:
        found, versions, skipped, results = engines.compare(options)
    finally:
        hosts.say = kept
    assert skipped == ["missing: it was never there"], skipped
    assert "missing" not in versions and len(found) == len(STAND_INS) - 1
    ours, twice = results["fft", "ours"], results["fft", "twice"]
    assert (ours.median("steady"), ours.median("first"), twice.median("steady")) == (2, 5, 4)
    assert ours.median("process") > 0
    assert (len(ours.runs), len(results["fft", "slow"].runs)) == (2, 1)
    for name, why in (("crashes", "ended with 3: out of heap"), ("shirks", "of 1 rounds, not of 3"), ("lies", "something else")):
        failed = results["fft", name].failed
        assert failed and why in failed, f"{name}: {failed}"
        assert results["fft", name].median("steady") is None
    text = list(engines.report(options, found, versions, skipped, results))
    assert all(len(line) <= tables.WIDTH for line in text if not line.startswith(("- ", "Skipped"))), max(text, key=len)
    said = "\n".join(text)
    ratios = ("Steady state of ours", "First round of ours", "First round of twice", "Processor time of ours")
    missing = [title for title in ratios if title not in said]
    assert not missing, f"no table of: {missing}"
    means = len(ratios) * 2 * 2
    assert said.count("geo. mean") == means, f"{said.count('geo. mean')} means, not {means}: two groups a table, twice as the columns do not fit"
    assert "0.5x" in said and "- fft on lies: printed something else" in said and "- missing: it was never there" in said
    options.markdown = True
    page = "\n".join(engines.report(options, found, versions, skipped, results))
    assert "| fft | 0.5x | - | - | - | 0.125x |" in page, page
    again(engines, options, versions, skipped, results, page)
    with tempfile.TemporaryDirectory(prefix="engines-") as name:
        try:
            engines.run_once(["sleep", "5"], 1, Path(name), 0.05)
        except Failed as why:
            assert "not done after" in str(why), why
        else:
            raise AssertionError("a process without end has ended")


def again(engines, options, versions, skipped, results, page):
    """What was printed as JSON gives the same page."""
    with tempfile.TemporaryDirectory(prefix="engines-") as name:
        options.kept = Path(name) / "kept.json"
        options.kept.write_text(engines.data(options, versions, skipped, results))
        kept = engines.kept(options)
        assert "\n".join(engines.report(options, *kept)) == page, "another page from the kept results"
        there = Path(name) / "page.md"
        there.write_text("# A\n<!-- measured -->\nold\n<!-- end of measured -->\nB\n")
        engines.renew(there, ["new"])
        assert there.read_text() == "# A\n<!-- measured -->\n\nnew\n\n<!-- end of measured -->\nB\n"
        options.kept.write_text("{}")
        try:
            engines.kept(options)
        except Failed as why:
            assert "is not what --json prints" in str(why)
        else:
            raise AssertionError("results are read from an empty file")
