"""Varve puts every byte of a program in the right memory: which memory of a machine should hold what, and what does it cost?

    >>> import varve
    >>> runs = varve.run("gups:bytes=4GiB,hot=10%", machine="cxl-spr", policy="first-touch,hotset")
    >>> runs.to_polars()

A run is that of `varve run`: the same defaults, the same numbers.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, List, NamedTuple, Sequence, Union

from . import _progress, _varve
from ._errors import Error, InputError, RunError
from ._policy import Policy
from ._progress import Progress
from ._varve import Fault, Frames, Machine, Node, Program, Runs, Table, Trace, Workload, __version__, machines, record

__all__ = [
    "Error",
    "Fault",
    "Frames",
    "InputError",
    "Item",
    "Machine",
    "Node",
    "Option",
    "Parameter",
    "Policy",
    "Program",
    "RunError",
    "Runs",
    "Table",
    "Trace",
    "Workload",
    "__version__",
    "machines",
    "options",
    "plans",
    "policies",
    "record",
    "run",
    "workloads",
]

#: What can be run: an object, or a text as `varve run` takes it.
Work = Union[Workload, Trace, Program, str, "os.PathLike[str]"]

#: What an option can be; `None` is as if it were not given.
Value = Union[str, float, "os.PathLike[str]", Sequence[Union[str, float]], None]


class Parameter(NamedTuple):
    """A parameter of a policy, a plan or a workload."""

    key: str
    #: Empty where it must be given.
    default: str
    about: str


class Item(NamedTuple):
    """A policy, a plan or a workload."""

    name: str
    about: str
    parameters: List[Parameter]
    #: What a policy or a plan is for, such as "native programs"; empty of workloads.
    whose: str


class Option(NamedTuple):
    """An option of `run`."""

    name: str
    about: str
    #: What is run with it.
    whose: List[str]


def _items(all: Any) -> List[Item]:
    return [Item(name, about, [Parameter(*p) for p in parameters], whose) for name, about, parameters, whose in all]


def policies() -> List[Item]:
    """The page policies that there are by name."""
    return _items(_varve.policies())


def plans() -> List[Item]:
    """The plans that there are by name, for each kind of program."""
    return _items(_varve.plans())


def workloads() -> List[Item]:
    """The workloads that there are by name."""
    return _items(_varve.workloads())


def options() -> List[Option]:
    """The options that `run` takes by keyword."""
    return [Option(*option) for option in _varve.options()]


def run(
    work: Work,
    machine: Union[Machine, str, None] = None,
    *,
    policy: Union[str, Policy, Sequence[Union[str, Policy]], None] = None,
    plan: Union[str, Sequence[str], None] = None,
    fast: Union[str, int, Sequence[str], None] = None,
    profile: Union[str, "os.PathLike[str]", None] = None,
    progress: Union[bool, Progress, None] = None,
    **more: Value,
) -> Runs:
    """Runs work on a modelled machine, once under each policy or plan.

    A workload runs under page policies, and a WebAssembly program under heap plans. A trace runs under page policies;
    with `plan`, and without `policy`, under plans for a native program or for a Java virtual machine, whichever it is of.

    Options mean what those of `varve run` mean, and what is not given is what it is there: `heap_max="64MiB"` is
    `--heap-max=64MiB`, `co_run=True` is `--co-run`, and a list stands for items with commas between them.
    `varve.options()` lists them all.

    `policy` may be an object of a class that derives from `Policy`, or a list of such and of names.
    `progress`: a bar (true), nothing (false), or a function of the share that is done and the accesses that were made;
    a bar on terminals and in notebooks if nothing is said.

    Raises `InputError` for what cannot be, `TypeError` for an option that there is not, `RunError` for work that failed,
    and `KeyboardInterrupt`. Where some policies or plans cannot run and others did, those are in `Runs.refused`, with a
    warning.
    """
    each = None if policy is None else [policy] if isinstance(policy, (str, Policy)) else list(policy)
    for one in each or ():
        if not isinstance(one, (str, Policy)):
            raise TypeError(f"a policy is a text or a varve.Policy, and no {type(one).__name__}")
    given = {"policy": each, "plan": plan, "fast": fast, "profile": profile, **more}
    what = _varve.work(work)
    on = Machine(machine) if isinstance(machine, str) else machine
    told = _progress.chosen(progress)
    try:
        return _varve.run(what, on, given, told)
    finally:
        _progress.close(told)


def _with_options(function: Any) -> None:
    """Help and completion know the options that are not written out above."""
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [option.name for option in options() if option.name not in signature.parameters]
    shown += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in more]
    function.__signature__ = signature.replace(parameters=shown)


_with_options(run)
