"""The book's page about Python keeps its word: its examples run."""

from __future__ import annotations

import pathlib
import re
from typing import Any, Dict

import pytest


def test_the_examples_run(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    page = (home / "docs" / "python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(examples) == 3
    names: Dict[str, Any] = {}
    for example in examples:
        exec(example, names)
    # The expected outcome beside an example.
    assert names["runs"].names[:4] == ["dram", "slow", "hotset at 10%", "hot-sites at 10%"]
