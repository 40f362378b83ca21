//! A generational, moving, parallel collector for heaps in several kinds of memory.

pub mod layout;
