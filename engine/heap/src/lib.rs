//! A generational, moving, parallel collector for heaps in several kinds of memory. It knows no language: the runtime provides the layout of objects
//! ([`Shapes`]), the references outside of the heap ([`Roots`]), and the memory that objects belong in ([`Plan`]).
//!
//! # An object's life
//!
//! ```text
//!            compiled code bumps a cursor
//!                        |
//!                        v
//!   +--------------------------------------------+
//!   | nursery: one stretch of addresses, 4-32 MiB |      born too large for it
//!   +--------------------------------------------+          (an eighth)
//!         | survives, small      | survives, >= 8 KiB         |
//!         |                      |                            |
//!         |   the plan chooses a tier, for each object        |
//!         v                      v                            v
//!   +------------------+   +---------------------------------------+
//!   | mature, per tier |   | large, per tier: runs of 4 KiB pages, |
//!   | 32 KiB blocks of |   | one object each; moved by tier alone  |
//!   | 256-byte lines   |   +---------------------------------------+
//!   +------------------+
//!     |            ^
//!     +------------+  moved out of blocks that are nearly empty
//! ```
//!
//! The manner is that of Immix (Blackburn and McKinley, 2008) behind a copying nursery.
//!
//! - **Minor** collections copy reachable objects out of the nursery and scan only roots and the objects that were stored into since the last
//!   collection. The write barrier finds those by one bit in the object's header ([`layout::UNLOGGED`]); large arrays are remembered by line.
//!   Afterwards the nursery is empty.
//! - **Full** collections mark everything that is reachable, and the lines that it lies in. Lines without a mark
//!   are holes, into which the next survivors are bumped; blocks without any are free. When unused holes add up, the emptiest blocks are *evacuated*:
//!   their objects are copied in the same pass, as far as a budget lets them, and stay in place otherwise.
//! - **When**: the nursery is as large as the configuration says, doubles while much of it survives, and shrinks
//!   when the heap's maximum is near, so that survivors always have room. A full collection comes when survivors
//!   take [`Config::growth`] times the live bytes after the last one.
//! - **Out of memory** is a value, [`OutOfMemory`], given when even a full collection leaves less than one part in
//!   fifty of the heap. [`Heap::lend`] gives a little beyond the maximum then, so that the program can handle the error. Address range for a whole
//!   nursery is set aside, so that no collection fails half-way.
//!
//! # For compilers
//!
//! [`layout`] holds every offset and bit that compiled code needs; [`Mutator`] says how it allocates and stores.
//! Null dereferences fault.
//!
//! # Several memories
//!
//! A [`Plan`] names [tiers](Tier); the heap keeps a mature and a large space for each, and an observer space if the
//! plan has one:
//!
//! ```text
//!   nursery --+-- the plan: wait ------> observer space: the write barrier records writes
//!             |                               |  sorted with the nursery when it is nearly full
//!             |                               v
//!             +-- the plan: a tier ----> mature and large spaces, one pair per tier
//!                                             ^  |  when everything is collected, an object whose
//!                                             +--+  tier is another one by now is copied there
//! ```
//!
//! - [`plans`] has the plans by name, [`varve_sites`] has profiles of allocation sites, [`record`] makes a profile, [`Pima`] the state machine that
//!   tries both memories. [`Heap::planned`] makes a heap with any plan, [`Heap::temperature`] is the byte that compiled code sets in headers,
//!   [`Heap::interval`] takes a program's reports.
//! - [`Config::backing`] binds addresses to memory of a tier; the heap binds nothing itself.
//! - An [`Observer`] sees every access of a collection and every object that moves, so that a model of a machine can
//!   charge for it; with [`Unobserved`] nothing of it is compiled.
//! - With [`Dram`] there is one memory: no table, no checks, no moves.
//!
//! # Pauses
//!
//! Memory that the next survivors will need is touched while the program runs, by a thread of its own: the first
//! touch of a page costs more than filling it, and would be part of a pause. A panic in the middle of a collection
//! ends the process: the heap is half moved then. [`Stats`] has counts and percentiles, [`Config::log`] a
//! [`Record`] per collection, which shows itself as one line.
//!
//! # Example
//!
//! ```
//! use varve_heap::{Config, Heap, Kind, Ref, Shape, Shapes};
//!
//! let mut shapes = Shapes::new();
//! // Header, a 4-byte number, a reference: 16 bytes.
//! let cell = shapes.add(Shape::structure("cell", 16, [12]))?;
//! let mut heap = Heap::new(Config::default(), shapes)?;
//! let mut mutator = heap.attach();
//!
//! // A list of a million cells, of which a hundred are kept. The newest one is the only root.
//! let mut roots = vec![Ref::NULL];
//! for number in 0u32..1_000_000 {
//!     let new = heap.alloc_struct(&mut mutator, cell, 0, &mut roots)?;
//!     heap.write(new, 8, &number.to_ne_bytes());
//!     if number % 10_000 == 0 {
//!         heap.write_ref(&mut mutator, new, 12, roots[0]);
//!         roots[0] = new;
//!     }
//! }
//! heap.collect(&mut mutator, Kind::Full, &mut roots);
//! assert_eq!(heap.verify(&mutator, &mut roots)?.objects, 100);
//! println!("{}", heap.stats());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | file | job |
//! |---|---|
//! | `layout`, `align`, `usual`, `reference`, `header`, `shape` | objects, as data |
//! | `memory`, `chunks`, `blocks`, `lines` | the address range and the tables over it; `arch`: the processor-specific part |
//! | `nursery`, `observed`, `mature`, `large` | the kinds of spaces; `ahead` touches their memory |
//! | `mutator`, `remembered` | the state that compiled code holds, and the log of its write barrier |
//! | `plan`, `observer`, `roots`, `config` | interfaces that the host implements |
//! | `plans`, `tier`, `record` | every plan by name, kinds of memory, the making of a profile |
//! | `sampler`, `pima`, `warm`, `instances` | the input of plans from the running program: intervals and samples; instances that sample together |
//! | `durable` | reports of references to durable objects, which the collector does not own |
//! | `trace`, `pool`, `collect`, `traced`, `sizing` | a collection, its threads, its results, and when the next one comes |
//! | `heap`, `alloc`, `access`, `stats`, `verify` | the API |
//!
//! `unsafe` is in `arch`, `memory`, `lines`, `mutator`, `remembered`, and in `trace`, whose steps check nothing.

