//! The engine: the state shared by all modules and stores.

use crate::code::jitdump::JitDump;
use crate::code::perf::PerfMap;
use crate::compile::isa::{Level, isa};
use crate::compile::worker::Worker;
use crate::error::Result;
use crate::types::Registry;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use varve_heap::{Instances, NurserySize, ObjectAlign};

/// Which compilers the functions of a store go through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tier {
    /// Quick code with counters, for ever.
    Baseline,
    /// Optimized code from the first call on, without counters to go by.
    Optimizing,
    /// Quick code first, and optimized code by its counters once a function or loop is hot.
    #[default]
    Auto,
}

impl std::str::FromStr for Tier {
    type Err = String;

    fn from_str(s: &str) -> Result<Tier, String> {
        match s {
            "baseline" => Ok(Tier::Baseline),
            "optimizing" => Ok(Tier::Optimizing),
            "auto" => Ok(Tier::Auto),
            _ => Err(format!("no tier {s:?}: baseline, optimizing or auto")),
        }
    }
}

/// How optimized code treats persistence checks. Baseline code has all of them, and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checks {
    /// No checks: no object can become durable.
    None,
    /// As if all checks led to action.
    Likely,
    /// As if as many did as not.
    Unbiased,
    /// As if few did.
    Unlikely,
    /// As if none ever did: action means to go on in baseline code.
    Deopt,
    /// Each by its counters: the paper's QuickCheck.
    Profiled,
    /// The same, and none at all as long as nothing of the program is durable.
    #[default]
    Quick,
}

impl Checks {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Checks); 7] = [
        ("none", Checks::None),
        ("likely", Checks::Likely),
        ("unbiased", Checks::Unbiased),
        ("unlikely", Checks::Unlikely),
        ("deopt", Checks::Deopt),
        ("profiled", Checks::Profiled),
        ("quick", Checks::Quick),
    ];
}

impl std::str::FromStr for Checks {
    type Err = String;

    fn from_str(s: &str) -> Result<Checks, String> {
        let found = Checks::ALL.iter().find(|(name, _)| *name == s);
        let names = Checks::ALL.map(|(name, _)| name).join(", ");
        found
            .map(|&(_, checks)| checks)
            .ok_or_else(|| format!("no kind of checks {s:?}: {names}"))
    }
}

/// A region file.
#[derive(Clone, Debug)]
pub struct DurableFile {
    /// The file; made if there is none.
    pub path: std::path::PathBuf,
    /// Its medium.
    pub medium: varve_durable::Medium,
    /// Whether all of it is checked before the program begins, which a large region is not otherwise. For a file from an untrusted source, as code
    /// relies on the types of objects.
    pub verify: bool,
}

impl DurableFile {
    /// A file on a kind of medium that only this program creates.
    pub fn new(path: impl Into<std::path::PathBuf>, medium: varve_durable::Medium) -> DurableFile {
        DurableFile {
            path: path.into(),
            medium,
            verify: false,
        }
    }
}

