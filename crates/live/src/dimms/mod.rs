//! Which bits of an address choose the DIMM and the bank that it is in, found by timing row conflicts.
//!
//! ```text
//! timing.rs    reads two lines in turn past the caches, and knows their physical addresses
//! find.rs      such times -> functions of address bits; no I/O
//! modes.rs     two groups among times
//! gf2.rs       linear algebra over GF(2)
//! meaning.rs   functions -> what they say of DIMMs, with what is known of these
//! ```

mod find;
mod gf2;
mod meaning;
mod modes;
mod timing;

pub use find::{Found, Unfound, find};
pub use meaning::{Meaning, Modules};
pub use timing::Lines;
