//! Events of `perf_event_open(2)`: their description in /sys, and how they are opened.

mod open;
mod terms;

pub use open::{Attributes, open, refused};
pub use terms::{config, number, set, word};

/// The folder where the kernel describes its events, below the root.
pub const DEVICES: &str = "sys/bus/event_source/devices";
