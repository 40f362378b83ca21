"""Runs: the numbers of the command line, tables without copies, errors, Ctrl-C."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
import time
from typing import Callable, List

import polars as pl
import pyarrow as pa
import pytest
from conftest import GRAPH, TINY, CommandLine, all_of

import varve

def test_a_workload_has_the_numbers_of_the_command_line(command_line: CommandLine) -> None:
    ours = varve.run(TINY)
    assert all_of(ours) == command_line(TINY)
    assert len(ours) > 2


@pytest.mark.parametrize("policy", ["hotset", "first-touch,static:seed=3"])
def test_options_mean_the_same(command_line: CommandLine, policy: str) -> None:
    machine = "cxl-spr" if policy == "hotset" else "optane-6230-memory-mode"
    ours = varve.run(TINY, machine, policy=policy, scale=128, seed=7, page="4MiB", until=0.5, cores=3)
    theirs = command_line(
        TINY, "-m", machine, "-p", policy, "-s", "128", "--seed", "7", "--page", "4MiB", "--until", "0.5", "--cores", "3"
    )
    assert all_of(ours) == theirs


def test_other_values_of_a_machine_mean_the_same(command_line: CommandLine) -> None:
    machine = varve.Machine("cxl-spr", {"cxl.link_ns": 300})
    theirs = command_line(TINY, "-m", "cxl-spr", "--set", "cxl.link_ns=300", "-p", "interleave")
    assert all_of(varve.run(TINY, machine, policy="interleave")) == theirs
    changed = varve.Machine("cxl-spr").with_set({"cxl.link_ns": 300})
    assert changed.idle_read_ns("cxl") == machine.idle_read_ns("cxl")


def test_a_trace_has_the_numbers_of_the_command_line(command_line: CommandLine, home: pathlib.Path) -> None:
    path = next((home / "traces").glob("*.trace"))
    trace = varve.Trace(path)
    assert trace.ops > 0 and trace.footprint_bytes > 0 and trace.cut is None
    ours = varve.run(trace, "optane-6230", policy="hotset")
    theirs = command_line(str(path), "-m", "optane-6230", "-p", "hotset")
    assert all_of(ours) == theirs


def test_a_program_has_the_numbers_of_the_command_line(
    command_line: CommandLine, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    program = varve.Program(GRAPH[0], GRAPH[1:])
    ours = varve.run(program, "optane-6242", fast=["25%", "50%"], plan="slow,kg-n", heap_max="64MiB", instances=2)
    options = ["-m", "optane-6242", "--fast", "25%,50%", "--plan", "slow,kg-n", "--heap-max", "64MiB", "--instances", "2"]
    theirs = command_line(GRAPH[0], *options, "--", *GRAPH[1:])
    assert all_of(ours) == theirs
    assert ours.names == ["dram", "slow at 25%", "kg-n at 25%", "slow at 50%", "kg-n at 50%"]
    assert ours.rows_are == "plan" and len(ours.out) > 0


def test_the_usual_plans_are_those_of_the_command_line(
    command_line: CommandLine, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    ours = varve.run(varve.Program(GRAPH[0], GRAPH[1:]), "optane-6242")
    assert all_of(ours) == command_line(GRAPH[0], "-m", "optane-6242", "--", *GRAPH[1:])


def test_columns_are_those_of_the_runs_and_are_not_copied() -> None:
    runs = varve.run(TINY, "cxl-spr", policy="first-touch,interleave")
    arrow = pa.table(runs)
    assert arrow.column_names == runs.columns
    polars, pandas = runs.to_polars(), runs.to_pandas()
    for frame in (arrow.to_pylist(), polars.to_dicts(), pandas.to_dict("records")):
        assert [row["seconds"] for row in frame] == [run["seconds"] for run in (runs[0], runs[1])]
        assert [row["stalls.load"] for row in frame] == [run["stalls"]["load"] for run in (runs[0], runs[1])]
    # Each reader has the same memory.
    address = arrow["seconds"].chunk(0).buffers()[1].address
    assert pa.table(runs)["seconds"].chunk(0).buffers()[1].address == address
    assert pl.DataFrame(runs)["seconds"].to_arrow().buffers()[1].address == address
    again = pa.array(pandas["seconds"].array)
    chunk = again.chunk(0) if isinstance(again, pa.ChunkedArray) else again
    assert chunk.buffers()[1].address == address


def test_lists_in_runs_are_tables() -> None:
    runs = varve.run(TINY, "cxl-spr", policy="first-touch,interleave")
    timeline = runs.list("timeline")
    assert timeline.columns[0] == "policy" and "at_s" in timeline.columns and len(timeline) > 2
    counts = timeline.to_polars().group_by("policy").len()
    assert sorted(counts["policy"]) == ["first-touch", "interleave"]
    with pytest.raises(KeyError, match="there are"):
        runs.list("time")


def test_runs_are_found_by_name_and_number() -> None:
    runs = varve.run(TINY, "cxl-spr", policy="first-touch,interleave")
    assert runs["interleave"] == runs[1] == runs[-1]
    assert "interleave" in repr(runs)
    with pytest.raises(KeyError):
        runs["hotset"]
    with pytest.raises(IndexError):
        runs[2]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: varve.run("gupz"), "did you mean"),
        (lambda: varve.run(TINY, "cxl-sprr"), "cxl-spr"),
        (lambda: varve.run(TINY, policy="hotsett"), "hotset"),
        (lambda: varve.run(TINY, policy="hotset"), "flat"),
        (lambda: varve.run(TINY, policy=[]), "no page policy"),
        (lambda: varve.run(TINY, scale=3), "power of two"),
        (lambda: varve.run(TINY, page="2MB5"), "page=2MB5"),
        (lambda: varve.run(TINY, until=0), "until=0: .*more than 0 s"),
        (lambda: varve.run(TINY, until=-1.0), "until=-1.0"),
        (lambda: varve.run(TINY, seed="x"), "seed=x"),
        (lambda: varve.run(TINY, plan="kg-n"), "`plan` is not for a workload"),
        (lambda: varve.Trace("nothing.trace"), "nothing.trace"),
        (lambda: varve.Program("nothing.wasm"), "nothing.wasm"),
        (lambda: varve.Machine("cxl-spr", {"cxl.link": 3}), "cxl.link"),
        (lambda: varve.Machine.from_toml("name = 3", "own.toml"), "own.toml"),
        (lambda: varve.run("nothing.wasm", "cxl-spr"), "nothing.wasm"),
    ],
)
def test_what_cannot_be_is_an_exception_that_says_why(call: Callable[[], object], words: str) -> None:
    with pytest.raises(varve.InputError, match=words):
        call()


def test_exceptions_are_kinds_of_those_that_python_has() -> None:
    assert issubclass(varve.InputError, ValueError) and issubclass(varve.InputError, varve.Error)
    assert issubclass(varve.RunError, RuntimeError) and issubclass(varve.RunError, varve.Error)
    with pytest.raises(TypeError, match="list"):
        varve.run(["ls"])  # type: ignore[arg-type]


def test_a_program_that_fails_is_a_run_error(tmp_path: pathlib.Path) -> None:
    # A module whose start function hits `unreachable`.
    module = bytes.fromhex("0061736d01000000010401600000030201000708010473746172740000080100" "0a05010300000b")
    path = tmp_path / "trap.wasm"
    path.write_bytes(module)
    with pytest.raises(varve.RunError, match="trap.wasm"):
        varve.run(varve.Program(path), "optane-6242", plan="dram")


def test_what_did_not_run_beside_others_is_said() -> None:
    # Enough pages that only the policy that uses all memory has room.
    work = "gups:bytes=700GiB,updates=1k,threads=2"
    with pytest.warns(RuntimeWarning, match="fast did not run") as warned:
        runs = varve.run(work, "optane-6230", policy="first-touch,fast")
    assert runs.names == ["first-touch"]
    assert [name for name, _ in runs.refused] == ["fast"]
    assert warned[0].filename == __file__, "a warning is at the line that called"


LONG = "gups:bytes=64GiB,updates=2G"


def test_ctrl_c_ends_a_run() -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        varve.run(LONG, "cxl-spr", policy="first-touch,hotset", progress=False)
    # All of it: another run begins at once.
    assert len(varve.run(TINY, policy="first-touch")) == 1


def test_other_threads_of_python_go_on_meanwhile() -> None:
    turns = 0

    def count(share: float, accesses: int) -> None:
        nonlocal turns
        if turns > 3:
            raise KeyError("enough")

    def work() -> None:
        nonlocal turns
        while turns <= 3:
            turns += 1
            time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(KeyError, match="enough"):
        varve.run(LONG, "cxl-spr", policy="first-touch", progress=count)
    thread.join()


def test_progress_grows_to_the_end() -> None:
    told: List[float] = []
    varve.run("gups:bytes=4GiB,updates=200k", "cxl-spr", policy="first-touch,hotset", progress=lambda s, a: told.append(s))
    assert told == sorted(told) and told[-1] == 1.0


def test_there_are_lists_of_what_there_is() -> None:
    assert "cxl-spr" in varve.machines()
    names = {item.name: item for item in varve.policies()}
    assert [p.key for p in names["hotset"].parameters if p.key == "spare"] == ["spare"]
    plans = [(plan.name, plan.whose) for plan in varve.plans()]
    for whose in ("WebAssembly programs", "Java virtual machines"):
        assert ("kg-n", whose) in plans
    assert ("hot-sites", "native programs") in plans
    assert "gups" in [item.name for item in varve.workloads()]
    for name in varve.machines():
        machine = varve.Machine(name)
        same = varve.Machine.from_toml(machine.to_toml(), f"{name}.toml")
        assert same.nodes[0].bytes == machine.nodes[0].bytes
        cached = any(n.cached for n in machine.nodes)
        assert cached or machine.dram_bytes == sum(n.bytes for n in machine.nodes if n.kind == "dram")
        assert (machine.slow_bytes > 0) == any(n.kind != "dram" for n in machine.nodes)


def test_a_command_is_recorded_and_run(tmp_path: pathlib.Path) -> None:
    import shutil

    if not shutil.which("qemu-x86_64"):
        pytest.skip("needs qemu-x86_64 (Debian: apt install qemu-user)")
    trace = varve.record(["/bin/true"], tmp_path / "true.trace")
    assert trace.instructions > 1000
    assert len(varve.run(trace, "cxl-spr", policy="first-touch")) == 1
    with pytest.raises(varve.InputError, match="no-such-command"):
        varve.record(["no-such-command"], tmp_path / "none.trace")
