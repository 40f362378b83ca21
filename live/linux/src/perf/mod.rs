//! Events of `perf_event_open(2)`: what the kernel tells of them in /sys, and how they are opened.

mod open;
mod terms;

pub use open::{Attributes, open, refused};
pub use terms::{config, number, set, word};

/// Where the kernel tells of its events, below the root.
pub const DEVICES: &str = "sys/bus/event_source/devices";
