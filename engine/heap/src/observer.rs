//! Observers of the collector's own accesses: a model of a machine, a profiler, or none.

use std::time::Duration;

use crate::header::Header;
use crate::plan::{Origin, Space};
use crate::reference::Ref;
use crate::stats::Kind;
use crate::traced::Traced;

/// Observes the collector. Collector threads call at the same time.
///
/// With [`Unobserved`] nothing is left of it after compilation.
pub trait Observer: Send + Sync {
    /// Whether there is an observer.
    const WATCHES: bool = true;

    /// `bytes` were read at `address`: of objects, and of the collector's own tables.
    fn read(&self, address: u64, bytes: u64);

    /// `bytes` were written at `address`.
    fn write(&self, address: u64, bytes: u64);

    /// `instructions` instructions are executed before the next access, besides those that read and write its bytes.
    fn execute(&self, instructions: u64) {
        let _ = instructions;
    }

    /// An object was copied: it survived the nursery, left the observer space, or moved from one place to another. Or
    /// it was born, too large for the nursery: from [`Origin::Birth`], and from where it is.
    fn moved(&self, moved: Moved) {
        let _ = moved;
    }

    /// A collection has traced live objects, and no dead object is overwritten yet.
    fn traced(&self, traced: &Traced<'_>) {
        let _ = traced;
    }

    /// A collection reached another stage.
    fn stage(&self, kind: Kind, stage: Stage) {
        let _ = (kind, stage);
    }

    /// The time, if there is another clock than the host's. Pauses are measured with it.
    fn now(&self) -> Option<Duration> {
        None
    }
}

/// An object that was copied.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Its header before, with its site and whether it was written.
    pub header: Header,
    /// Its bytes.
    pub bytes: u64,
    /// Where it was, in which kind of space.
    pub from: Origin,
    /// Its old address.
    pub from_address: u64,
    /// Where it is now.
    pub to: Space,
    /// Its new address.
    pub to_address: u64,
    /// The same as a reference.
    pub to_ref: Ref,
}

/// The phases of a collection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The program stands still. Roots and the remembered set are scanned.
    Roots,
    /// Objects are scanned and copied.
    Trace,
    /// Weak references, host objects, line marks: all the rest.
    Rest,
    /// The program goes on.
    End,
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WATCHES: bool = false;

    #[inline(always)]
    fn read(&self, _: u64, _: u64) {}

    #[inline(always)]
    fn write(&self, _: u64, _: u64) {}

    #[inline(always)]
    fn execute(&self, _: u64) {}
}
