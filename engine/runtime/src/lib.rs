//! The WebAssembly engine: loads modules that use garbage-collected objects, compiles their functions when they are first
//! called, and runs them on a precise, moving collector.
//!
//! ```
//! use varve_runtime::{Engine, Linker, Module, Store};
//!
//! let engine = Engine::default();
//! let wasm = wat::parse_str(
//!     r#"(module
//!         (import "host" "log" (func $log (param i32)))
//!         (func (export "double") (param i32) (result i32)
//!             (call $log (local.get 0))
//!             (i32.mul (local.get 0) (i32.const 2))))"#,
//! ).unwrap();
//! let module = Module::new(&engine, &wasm)?;
//!
//! // The store holds the instance, its objects, and data of the host: here the logged values.
//! let mut store = Store::new(&engine, Vec::new())?;
//! let mut linker = Linker::new(&engine);
//! linker.func_wrap("host", "log", |mut caller: varve_runtime::Caller<'_, Vec<i32>>, n: i32| caller.data_mut().push(n));
//!
//! let instance = linker.instantiate(&mut store, &module)?;
//! let double = instance.get_typed_func::<i32, i32>(&mut store, "double")?;
//! assert_eq!(double.call(&mut store, 21)?, 42);
//! assert_eq!(store.data(), &[21]);
//! # Ok::<(), varve_runtime::Error>(())
//! ```

mod api;
mod arch;
mod code;
mod compile;
mod engine;
mod error;
mod helpers;
pub mod host;
mod module;
mod store;
mod types;

pub(crate) use api::extern_;

pub use api::extern_::{Extern, Global, Memory, Table, Tag};
pub use api::func::Func;
pub use api::host::{HostResult, IntoFunc};
pub use api::instance::Instance;
pub use api::linker::Linker;
pub use api::typed::{TypedFunc, WasmResults, WasmType, WasmTypes};
pub use api::val::Val;
pub use code::cache::make_code_cache;
pub use code::jitdump::JitDump;
pub use code::perf::PerfMap;
pub use engine::{Checks, Config, DurableFile, Engine, Tier};
pub use error::{Error, FrameInfo, Result, Trap, TrapKind};
pub use module::Module;
pub use store::root::{RootScope, Rooted};
pub use store::{
    AsContextMut, Caller, CheckStats, Clock, CompilerStats, Interrupt, Leaf, Part, Sink, SiteStats,
    Store, StoreContextMut,
};
pub use types::{FuncType, HeapType, Kind, RefType, ValType};
pub use varve_durable::{
    Medium, Recovered as DurableRecovered, Stats as DurableStats, backup as copy_region,
};
pub use varve_heap::plans;
pub use varve_heap::{AlignError, NurserySize, ObjectAlign};
pub use varve_heap::{
    Backing as GcBacking, Kind as GcKind, Record as GcRecord, Site as GcSite,
    SpaceRanges as GcRanges, SpaceUse as GcSpace, Stats as GcStats, Tier as GcTier,
};
pub use varve_heap::{
    Entry as PimaEntry, Instances, Note as PimaNote, Phase as PimaPhase, PimaError,
};
