"""Traces under plans: sites and pages of native programs, generations of Java virtual machines; and what to do."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import pyarrow as pa
import pytest
from conftest import GRAPH, TINY, CommandLine, Document, all_of

import varve

TRACE = "traces/sqlite-join.trace"
JAVA = "pagerank-parallel-1"
G1 = "pagerank-g1-1"


@pytest.fixture
def sqlite(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The recorded native program, by the name that it has among the sources."""
    monkeypatch.chdir(home)
    return TRACE


@pytest.mark.parametrize(
    "plan, names",
    [
        # Plans that only others depend on, and that were not requested, are not shown.
        ("hot-sites", ["dram", "hot-sites"]),
        ("slow,first-touch,knapsack", ["dram", "slow", "first-touch", "knapsack"]),
        # Parameters of a page policy.
        ("dram,hotset:sample-period=50", ["dram", "hotset:sample-period=50"]),
        ("all", None),
    ],
)
def test_a_native_program_has_the_numbers_of_the_command_line(
    command_line: CommandLine, sqlite: str, plan: str, names: Optional[List[str]]
) -> None:
    ours = varve.run(sqlite, plan=plan)
    assert all_of(ours) == command_line(sqlite, "--plan", plan)
    assert (ours.rows_are, ours.machine, ours.refused, ours.notes) == ("plan", "cxl-spr", [], [])
    assert ours.names == names or names is None and len(ours) > 5


def test_budgets_are_shares_of_what_it_takes(command_line: CommandLine, sqlite: str) -> None:
    options = ["-m", "optane-6230", "--plan", "hotset,hot-sites", "--fast", "10%,50%", "--seed", "7"]
    theirs = command_line(sqlite, *options)
    for fast in ("10%,50%", ["10%", "50%"]):
        ours = varve.run(varve.Trace(sqlite), "optane-6230", plan=["hotset", "hot-sites"], fast=fast, seed=7)
        assert all_of(ours) == theirs
    assert ours.names == ["dram", "hotset at 10%", "hot-sites at 10%", "hotset at 50%", "hot-sites at 50%"]
    # They are a table as others are, and the sites one of their own. Memory comes in pages.
    most = ours["dram"]["most_bytes"]
    budgets = pa.table(ours)["budget_bytes"].to_pylist()
    for budget, share in zip(budgets[1:], [0.1, 0.1, 0.5, 0.5]):
        assert share * most <= budget < share * most + (64 << 10)
    sites = pa.table(ours.list("placed"))
    assert {"plan", "site", "peak_bytes"} <= set(sites.column_names) and set(sites["plan"].to_pylist()) == set(ours.names)


def test_a_profile_is_gone_by(command_line: CommandLine, binary: str, sqlite: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "sqlite.sites"
    subprocess.run([binary, "profile", sqlite, "-o", str(path)], check=True, capture_output=True)
    ours = varve.run(sqlite, plan="hot-sites,cgz-f", fast="2MiB", profile=path)
    assert all_of(ours) == command_line(sqlite, "--plan", "hot-sites,cgz-f", "--fast", "2MiB", "--profile", str(path))


def test_a_trace_without_plans_runs_under_page_policies(command_line: CommandLine, sqlite: str) -> None:
    ours = varve.run(sqlite, "optane-6230", scale=8192)
    assert ours.rows_are == "policy" and ours.advice
    assert all_of(ours) == command_line(sqlite, "-m", "optane-6230", "-p", "all", "--scale", "8192")


def test_a_java_program_has_the_numbers_of_the_command_line(
    document: Document, java: Callable[[str], pathlib.Path]
) -> None:
    path = java(JAVA)
    ours = varve.run(path, plan="slow,kg-n:outside=slow,first-touch", fast="10%,50%", instances=2)
    options = ["--plan", "slow,kg-n:outside=slow,first-touch", "--fast", "10%,50%", "--instances", "2"]
    theirs = document(str(path), *options)
    assert all_of(ours) == theirs["runs"]
    assert ours.names[0] == "dram" and "kg-n:outside=slow at 50%" in ours.names
    assert ours["dram"]["collector"] and "memory" in ours.lists
    is_advice(ours, theirs)


def test_plans_that_do_not_go_with_a_collector_are_told(java: Callable[[str], pathlib.Path]) -> None:
    trace = varve.Trace(java(G1))
    runs = varve.run(trace, "optane-6230", plan="all")
    assert "slow" in runs.names and "kg-n" not in runs.names
    assert len(runs.notes) == 1 and "Not compared: slow-scan, kg-n" in runs.notes[0]
    with pytest.raises(varve.InputError, match="kg-n: G1 has no generations"):
        varve.run(trace, "optane-6230", plan="slow,kg-n")
    with pytest.raises(varve.InputError, match="hot-sites: is for native programs"):
        varve.run(trace, plan="hot-sites")
    with pytest.raises(varve.InputError, match="`profile` is not for the trace of a Java program"):
        varve.run(trace, plan="slow", profile="x.sites")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"plan": "hotset:bogus=1"}, "`bogus`.*sample-period"),
        ({"plan": "hotset:cool=x"}, "cool=x"),
        ({"plan": "slo"}, "did you mean `slow`"),
        ({"plan": "kg-n"}, "is for Java virtual machines"),
        ({"plan": "slow", "machine": "optane-6230-memory-mode"}, "no slow memory that is a node"),
        ({"plan": "slow", "machine": "haswell-2620v3"}, "no slow memory"),
        ({"plan": "dram", "machine": "haswell-2620v3", "fast": "10%"}, "one memory and no budget"),
        ({"plan": "slow", "stale": True}, "--stale"),
        ({"plan": "slow", "trays": "hot=1"}, "trays"),
        ({"plan": "cgz-f", "profile": "programs/dist/graph.wasm"}, "graph.wasm"),
    ],
)
def test_what_cannot_be_is_an_exception_that_says_why(sqlite: str, options: Dict[str, Any], words: str) -> None:
    with pytest.raises(varve.InputError, match=words) as raised:
        varve.run(sqlite, **options)
    assert "\n" not in str(raised.value)


