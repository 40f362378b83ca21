//! Memory of a chosen kind on a machine with several memory nodes.
//!
//! ```text
//! kinds.rs      which nodes are fast memory and which are slow: from firmware and kernel, or from the user
//! memory.rs     binds addresses to a kind, and checks that they are there
//! numa_maps.rs  a process's residency, from the kernel
//! on_process.rs move_pages on another process
//! policy.rs     of which nodes memory is that is touched for the first time
//! positions.rs  on which nodes pages are
//! pool.rs       slow memory that is zero before anybody wants it
//! sys.rs        the system calls
//! ```

mod error;
mod kinds;
mod mask;
mod memory;
mod numa_maps;
pub(crate) mod on_process;
pub(crate) mod policy;
mod pool;
mod positions;
pub(crate) mod sys;

pub use error::NodeError;
pub use kinds::{Kinds, NoKinds};
pub use memory::NodeMemory;
pub use numa_maps::by_node;
pub use policy::Policy;
pub use pool::{CHUNK, PoolCounts, ZeroPool};
pub use positions::{Positions, positions};
pub use sys::migrate;
