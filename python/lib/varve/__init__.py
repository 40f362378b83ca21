"""Varve puts every byte of a program in the right memory: which memory of a machine should hold what, and what does it cost?

    >>> import varve
    >>> runs = varve.run("gups:bytes=4GiB,hot=10%", machine="cxl-spr", policy="first-touch,hotset")
    >>> runs.to_polars()

A run is that of `varve run`: the same defaults, the same numbers.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

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
    "plans",
    "policies",
    "record",
    "run",
    "workloads",
]

#: What can be run: an object, or a text as `varve run` takes it.
Work = Union[Workload, Trace, Program, str, "os.PathLike[str]"]


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


def _items(all: Any) -> List[Item]:
    return [Item(name, about, [Parameter(*p) for p in parameters]) for name, about, parameters in all]


def policies() -> List[Item]:
    """The page policies that there are by name."""
    return _items(_varve.policies())


def plans() -> List[Item]:
    """The heap plans that there are by name."""
    return _items(_varve.plans())


def workloads() -> List[Item]:
    """The workloads that there are by name."""
    return _items(_varve.workloads())


#: Options that both kinds of runs take, those of pages, and those of objects.
_BOTH = ("page", "seed", "jobs")
_PAGES = ("policy", "scale", "cores", "until")
_OBJECTS = (
    "plan",
    "fast",
    "profile",
    "instances",
    "co_run",
    "numa",
    "trays",
    "heap_max",
    "nursery",
    "nursery_max",
    "tier",
)


def run(
    work: Work,
    machine: Union[Machine, str, None] = None,
    *,
    policy: Union[str, Policy, Sequence[Union[str, Policy]], None] = None,
    scale: Optional[int] = None,
    cores: Optional[int] = None,
    until: Optional[float] = None,
    plan: Union[str, Sequence[str], None] = None,
    fast: Union[str, int, Sequence[str], None] = None,
    profile: Union[str, "os.PathLike[str]", None] = None,
    instances: Optional[int] = None,
    co_run: Optional[bool] = None,
    numa: Optional[str] = None,
    trays: Optional[str] = None,
    heap_max: Union[str, int, None] = None,
    nursery: Union[str, int, None] = None,
    nursery_max: Union[str, int, None] = None,
    tier: Optional[str] = None,
    page: Union[str, int, None] = None,
    seed: Optional[int] = None,
    jobs: Optional[int] = None,
    progress: Union[bool, Progress, None] = None,
) -> Runs:
    """Runs work on a modelled machine, once under each policy or plan.

    A workload or a trace runs under page policies: `policy`, `scale`, `cores`, `until`. A WebAssembly program runs under
    heap plans: `plan`, `fast`, `profile`, `instances` and so on. Options mean what those of `varve run` mean, and what is
    not given is what it is there.

    `policy` may be an object of a class that derives from `Policy`, or a list of such and of names.
    `progress`: a bar (true), nothing (false), or a function of the share that is done and the accesses that were made;
    a bar on terminals and in notebooks if nothing is said.

    Raises `InputError` for what cannot be, `RunError` for work that failed, and `KeyboardInterrupt`. Where some policies or
    plans cannot run and others did, those are in `Runs.refused`, with a warning.
    """
    given: Dict[str, Any] = {
        "policy": policy,
        "scale": scale,
        "cores": cores,
        "until": until,
        "plan": plan,
        "fast": fast,
        "profile": profile,
        "instances": instances,
        "co_run": co_run,
        "numa": numa,
        "trays": trays,
        "heap_max": heap_max,
        "nursery": nursery,
        "nursery_max": nursery_max,
        "tier": tier,
        "page": page,
        "seed": seed,
        "jobs": jobs,
    }
    options = {key: value for key, value in given.items() if value is not None}
    what = _varve.work(work)
    if isinstance(what, Program):
        _refuse(options, _OBJECTS + _BOTH, "a WebAssembly program", "a workload or a trace")
        if machine is None:
            raise InputError("a WebAssembly program needs a machine: machine=\"optane-6242\", for example")
    else:
        _refuse(options, _PAGES + _BOTH, "a workload or a trace", "a WebAssembly program")
        if isinstance(what, Trace) and policy is None:
            raise InputError("a trace needs page policies: policy=\"all\", for example")
    on = machine if isinstance(machine, Machine) else Machine(machine or _varve.DEFAULT_MACHINE)
    for key in ("plan", "fast"):
        value = options.get(key)
        if isinstance(value, (list, tuple)):
            options[key] = ",".join(str(v) for v in value)
    told = _progress.chosen(progress)
    try:
        if isinstance(what, Program):
            return _varve.objects(what, on, options, told)
        chosen = options.pop("policy", "all")
        each = [chosen] if isinstance(chosen, (str, Policy)) else list(chosen)
        for one in each:
            if not isinstance(one, (str, Policy)):
                raise TypeError(f"a policy is a text or a varve.Policy, and no {type(one).__name__}")
        return _varve.pages(what, on, each, options, told)
    finally:
        _progress.close(told)


def _refuse(options: Dict[str, Any], takes: Sequence[str], this: str, other: str) -> None:
    """What is given is taken, or refused."""
    for key in options:
        if key not in takes:
            raise InputError(f"`{key}` is not for {this}, but for {other}: leave it out")
