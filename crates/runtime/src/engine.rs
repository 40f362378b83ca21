//! The engine: what all modules and stores share.

use crate::compile::isa::{Tier, isa};
use crate::error::Result;
use crate::types::Registry;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Sizes and settings of the stores of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Most bytes of the garbage-collected heap.
    pub heap_max: u64,
    /// Bytes of the nursery.
    pub nursery: u64,
    /// Bytes of the stack on which compiled code and the host functions that it calls run.
    pub stack: usize,
    /// Collect at every allocation and move everything: for tests.
    pub gc_stress: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            heap_max: 2 << 30,
            nursery: 4 << 20,
            stack: 8 << 20,
            gc_stress: false,
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
    isa: OnceLock<OwnedTargetIsa>,
}

impl Engine {
    /// An engine with the given settings.
    pub fn new(config: Config) -> Engine {
        Engine {
            inner: Arc::new(Inner {
                config,
                types: Mutex::default(),
                isa: OnceLock::new(),
            }),
        }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The types of all modules. Nobody calls out while holding this.
    pub(crate) fn types(&self) -> MutexGuard<'_, Registry> {
        self.inner.types.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The code generator.
    pub(crate) fn isa(&self) -> Result<OwnedTargetIsa> {
        if let Some(isa) = self.inner.isa.get() {
            return Ok(isa.clone());
        }
        let isa = isa(Tier::Baseline)?;
        Ok(self.inner.isa.get_or_init(|| isa).clone())
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
