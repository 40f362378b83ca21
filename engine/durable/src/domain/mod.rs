//! When a store is in the medium: one answer for each kind of medium.
//!
//! A region writes, then says which bytes are to go to the medium ([`Domain::write_back`]), and then that all of those must be there before
//! anything later is ([`Domain::fence`]). Writes between two fences may reach the medium in any order, by cache lines, or not at all.

mod file;
mod lines;
mod modelled;
mod pool;
mod simulated;

pub use crate::arch::Instruction;
pub use file::FileSync;
pub use lines::CacheLines;
pub use modelled::{MediumStep, Modelled};
pub use pool::Pool;
pub use simulated::{Crash, Simulated};

use std::io;

/// Why a region waits for the medium. Tests leave single ones out, to see that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Fence {
    /// New objects are to be there before anything refers to them.
    Copied,
    /// A store outside of regions has ended.
    Stored,
    /// The bytes that a store is about to overwrite have been logged.
    Logged,
    /// The stores of a region are to be there before its log is dropped.
    Finished,
    /// A region has ended.
    Committed,
    /// Rolled-back bytes are to be in the medium before the log is dropped.
    TakenBack,
    /// The name of a new root is to be there before its reference.
    Named,
    /// A header or a table was written.
    Header,
    /// Pages that were sealed are to be known as open before they are stored to.
    Opened,
}

impl Fence {
    /// Whether the program may acknowledge an operation once the fence is over. All others only keep an order, and a crash before them loses nothing
    /// visible: objects that nothing refers to yet, a log, the name of a root that stands for nothing. The end of a rollback is
    /// [`Fence::Committed`], too.
    pub fn ends_something(self) -> bool {
        matches!(self, Fence::Stored | Fence::Committed | Fence::Header)
    }
}

/// A kind of medium.
pub trait Domain: Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The bytes at `address` are to go to the medium before the next fence ends.
    fn write_back(&mut self, address: *const u8, bytes: u64);

    /// Waits until they are there.
    ///
    /// # Errors
    /// If the system says that it cannot write them.
    fn fence(&mut self, why: Fence) -> io::Result<()>;

    /// How many pages are worth opening together, as fences cost: a power of two.
    fn pages_at_a_time(&self) -> u64 {
        1
    }

    /// The region is about to grow to `bytes` bytes: a domain that keeps data of its own in the file makes room.
    ///
    /// # Errors
    /// If the medium is full, or fails.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// `bytes` bytes are about to be stored, and committed together with all uncommitted ones: a domain that needs room for that makes it.
    ///
    /// # Errors
    /// If the medium is full, or fails. Nothing was done then.
    fn make_room_to_commit(&mut self, bytes: u64) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// The region's addresses and file have got longer.
    fn grown(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Whether fences wait for nothing, and only [`Domain::commit`] does. Media that no fence waits for ignore it.
    fn set_grouped(&mut self, grouped: bool) {
        let _ = grouped;
    }

    /// Has all that was written back be there.
    ///
    /// # Errors
    /// As [`Domain::fence`].
    fn commit(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Has all that was written back be in its own place in the medium, and nothing in a journal.
    ///
    /// # Errors
    /// As [`Domain::fence`].
    fn settle(&mut self) -> io::Result<()> {
        self.commit()
    }

    /// Whether anything was written back that may not be there yet, and needs [`Domain::commit`].
    fn uncommitted(&self) -> bool {
        false
    }

    /// The region was closed in order: data that the domain keeps beside it are removed.
    ///
    /// # Errors
    /// As [`Domain::fence`].
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
