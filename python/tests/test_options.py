"""Options by keyword: those of the command line, read by the same reader."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any, Dict

import pytest
from conftest import GRAPH, TINY, CommandLine, all_of

import varve

TRACE = "traces/sqlite-join.trace"


def test_what_is_given_is_a_text_a_number_or_a_list(command_line: CommandLine) -> None:
    theirs = command_line(TINY, "-p", "static,random", "--until", "500ms", "--page", "2MiB", "--seed", "3", "--jobs", "1")
    numbers: Dict[str, Any] = {"until": 0.5, "page": 2 << 20, "seed": 3, "jobs": 1}
    texts: Dict[str, Any] = {"until": "500ms", "page": "2MiB", "seed": "3", "jobs": "1", "scale": None}
    for given in (numbers, texts):
        assert all_of(varve.run(TINY, policy=["static", "random"], **given)) == theirs


def test_a_flag_is_true_or_false(command_line: CommandLine, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    program = varve.Program(GRAPH[0], GRAPH[1:])
    words = ["-m", "optane-6242", "--plan", "dram,slow", "--instances", "2"]
    ours = varve.run(program, "optane-6242", plan=["dram", "slow"], instances=2, co_run=False)
    assert all_of(ours) == command_line(GRAPH[0], *words, "--", *GRAPH[1:])
    ours = varve.run(program, "optane-6242", plan=("dram", "slow"), instances=2, co_run=True)
    assert all_of(ours) == command_line(GRAPH[0], *words, "--co-run", "--", *GRAPH[1:])


@pytest.mark.parametrize(
    "given, words",
    [
        ({"seed": -1}, "^seed=-1: "),
        ({"seed": True}, "^seed=True: "),
        ({"seed": [1, 2]}, "^seed=1,2: "),
        ({"fast": "half"}, "^fast=half: .* 64MiB"),
        ({"fast": 25}, "^fast=25: .* 25%"),
        ({"stale": 1}, "^stale=1: say True or False"),
        ({"stale": "yes"}, "^stale=yes: say True or False"),
        ({"profile": pathlib.Path("none.sites")}, "^none.sites: "),
        # Another name of the same option.
        ({"sites": pathlib.Path("none.sites")}, "^none.sites: "),
        ({"scale": 2}, "^`scale` is not for the trace of a native program under plans, but for a workload or a trace under"),
        ({"instances": 2}, "^`instances` is not for .*, but for the trace of a Java program under plans and a WebAssembly"),
        ({"policy": "all"}, "^`plan` is not for a workload or a trace under page policies, .*: leave it out$"),
    ],
)
def test_what_cannot_be_given_is_said_in_one_line(home: pathlib.Path, given: Dict[str, Any], words: str) -> None:
    with pytest.raises(varve.InputError, match=words) as raised:
        varve.run(home / TRACE, plan="slow", **given)
    assert "\n" not in str(raised.value)


def test_an_option_that_another_one_needs_is_asked_for(home: pathlib.Path) -> None:
    program = varve.Program(home / GRAPH[0], GRAPH[1:])
    with pytest.raises(varve.InputError, match="instances=... is missing"):
        varve.run(program, "optane-6242", co_run=True)


def test_a_trace_without_plans_says_how_to_have_some(home: pathlib.Path) -> None:
    with pytest.raises(varve.InputError, match='`fast` is not for .*: leave it out, or name plans, such as plan="all"'):
        varve.run(home / TRACE, fast="10%")


@pytest.mark.parametrize("key, meant", [("polcy", "policy"), ("heapmax", "heap_max"), ("corun", "co_run"), ("side", "seed")])
def test_an_option_that_there_is_not_is_refused_with_the_nearest_name(key: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument `{key}`: did you mean `{meant}`"):
        varve.run(TINY, **{key: "1"})  # type: ignore[arg-type]


def test_there_is_a_list_of_options_and_help_knows_them() -> None:
    options = {option.name: option for option in varve.options()}
    assert {"seed", "policy", "until", "fast", "co_run", "heap_max", "stale", "numa"} <= set(options)
    assert len(options["seed"].whose) == 4 and options["stale"].whose == ["the trace of a native program under plans"]
    assert all(option.about for option in options.values())
    known = set(inspect.signature(varve.run).parameters)
    assert known == {"work", "machine", "progress"} | set(options)
