"""Page policies that are written in Python, for experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Literal, Optional, Tuple

if TYPE_CHECKING:
    from ._varve import Fault, Frames


class Policy:
    """Decides which frame backs a page, and which page to move: the trait `Policy` of the crate `varve-pages`.

    Derive from it, and give `place` a body. Methods that are not overridden are not called, and cost nothing. A policy
    sees what a real one could see: no clock, and no access that was not sampled. It sees the scaled machine: frames and
    pages are those of the machine divided by the run's scale, and times are those of the model.

    An exception ends the run, and comes out of `varve.run`.
    """

    #: What results call it.
    name: str = "python"
    #: Threads of its daemon; each wants a whole core while it runs.
    threads: int = 0
    #: Time between two calls of `tick`, ns at full size; 0: there is no daemon.
    period_ns: int = 0
    #: One access in this many is sampled, at full size; 0: none is.
    sample_period: int = 0

    def begin(self, frames: Frames) -> None:
        """Before a run: all frames are free."""

    def place(self, frames: Frames, fault: Fault) -> Optional[int]:
        """A page is touched for the first time: takes a frame for it, such as `frames.take_from(0)`. `None` where no frame is left."""
        raise NotImplementedError(f"{type(self).__name__} has no method `place`")

    def freed(self, frames: Frames, frame: int) -> None:
        """The page in `frame` is gone; its frame is given back after this call."""

    def sample(self, frames: Frames, frame: int, source: Literal["fast", "slow", "store"]) -> None:
        """An access to the page in `frame` was sampled: a load that fast or slow memory served, or a store."""

    def traffic(self, now: int, bytes: int) -> None:
        """Bytes that memory controllers moved from and to DRAM until `now` (ns), since the beginning; told right before each tick."""

    def tick(self, frames: Frames) -> Optional[Iterable[Tuple[int, int]]]:
        """The daemon is awake: pages to move, in order, as pairs of the frame that each is in and one that was taken for it."""
        return None

    def moved(self, frames: Frames, source: int, target: int) -> None:
        """A page was moved; `source` is given back after this call unless another page is on its way there."""

    def cancelled(self, frames: Frames, source: int, target: int) -> None:
        """A page will not be moved; `target` is given back."""
