"""Common parts of the tests: the folder of the sources, and the command line to compare with."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Callable, Dict, List

import pytest

import varve

HOME = pathlib.Path(__file__).resolve().parents[2]

#: Runs `varve run ... --json` among the sources; what it prints.
Document = Callable[..., Dict[str, Any]]
#: The same, and its runs alone.
CommandLine = Callable[..., List[Any]]


@pytest.fixture
def home() -> pathlib.Path:
    """The folder of the sources, with `traces` and `programs`."""
    return HOME


@pytest.fixture
def binary() -> str:
    """The command line."""
    target = os.environ.get("CARGO_TARGET_DIR", str(HOME / "target"))
    varve = os.environ.get("VARVE", f"{target}/release/varve")
    if not os.path.exists(varve):
        pytest.skip(f"{varve}: not there; cargo build --release, or name the binary with VARVE")
    return varve


@pytest.fixture
def document(binary: str) -> Document:
    def run(*words: str) -> Dict[str, Any]:
        done = subprocess.run(
            [binary, "run", "--json", *words], cwd=HOME, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return run


@pytest.fixture
def command_line(document: Document) -> CommandLine:
    return lambda *words: list(document(*words)["runs"])


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pathlib.Path]:
    """Unpacks one of `traces/jvm` by its name."""
    folder = tmp_path_factory.mktemp("jvm")

    def unpacked(name: str) -> pathlib.Path:
        path = folder / f"{name}.trace"
        if not shutil.which("zstd"):
            pytest.skip("needs zstd (Debian: apt install zstd)")
        if not path.exists():
            packed = HOME / "traces" / "jvm" / f"{name}.trace.zst"
            subprocess.run(["zstd", "-d", "-q", str(packed), "-o", str(path)], check=True)
        return path

    return unpacked


def all_of(runs: varve.Runs) -> List[Dict[str, Any]]:
    """Each run as `varve run --json` has it."""
    return list(json.loads(runs.to_json()))


#: A workload so small that a run takes a moment.
TINY = "gups:bytes=1GiB,updates=20k,threads=2"
#: A WebAssembly program and its arguments.
GRAPH = ("programs/dist/graph.wasm", "pagerank", "--scale", "7", "--iterations", "2", "--top", "1")
