//! x86-64 Linux.

mod counters;
mod enter;
mod frames;
mod onepass;
mod relocate;
mod signals;
mod stubs;

pub(crate) use counters::varve_count_target;
pub(crate) use enter::{varve_enter, varve_leave, varve_resume};
/// The processor's number in ELF files.
pub(crate) const ELF_MACHINE: u32 = 62;

pub(crate) use frames::{caller, return_address, return_slot};
pub(crate) use onepass::{OnePass, Piece};
pub(crate) use relocate::{RELOCATIONS, relocate, width};
pub(crate) use signals::Interrupted;
pub(crate) use stubs::{exit, lazy, lazy_entries};
