//! The engine: what all modules and stores share.

use crate::types::Registry;
use std::sync::{Arc, Mutex, MutexGuard};

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
        Config { heap_max: 2 << 30, nursery: 4 << 20, stack: 8 << 20, gc_stress: false }
    }
}

/// Shared by all modules and stores that are used together. Clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    types: Mutex<Registry>,
}

impl Engine {
    /// An engine with the given settings.
    pub fn new(config: Config) -> Engine {
        Engine { inner: Arc::new(Inner { config, types: Mutex::default() }) }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The types of all modules. Nobody calls out while holding this.
    pub(crate) fn types(&self) -> MutexGuard<'_, Registry> {
        self.inner.types.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether both are the same engine.
    pub fn same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Config::default())
    }
}
