//! Code that sees a trace as it is replayed.

use crate::format::Event;
use varve_access::{Kind, Op};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Observes a replayed trace, or changes it.
pub trait Listener {
    /// Ops of a thread, which run next: it adds them to `out`, changed or not.
    fn ops(&mut self, ops: &[Op], out: &mut Vec<Op>) {
        out.extend_from_slice(ops);
    }

    /// Ops of a thread that the replay skips, and what it does in their place: it adds that to `out`, changed or not.
    fn passed(&mut self, _ops: &[Op], touches: &[Op], out: &mut Vec<Op>) {
        self.ops(touches, out);
    }

    /// An event, and the ops that come before it; more may be added.
    fn event(&mut self, _event: &Event, _before: &mut Vec<Op>) {}

    /// A process that shared a page since a fork, or had it of a file, has a copy of its own from here on, at address `to`.
    fn copied(&mut self, _from: u64, _to: u64) {}

    /// Pages went with the last process that had them.
    fn gone(&mut self, addr: u64, bytes: u64, out: &mut Vec<Op>) {
        out.extend(unmaps(addr, bytes));
    }
}

/// Ops that give the whole pages of a range back.
pub fn unmaps(addr: u64, bytes: u64) -> impl Iterator<Item = Op> {
    let first = addr.next_multiple_of(PAGE);
    let end = (addr + bytes) / PAGE * PAGE;
    let most = u64::from(u16::MAX) * PAGE;
    (first..end).step_by(most as usize).map(move |at| {
        let pages = ((end - at) / PAGE).min(u64::from(u16::MAX));
        Op::new(Kind::Unmap, at, pages as u16, 0)
    })
}

impl Listener for () {}
