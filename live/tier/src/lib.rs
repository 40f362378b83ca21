//! Policies and plans of the model, followed on this machine.
//!
//! | file | job |
//! |---|---|
//! | [`pages`] | page policies for running programs, on nodes |
//! | [`frames`] | the same, where frames are chosen |
//! | [`seen`] | what pictures of them are made of |
//! | [`dimm_map`] | files that say which addresses are on which DIMM |
//! | `here` | machines that a user names, and the one that this runs on |
//! | [`native`] | which allocation sites of a native program go where |
//! | [`java`] | where generations of a Java virtual machine are, and PIMA for it |

pub mod dimm_map;
mod dimms;
pub mod frames;
mod here;
pub mod java;
pub mod native;
pub mod pages;
pub mod seen;

pub use here::{machine, machine_of_probe};