/// Sizes and settings of the stores of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Most bytes of the garbage-collected heap.
    pub heap_max: u64,
    /// Most bytes of a store's linear memories and tables, all together.
    pub linear_max: u64,
    /// Bytes of the nursery in the beginning.
    pub nursery: u64,
    /// Bytes that the nursery may grow to while much of it survives; no less than it begins with.
    pub nursery_max: u64,
    /// Everything is collected when survivors take this many times the live bytes of the last time: more than 1.
    pub heap_growth: f64,
    /// Only the nursery is collected while survivors take less than this number of bytes.
    pub heap_initial: u64,
    /// Bytes of the stack on which compiled code and the host functions that it calls run.
    pub stack: usize,
    /// Which memory objects are in: a plan of [`varve_heap::plans`], `name` or `name:key=value,...`. Without one there is one memory.
    pub plan: Option<String>,
    /// Most fast memory of the heap, bytes, where the machine has less of it than the heap may grow to. Objects without room there go to slow memory.
    pub fast_max: Option<u64>,
    /// Who says how large the nursery is.
    pub sized: NurserySize,
    /// Stores on other threads, with which a plan that samples begins its samples together. Each store of an engine with this takes a
    /// place, and leaves it when it is dropped.
    pub instances: Option<Arc<Instances>>,
    /// Where a store is observed, the weight of an instruction of the program; one of the collector counts once. It stands for instructions that the
    /// program would execute besides: on a slower virtual machine, or for its files and requests. 1 or more.
    pub slower: f64,
    /// Programs are to report intervals of their work under all plans, also those that do not use them:
    /// [`Store::first_interval`](crate::Store::first_interval).
    pub intervals: bool,
    /// The profile of the program's allocation sites, for plans that use one. [`check_profile`](crate::Module::check_profile) checks that it belongs
    /// to the program.
    pub profile: Option<Arc<varve_sites::Profile>>,
    /// The alignment of objects. More than the default, 8 bytes, makes durable regions of more than 8 GiB possible, and all objects
    /// larger: see [`ObjectAlign`].
    pub object_align: ObjectAlign,
    /// Where objects survive the program, if they do.
    pub durable: Option<DurableFile>,
    /// How the code checks whether objects are durable; not at all if it is not given and no objects are.
    pub checks: Option<Checks>,
    /// Count checks in optimized code too, by how they were biased.
    pub count_checks: bool,
    /// Threads that collect; by default the number of cores, at most four. The collector of an observed store always has one.
    pub gc_threads: Option<usize>,
    /// Collect at every allocation and move everything: for tests.
    pub gc_stress: bool,
    /// Code checks for an [interrupt](crate::Interrupt) in each iteration of a loop; without this, only where functions are entered.
    pub interruptible: bool,
    /// Which compilers functions go through.
    pub tier: Tier,
    /// Iterations of loops after which code is hot; a call counts as ten. Tests make it small. More than two billion are two billion.
    pub hot: u32,
    /// Generate optimized code on another thread while the program runs on, and quick code of functions that it is about to call. Without
    /// it, runs are the same every time.
    pub background: bool,
    /// A program whose module exports `varve.outOfMemory` or `varve.stackOverflow`, functions without parameters and results that throw an
    /// exception, gets that exception where the heap or the stack is full. Without this, as without such a function, it ends with a trap.
    pub throw_exhaustion: bool,
    /// A folder where compiled code is kept from run to run, if it is to be; made when there is something to keep. Only this user may be
    /// able to write to it. Code is kept when a store is dropped, and [before that](Config::code_cache_after). It is not kept of stores
    /// that are observed or profiled, have durable objects or checks for them, or a plan of several memories; that it cannot be kept is no
    /// error. It is used by the same build on the same kind of processor for the same modules, made with the same imports in the same order.
    pub code_cache: Option<PathBuf>,
    /// How long new code waits until it is kept, in a program that goes on to allocate, to call the host, or to be compiled.
    pub code_cache_after: Duration,
    /// Where `perf` finds the names of compiled functions.
    pub perf_map: Option<Arc<PerfMap>>,
    /// Where `perf inject --jit` finds compiled functions: their code, names and source lines.
    pub jit_dump: Option<Arc<JitDump>>,
}

impl Config {
    /// The usual [`Config::hot`].
    pub const HOT: u32 = 20_000;

    /// Memory is short: the nursery is what pays, unless the user said how large it is.
    pub fn save_memory(&mut self) {
        if self.sized == NurserySize::Fits {
            self.sized = NurserySize::Pays;
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            heap_max: 2 << 30,
            linear_max: 4 << 30,
            nursery: 4 << 20,
            nursery_max: 32 << 20,
            heap_growth: 2.0,
            heap_initial: 64 << 20,
            stack: 8 << 20,
            plan: None,
            fast_max: None,
            sized: NurserySize::Fits,
            instances: None,
            slower: 1.0,
            intervals: false,
            profile: None,
            object_align: ObjectAlign::default(),
            durable: None,
            checks: None,
            count_checks: false,
            gc_threads: None,
            gc_stress: false,
            interruptible: false,
            tier: Tier::Auto,
            background: std::thread::available_parallelism().is_ok_and(|n| n.get() > 1),
            hot: Config::HOT,
            throw_exhaustion: true,
            code_cache: None,
            code_cache_after: Duration::from_secs(10),
            perf_map: None,
            jit_dump: None,
        }
    }
}

/// Shared by all modules and stores that are used together. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    types: Mutex<Registry>,
    isas: [OnceLock<OwnedTargetIsa>; 2],
    worker: Worker,
}

impl Engine {
    /// An engine with the given settings.
    pub fn new(config: Config) -> Engine {
        Engine {
            inner: Arc::new(Inner {
                config,
                types: Mutex::default(),
                isas: Default::default(),
                worker: Worker::default(),
            }),
        }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The types of all modules. No code calls out while holding this.
    pub(crate) fn types(&self) -> MutexGuard<'_, Registry> {
        self.inner.types.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The code generator.
    pub(crate) fn isa(&self, level: Level) -> Result<OwnedTargetIsa> {
        let cell = &self.inner.isas[level as usize];
        if let Some(isa) = cell.get() {
            return Ok(isa.clone());
        }
        let isa = isa(level)?;
        Ok(cell.get_or_init(|| isa).clone())
    }

    /// The thread that generates code.
    pub(crate) fn worker(&self) -> &Worker {
        &self.inner.worker
    }

    /// How persistence checks are compiled; none if they are not.
    pub(crate) fn checks(&self) -> Option<Checks> {
        let config = self.config();
        let default = config.durable.as_ref().map(|_| Checks::default());
        config.checks.or(default).filter(|&c| c != Checks::None)
    }

    /// Whether both are the same engine.
    pub fn same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("config", self.config())
            .finish_non_exhaustive()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Config::default())
    }
}
