//! Policies and plans of the model, followed on this machine.
//!
//! | file | job |
//! |---|---|
//! | `here` | machines that a user names, and the one that this runs on |
//! | [`native`] | which allocation sites of a native program go where |
//! | [`java`] | where generations of a Java virtual machine are, and PIMA for it |

mod here;
pub mod java;
pub mod native;

pub use here::{machine, machine_of_probe};
