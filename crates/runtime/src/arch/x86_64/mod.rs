//! x86-64 Linux.

mod counters;
mod enter;
mod frames;
mod relocate;
mod signals;
mod stubs;

pub(crate) use counters::varve_count_target;
pub(crate) use enter::{varve_enter, varve_leave, varve_resume};
pub(crate) use frames::{caller, return_address};
pub(crate) use relocate::relocate;
pub(crate) use signals::Interrupted;
pub(crate) use stubs::{exit, lazy, lazy_entries};
