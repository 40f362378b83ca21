"""Page policies in Python: the same decisions as in Rust, and what happens when they are wrong."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

import pytest
from conftest import TINY

import varve


class FirstTouch(varve.Policy):
    """Nodes by distance, as Linux goes through them: the policy `first-touch`."""

    name = "mine"

    def begin(self, frames: varve.Frames) -> None:
        def order(socket: int) -> List[int]:
            def key(node: int) -> Tuple[bool, int, bool, int]:
                return (frames.socket(node) != socket, frames.socket(node), not frames.is_fast_node(node), node)

            return sorted(range(frames.nodes), key=key)

        self.nearest = {frames.socket(node): order(frames.socket(node)) for node in range(frames.nodes)}

    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        for node in self.nearest[fault.socket]:
            frame = frames.take_from(node)
            if frame is not None:
                return frame
        return None


class SlowFirst(varve.Policy):
    """All in slow memory; each page that was sampled moves to fast memory."""

    name = "promoting"
    threads = 1
    period_ns = 10_000_000
    sample_period = 2000

    def begin(self, frames: varve.Frames) -> None:
        self.fast = [n for n in range(frames.nodes) if frames.is_fast_node(n)]
        self.slow = [n for n in range(frames.nodes) if not frames.is_fast_node(n)]
        self.wanted: List[int] = []
        self.moves = self.cancels = 0

    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        return next((f for n in self.slow + self.fast if (f := frames.take_from(n)) is not None), None)

    def sample(self, frames: varve.Frames, frame: int, source: str) -> None:
        assert source in ("fast", "slow", "store")
        if not frames.is_fast(frame) and frame not in self.wanted:
            self.wanted.append(frame)

    def tick(self, frames: varve.Frames) -> Iterator[Tuple[int, int]]:
        wanted, self.wanted = self.wanted[:64], []
        for frame in wanted:
            target = frames.take_from(self.fast[0])
            if target is not None:
                yield frame, target

    def moved(self, frames: varve.Frames, source: int, target: int) -> None:
        assert frames.is_fast(target) and not frames.is_fast(source)
        self.moves += 1
        # Sampled again while it was on its way.
        if source in self.wanted:
            self.wanted.remove(source)

    def cancelled(self, frames: varve.Frames, source: int, target: int) -> None:
        self.cancels += 1


def test_the_same_decisions_have_the_same_numbers() -> None:
    for machine in ("cxl-spr", "optane-6230"):
        runs = varve.run(TINY, machine, policy=["first-touch", FirstTouch()])
        assert runs.names == ["first-touch", "mine"]
        theirs, ours = runs[0], runs[1]
        for run in (theirs, ours):
            del run["policy"]
            # Of the policies' own book-keeping.
            del run["placement"]["metadata_bytes"]
        assert ours == theirs


def test_pages_are_sampled_and_moved() -> None:
    policy = SlowFirst()
    work = "gups:bytes=2GiB,hot=10%,updates=100k"
    runs = varve.run(work, "optane-6230", policy=["slow", policy])
    moved = runs["promoting"]
    # Results are those of the last phase; pages move before, too.
    assert 0 < moved["promoted"] <= policy.moves
    assert moved["samples"] > 0 and moved["slow_share"] < runs["slow"]["slow_share"]


class Raises(FirstTouch):
    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        raise LookupError("nothing here")


class Takes(FirstTouch):
    """Answers a frame that it has not taken."""

    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        return 5


class Twice(FirstTouch):
    """Answers the same frame for each page."""

    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        frames.take(5)
        return 5


class Moves(SlowFirst):
    """Moves pages to frames that it has not taken."""

    def tick(self, frames: varve.Frames) -> Iterator[Tuple[int, int]]:
        for frame in self.wanted:
            yield frame, frames.first(self.fast[0])


class Full(FirstTouch):
    def place(self, frames: varve.Frames, fault: varve.Fault) -> Optional[int]:
        return None


class Keeps(FirstTouch):
    """Keeps the frames for later."""

    def begin(self, frames: varve.Frames) -> None:
        super().begin(frames)
        self.frames = frames


@pytest.mark.parametrize(
    "policy, error, words",
    [
        (Raises(), LookupError, "nothing here"),
        (Takes(), varve.InputError, "frame 5 was not taken for this page"),
        (Twice(), varve.InputError, "frame 5 was not taken for this page"),
        (Moves(), varve.InputError, "was not taken before"),
        (varve.Policy(), NotImplementedError, "has no method `place`"),
        (Full(), varve.RunError, "out of memory"),
    ],
)
def test_what_a_policy_does_wrong_ends_the_run(policy: varve.Policy, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        varve.run("gups:bytes=2GiB,hot=10%,updates=400k", "optane-6230", policy=policy)


def test_frames_are_there_only_during_a_call() -> None:
    policy = Keeps()
    varve.run(TINY, "cxl-spr", policy=policy)
    assert len(policy.frames) > 0
    with pytest.raises(RuntimeError, match="only while a method"):
        policy.frames.take_from(0)


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        varve.run(TINY, policy=[3])  # type: ignore[list-item]