mod access;
mod ahead;
mod align;
mod alloc;
mod arch;
mod blocks;
mod chunks;
mod collect;
mod config;
mod durable;
mod header;
mod heap;
mod instances;
mod intervals;
mod large;
pub mod layout;
mod lines;
mod mature;
mod memory;
mod mutator;
mod nursery;
mod observed;
mod observer;
pub mod plan;
pub mod plans;
mod pool;
pub mod record;
mod reference;
mod remembered;
mod roots;
mod sampler;
mod shape;
mod sizing;
mod stats;
mod trace;
mod traced;
mod tuning;
mod usual;
mod verify;
pub mod warm;

pub use align::{AlignError, ObjectAlign};
pub use alloc::OutOfMemory;
pub use config::{Backing, Config, ConfigError, Log, MIN_HEAP, MIN_NURSERY, NurserySize, Stress};
pub use durable::DurableMarks;
pub use header::Header;
pub use heap::Heap;
pub use instances::{Instances, Seat};
pub use mutator::{Mutator, log_element_slow, log_slow};
pub use observer::{Moved, Observer, Stage, Unobserved};
pub use plan::{AnyPlan, FastIsFull, Object, Origin, Places, Plan, Site, Space};
pub use plans::dram::Dram;
pub use reference::Ref;
pub use roots::Roots;
pub use sampler::{FastMemory, Intervals, Sampler};
pub use shape::{MAX_ELEMENT, MAX_STRUCT, Shape, ShapeError, ShapeKind, Shapes};
pub use stats::{Cause, Kind, Pause, Record, SpaceRanges, SpaceUse, Stats};
pub use traced::Traced;
pub use varve_pima::{
    Coordinator, Entry, Interval, MAX_TIERS, Note, Phase, Pima, PimaError, PimaSettings,
    ReportError, Room, Tier,
};
pub use verify::{Damage, Verified};
