//! Objects that survive: a region file in the address range that a heap leaves to it, the order in which it is written, and what is found in
//! it after a crash. Knows no language: whoever runs programs says what objects look like ([`Tables`]).
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
//! medium when it is over, in the program's order. In a region what is stored over is logged first ([`Space::before_store`]), and all of its
//! stores are in the medium once it has ended, or none.
//!
//! # What is not in the file
//!
//! Which lines are free: recovery follows references from the roots and knows. So freeing writes nothing, and a crash can expose nothing
//! half-done. Class data ([`Constant`]): the program makes them anew, each at the same place.
//!
//! # Where things are
//!
//! | file | job |
//! |---|---|
//! | `layout`, `header`, `types`, `roots`, `class_data` | the file's format |
//! | `image` | its bytes, mapped or in memory |
//! | `domain` | when bytes are in the medium: cache lines, files, simulated, a modelled machine |
//! | `space` | a region in use: stores, regions, garbage |
//! | `persist` | moves objects into it |
//! | `log` | what regions would store over |
//! | `alloc` | room for objects |
//! | `walk` | follows references and believes nothing: recovery, checks, garbage |
//! | `file` | opening by name, with a lock |
//! | `inspect` | looks at one without changing it |
//! | `rewrite` | copies a region: without garbage, for a program whose types changed |
//! | `export` | as JSON lines |
//!
//! `unsafe` is in `image`, `persist`, `file` and `domain`.

mod alloc;
mod class_data;
pub mod domain;
mod error;
mod export;
mod file;
mod header;
mod image;
mod inspect;
pub mod layout;
mod log;
mod persist;
mod rewrite;
mod roots;
mod space;
pub mod types;
mod walk;

pub use class_data::{Held, Late};
pub use error::{Error, Result};
pub use file::{Lock, Medium, Opened, open_in_place, read_file};
pub use header::{Commit, Unreadable, read};
pub use image::Image;
pub use inspect::Inspection;
pub use persist::Volatile;
pub use rewrite::{replace, rewritten};
pub use roots::Root;
pub use space::{Recovered, Space, Stats};
pub use types::{Constant, Field, Heap, Kind, Storage, Tables, Target, Type, difference};
pub use walk::{Damage, Walk};
