//! A generational, moving, parallel collector for heaps in several kinds of memory.

mod access;
mod blocks;
mod chunks;
mod collect;
mod config;
mod header;
mod heap;
mod large;
pub mod layout;
mod lines;
mod mature;
mod memory;
mod mutator;
mod nursery;
mod observer;
mod plan;
mod pool;
mod reference;
mod roots;
mod shape;
mod sizing;
mod stats;
mod trace;
mod verify;

pub use config::{Config, ConfigError, Log, MIN_HEAP, MIN_NURSERY, Stress};
pub use header::Header;
pub use heap::{Heap, OutOfMemory};
pub use mutator::{Mutator, log_slow};
pub use observer::{Observer, Unobserved};
pub use plan::{Dram, From, MAX_TIERS, Plan, Tier};
pub use reference::Ref;
pub use roots::Roots;
pub use shape::{MAX_ELEMENT, MAX_STRUCT, Shape, ShapeError, ShapeKind, Shapes};
pub use verify::{Damage, Verified};
pub use stats::{Cause, Kind, Record, SpaceUse, Stats};
