//! Policies and plans of the model, followed on this machine.
//!
//! | file | job |
//! |---|---|
//! | [`pages`] | page policies for running programs, on nodes |
//! | [`frames`] | the same, where frames are chosen |
//! | [`seen`] | observations for charts |
//! | [`daemon`] | several control groups with budgets of their own, from a file; measurements |
//! | [`dimm_map`] | files that map physical addresses to DIMMs |
//! | `here` | machines that a user names, and this machine |
//! | [`native`] | the target memory of a native program's allocation sites |
//! | [`java`] | where generations of a Java virtual machine are, and PIMA for it |

pub mod daemon;
pub mod dimm_map;
mod dimms;
pub mod frames;
mod here;
pub mod java;
pub mod native;
pub mod pages;
pub mod seen;

pub use here::{machine, machine_of_probe, machine_with_notes};