def test_a_plan_that_fails_takes_no_other_with_it(sqlite: str) -> None:
    # A slow memory that is too small for all of the program, and not for what leaves fast memory.
    machine = varve.Machine("cxl-spr", {"cxl.bytes": "10MiB"})
    with pytest.warns(RuntimeWarning, match="slow did not run: out of memory"):
        runs = varve.run(sqlite, machine, plan="slow,hot-sites")
    assert runs.names == ["dram", "hot-sites"]
    assert [name for name, _ in runs.refused] == ["slow"]
    assert any("Sites count by their misses" in note for note in runs.notes)
    # The base is no answer where nothing else was made.
    with pytest.raises(varve.RunError, match="out of memory"):
        varve.run(sqlite, machine, plan="slow")


def is_advice(ours: varve.Runs, theirs: Dict[str, Any]) -> None:
    """The command prints its advice below all other notes."""
    assert ours.advice and ours.advice[0].startswith("Advice: ")
    assert theirs["table"]["notes"][-len(ours.advice) :] == ours.advice


@pytest.mark.parametrize(
    "machine, change, options, begins",
    [
        ("cxl-spr", {}, {"plan": "slow"}, "Advice: its 10.3 MiB fit into"),
        # With a cache that is too small, plans matter, and sizes and sites are named.
        ("cxl-spr", {"llc.bytes": "3840KiB"}, {"plan": "hot-sites", "fast": "25%,50%"}, "Advice: "),
        ("haswell-2620v3", {}, {"plan": "all"}, "Advice: "),
    ],
)
def test_advice_for_a_native_program_is_that_of_the_command_line(
    document: Document, sqlite: str, machine: str, change: Dict[str, Any], options: Dict[str, Any], begins: str
) -> None:
    ours = varve.run(sqlite, varve.Machine(machine, change), **options)
    words = [word for key, value in change.items() for word in ("--set", f"{key}={value}")]
    words += [f"--{key}={value}" for key, value in options.items()]
    is_advice(ours, document(sqlite, "-m", machine, *words))
    assert ours.advice[0].startswith(begins)
    assert not change or "In slow memory under `hot-sites at 25%`: " in ours.advice[-1]


@pytest.mark.parametrize(
    "machine, options", [("optane-6242", {"fast": "25%,50%", "plan": "dram,slow,first-touch"}), ("haswell-2620v3", {})]
)
def test_advice_for_a_managed_program_is_that_of_the_command_line(
    document: Document, sqlite: str, machine: str, options: Dict[str, Any]
) -> None:
    ours = varve.run(varve.Program(GRAPH[0], GRAPH[1:]), machine, **options)
    words = [f"--{key}={value}" for key, value in options.items()]
    is_advice(ours, document(GRAPH[0], "-m", machine, *words, "--", *GRAPH[1:]))


class Slow(varve.Policy):
    """All in slow memory."""

    name = "mine"

    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        return frames.take_from(1)


def test_advice_for_policies_is_that_of_the_command_line_and_never_one_of_python(document: Document) -> None:
    theirs = document(TINY, "-m", "cxl-spr", "-p", "slow,first-touch,hotset")
    is_advice(varve.run(TINY, "cxl-spr", policy="slow,first-touch,hotset"), theirs)
    mixed: List[Any] = ["slow,first-touch", Slow(), "hotset"]
    is_advice(varve.run(TINY, "cxl-spr", policy=mixed), theirs)
    assert varve.run(TINY, "cxl-spr", policy="first-touch").advice == []


def test_progress_grows_to_the_end(sqlite: str) -> None:
    told: List[Tuple[float, int]] = []
    varve.run(sqlite, plan="hotset,hot-sites", progress=lambda share, accesses: told.append((share, accesses)))
    assert told == sorted(told) and told[-1][0] == 1.0
    assert len(told) > 1 and told[-1][1] > 0


def test_ctrl_c_ends_a_run(sqlite: str) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        varve.run(sqlite, plan="all", fast=[f"{share}%" for share in range(1, 100)], progress=False)
    assert varve.run(sqlite, plan="dram").names == ["dram"]
