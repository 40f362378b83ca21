"""A progress bar of one line, on standard error: on a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, TextIO, Union

Progress = Callable[[float, int], None]

#: Time between two lines, s.
STEP = 0.2
WIDTH = 30


class Bar:
    """Draws the share that is done; the first line comes after a moment, so that short runs have none."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.begun = time.monotonic()
        self.last = self.begun + STEP
        self.drawn = 0

    def __call__(self, share: float, accesses: int) -> None:
        now = time.monotonic()
        if now - self.last >= STEP and share < 1.0:
            self.last = now
            done = int(share * WIDTH)
            left = f", {(now - self.begun) * (1 / share - 1):.0f} s left" if share > 0.02 else ""
            text = f"[{'#' * done}{'.' * (WIDTH - done)}] {accesses / 1e6:.0f} M accesses{left}"
            self.draw(text)

    def draw(self, text: str) -> None:
        self.out.write("\r" + text + " " * max(0, self.drawn - len(text)))
        self.out.flush()
        self.drawn = len(text)

    def close(self) -> None:
        """Takes the line away, however the work has ended."""
        if self.drawn:
            self.out.write("\r" + " " * self.drawn + "\r")
            self.out.flush()


def chosen(progress: Union[bool, Progress, None]) -> Optional[Progress]:
    """`None`: a bar in a terminal or a notebook, else none."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
    return Bar(sys.stderr) if progress else None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")


def close(progress: Optional[Progress]) -> None:
    if isinstance(progress, Bar):
        progress.close()
