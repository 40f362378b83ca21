//! Decisions about whole programs: observations in, decisions out. No clock, no machine, nothing read or written.
//!
//! ```text
//! place.rs     which memory: first come, first served (Linux), or by need, with eviction (Algorithm 1 of Wang et al.)
//! part.rs      then: who is in fast memory in part, where a program's own memory can be placed
//! threads.rs   how many threads: until another one does not pay (Algorithm 2), and the rest given away
//! order.rs     which program starts when: none beside one that disturbs it, if another could go first (methods 1 and 2)
//! ```

pub mod order;
pub mod part;
pub mod place;
pub mod threads;
