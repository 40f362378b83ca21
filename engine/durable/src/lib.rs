//! Objects that survive: a region file in the address range that a heap leaves to it, the order in which it is written, and its recovery after a
//! crash. It knows no language: the runtime describes the layout of objects ([`Tables`]).
//!
//! # A store's life
//!
//! ```text
//!  heap (volatile)                              region (durable)
//!  +--------------------------+                 +------------------------------+
//!  |  new entry -> key, value |   1 copy  --->  |  entry -> key, value         |
//!  |  (become forwarding      |                 |  2 write back, fence         |
//!  |   objects until the      |                 |                              |
//!  |   next full collection)  |                 |  table[i] = entry  3 store   |
//!  +--------------------------+                 |  4 write back, fence         |
//!                                               +------------------------------+
//! ```
//!
//! Durable objects refer to durable objects and constants, never to volatile ones. Outside of failure-atomic regions each store is in the
//! medium when it has ended, in the program's order. In a region the old contents are logged first ([`Space::before_store`]), and all of its
//! stores are in the medium once it has ended, or none.
//!
//! # What is not in the file
//!
//! Garbage: tracing references from the roots finds it. So freeing writes nothing, and a crash can expose nothing half-done. Class data
//! ([`Constant`]): the program makes them anew, each at the same place.
//!
//! # Where things are
//!
//! | file | job |
//! |---|---|
//! | `layout`, `header`, `types`, `roots`, `records`, `class_data` | the file's format |
//! | `pages` | marks of pages: checksums, and which lines are taken |
//! | `image` | its bytes, mapped or in memory |
//! | `arch` | the processor-specific part |
//! | `domain` | when bytes are in the medium: cache lines, files, simulated, a modelled machine |
//! | `journal` | commits stores to an ordinary file in one sync, by a redo log after the region |
//! | `space` | a region in use: `stores`, `regions`, `garbage`; writes of `roots` and `records`; when pages are opened and sealed |
//! | `space/persist` | moves objects into it |
//! | `log` | the old contents that regions overwrite |
//! | `alloc` | room for objects |
//! | `walk` | follows references and believes nothing: checks, garbage |
//! | `name` | ownership of a file, and its replacement by another |
//! | `file`, `source` | opening by name; reading one that may be in use |
//! | `keeper`, `snapshot`, `transfer` | beside a program: checking pages, copies for others, the file's name |
//! | `guard` | faults in a region's addresses |
//! | `inspect` | inspects one without changing it |
//! | `evolve` | how objects of one program become objects of another |
//! | `rewrite` | copies a region: without garbage, for a program whose types changed |
//! | `salvage` | recovers the intact objects of a damaged region |
//! | `export` | as JSON lines |
//! | `classes` | which classes its objects are of |
//!
//! `unsafe` is in `image`, `space/persist`, `file`, `name`, `guard`, `keeper`, `snapshot`, `transfer`, `journal`, `domain` and `arch`.

mod alloc;
mod arch;
mod class_data;
mod classes;
pub mod domain;
mod error;
pub mod evolve;
mod export;
mod file;
mod guard;
mod header;
mod image;
mod inspect;
pub mod journal;
mod keeper;
pub mod layout;
mod log;
mod mark;
mod name;
pub mod pages;
mod records;
mod rewrite;
mod roots;
mod salvage;
mod snapshot;
mod source;
mod space;
mod transfer;
pub mod types;
mod walk;

pub use class_data::{Held, Late};
pub use error::{Error, Result};
pub use file::{Copy, Medium, Opened, Prepared, alignment, backup, compact, open_in_place};
pub use guard::end_if_in_region;
pub use header::{Commit, FileId, Header, Unreadable, read};
pub use image::Image;
pub use inspect::Inspection;
pub use name::abandon_drafts;
pub use records::Named;
pub use rewrite::rewritten;
pub use roots::Root;
pub use salvage::{Salvaged, salvage};
pub use space::{CHECKED_FIRST, Canonical, Known, Recovered, Space, Stats, Volatile};
pub use types::{Constant, Field, Heap, Kind, Renamed, Storage, Tables, Target, Type, difference};
pub use walk::{Damage, Walk};
