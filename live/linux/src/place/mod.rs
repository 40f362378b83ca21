//! Page placement under a DRAM cache, in user space: reserve, read frame numbers, keep the frames whose
//! bins are least loaded, give back the rest.
//!
//! These files use the standard library alone, because the preloaded shim compiles the very same ones.

// The library and the shim each use a different part of what is here.
#![allow(dead_code)]

pub mod bins;
pub mod choose;
pub mod conflicts;
pub mod engine;
pub mod error;
pub mod huge;
pub mod memory;
pub mod mover;
pub mod pagemap;
pub mod range;
pub mod reserve;
pub mod scan;
pub mod sys;
pub mod table;
pub mod tally;
