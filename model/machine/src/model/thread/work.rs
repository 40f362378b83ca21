//! The parts of a thread's turn that are functions of their own, each compiled for every processor and for newer ones.

use super::super::host::{InstructionLevel, Work};
use super::super::time::Ps;
use super::{Shared, Thread};
use varve_access::Op;

/// A turn of a thread: ops from its buffer until its clock passes `limit`, the buffer ends, or an op needs the driver.
/// That op comes back.
pub struct Turn<'t, 's> {
    /// The thread that runs.
    pub thread: &'t mut Thread,
    /// When it ends, ps.
    pub limit: Ps,
    /// State that it shares with the others.
    pub shared: &'t mut Shared<'s>,
}

impl Work for Turn<'_, '_> {
    type Out = Option<Op>;

    #[inline(always)]
    fn work<L: InstructionLevel>(self, level: L) -> Option<Op> {
        self.thread.run(level, self.limit, self.shared)
    }
}

/// A look ahead, [`Thread::look_ahead`].
pub(super) struct Look<'t, 's>(pub &'t mut Thread, pub &'t mut Shared<'s>);

impl Work for Look<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, _: L) {
        self.0.look_ahead(self.1);
    }
}

/// A line that the first level did not have, [`Thread::first_level_miss`].
pub(super) struct Missed<'t, 's> {
    pub thread: &'t mut Thread,
    pub shared: &'t mut Shared<'s>,
    pub line: u64,
    /// The dirty line that had to go for it.
    pub out: Option<u64>,
    pub load: bool,
    /// Time of its translation, ps.
    pub walk: Ps,
}

impl Work for Missed<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, level: L) {
        self.thread.first_level_miss(
            level,
            self.line,
            self.out,
            self.load,
            self.walk,
            self.shared,
        );
    }
}

/// Lines that are prefetched, [`Thread::fetch_ahead`].
pub(super) struct FetchAhead<'t, 's> {
    pub thread: &'t mut Thread,
    pub shared: &'t mut Shared<'s>,
    /// First and last.
    pub lines: (u64, u64),
    pub now: Ps,
}

impl Work for FetchAhead<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, _: L) {
        for line in self.lines.0..=self.lines.1 {
            self.thread.fetch_ahead(line, self.now, self.shared);
        }
    }
}

/// Instructions that are fetched, [`Thread::instructions`].
pub(super) struct Instructions<'t, 's>(pub &'t mut Thread, pub &'t mut Shared<'s>, pub Op);

impl Work for Instructions<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, _: L) {
        self.0.instructions(self.2, self.1);
    }
}

/// An op that bypasses the caches, [`Thread::write_through`].
pub(super) struct WriteThrough<'t, 's>(pub &'t mut Thread, pub &'t mut Shared<'s>, pub Op);

impl Work for WriteThrough<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<L: InstructionLevel>(self, _: L) {
        self.0.write_through(self.2, self.1);
    }
}
