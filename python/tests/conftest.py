"""What the tests share: where the sources are, and the command line to compare with."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Callable, List

import pytest

HOME = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def home() -> pathlib.Path:
    """The folder of the sources, with `traces` and `programs`."""
    return HOME


@pytest.fixture
def command_line() -> Callable[..., List[Any]]:
    """Runs `varve run ... --json` among the sources; its runs."""
    target = os.environ.get("CARGO_TARGET_DIR", str(HOME / "target"))
    varve = os.environ.get("VARVE", f"{target}/release/varve")
    if not os.path.exists(varve):
        pytest.skip(f"{varve}: not there; cargo build --release, or name the binary with VARVE")

    def runs(*words: str) -> List[Any]:
        done = subprocess.run([varve, "run", "--json", *words], cwd=HOME, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        all: List[Any] = json.loads(done.stdout)["runs"]
        return all

    return runs


#: A workload so small that a run takes a moment.
TINY = "gups:bytes=1GiB,updates=20k,threads=2"
