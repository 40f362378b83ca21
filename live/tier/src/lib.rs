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

/// What is wrong with a file, with its line.
fn line_of(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .map_or(1, |at| text[..at.start].matches('\n').count() + 1);
    let what = error.message().lines().next().unwrap_or_default();
    format!("line {line}: {what}")
}
