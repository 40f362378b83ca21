//! Stores: the state of running programs.

pub(crate) mod collect;
pub(crate) mod constexpr;
pub(crate) mod durable;
mod exhausted;
#[cfg(test)]
mod far;
mod func;
pub(crate) mod heap;
mod host_values;
pub(crate) mod instance;
mod interrupt;
mod intervals;
pub(crate) mod linear;
pub(crate) mod objects;
pub(crate) mod observe;
pub(crate) mod region;
pub(crate) mod root;
mod sampler;
pub(crate) mod sites;
mod slower;
mod stack;
mod strings;
mod tier;
mod vm;

pub(crate) use collect::MARKED;
pub use durable::{CheckStats, SiteStats};
pub use func::Leaf;
pub(crate) use func::{FuncData, FuncKind, HostFunction, Inline};
pub use interrupt::Interrupt;
pub use observe::{Clock, Part, Sink};
pub use tier::CompilerStats;
pub(crate) use vm::Vm;

use crate::engine::Engine;
use crate::error::Result;
use heap::Watched;
use observe::Recording;
use sites::Origin;
use std::sync::Arc;
use varve_heap::Backing;
use varve_sites::{Key, Profile};

/// Instances, objects and functions that know each other, with data of the host.
pub struct Store<T> {
    inner: Box<StoreInner<T>>,
}

/// `vm` comes first, so that host functions find the data behind the `Vm` that compiled code names.
#[repr(C)]
pub(crate) struct StoreInner<T> {
    pub vm: Vm,
    pub data: T,
}

impl<T> Store<T> {
    /// A store with the host's data.
    ///
    /// # Errors
    /// If this machine is not one that the engine generates code for, or gives no memory.
    pub fn new(engine: &Engine, data: T) -> Result<Store<T>> {
        Store::with(engine, data, Watched::Not)
    }

    /// A store whose program's accesses to data, and its collector's, are reported to `sink` in their order. It collects
    /// on one thread; if nothing is compiled in the background, the accesses are the same in every run. Durable objects are in memory of the
    /// slow tier, and their write-backs and fences are reported, and not executed.
    ///
    /// # Errors
    /// As [`Store::new`].
    pub fn observed(engine: &Engine, data: T, sink: Box<dyn Sink>) -> Result<Store<T>> {
        Store::with(
            engine,
            data,
            Watched::Recorded(Arc::new(Recording::new(sink, engine.config().slower))),
        )
    }

    /// A store that counts, exactly, its program's accesses to the objects of each allocation site: see [`Store::profile`].
    /// It runs in baseline and optimized code, and its objects are in one memory.
    ///
    /// # Errors
    /// As [`Store::new`], and if the engine has a heap plan.
    pub fn profiled(engine: &Engine, data: T) -> Result<Store<T>> {
        Store::with(engine, data, Watched::Profiled)
    }

    /// A store whose heap's plan is given memory by `backing`, which binds addresses to kinds of memory. If that fails, the program ends with
    /// [`Error::System`](crate::Error::System) at its next collection.
    ///
    /// # Errors
    /// As [`Store::new`], and if the first memory cannot be given.
    pub fn placed(engine: &Engine, data: T, backing: Box<dyn Backing>) -> Result<Store<T>> {
        Store::with(engine, data, Watched::Placed(backing))
    }

    fn with(engine: &Engine, data: T, watched: Watched) -> Result<Store<T>> {
        let vm = Vm::new(engine, watched)?;
        let mut inner = Box::new(StoreInner { vm, data });
        // From now on the store's address does not change.
        let vm: *mut Vm = &raw mut inner.vm;
        inner.vm.set_address(vm);
        Ok(Store { inner })
    }

    pub(crate) fn vm(&self) -> &Vm {
        &self.inner.vm
    }

    /// The host's data.
    pub fn data(&self) -> &T {
        &self.inner.data
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.inner.data
    }

    /// The engine of the store.
    pub fn engine(&self) -> &Engine {
        &self.inner.vm.engine
    }

    /// Statistics of the compilers so far.
    pub fn compiler_stats(&self) -> CompilerStats {
        self.inner.vm.code.tiers.stats
    }

    /// The allocation sites of functions that were called so far, by their names in profiles.
    pub fn allocation_sites(&mut self) -> Vec<Key> {
        let vm = &mut self.inner.vm;
        let named = vm.named_sites();
        let all = named.into_iter().zip(vm.sites.origins());
        let called = all.filter(|(_, origin)| match origin {
            Origin::Code { func, .. } => !vm.is_ahead(*func),
            Origin::Beginning { .. } => true,
        });
        called.filter_map(|(site, _)| Some(site?.0)).collect()
    }

    /// The counts so far of a [profiled](Store::profiled) store: all allocation sites that code was compiled for,
    /// those without objects too. `program` is the name of the profiled program. None of a store that is not profiled.
    pub fn profile(&mut self, program: &str) -> Option<Profile> {
        self.inner.vm.profile(program)
    }

    /// Has traps and stacks of exceptions name lines of the source: `lines` gives file and line, such as `Main.java:12`, by the byte offset of an
    /// instruction in the module. It is asked for the calls of a program that ends so, and
    /// for all code with a [`JitDump`](crate::JitDump). Of a store with several modules it
    /// cannot know which one the offset is in.
    pub fn source_lines(&mut self, lines: impl Fn(u64) -> Option<String> + Send + 'static) {
        self.inner.vm.lines = Some(Box::new(lines));
    }

    /// The frames of a [`Caller::stack`] of this store, with lines of the source as far as they are known.
    pub(crate) fn frames_at(&self, stack: &[usize]) -> Vec<crate::FrameInfo> {
        let mut frames = crate::helpers::traps::frames_at(&self.inner.vm, stack);
        self.inner.vm.add_lines(&mut frames);
        frames
    }

    /// Has `log` called after each collection from now on. A record shows itself as one line.
    pub fn on_collection(&mut self, log: impl FnMut(&crate::GcRecord) + Send + 'static) {
        self.inner.vm.heap_mut().set_log(Some(Box::new(log)));
    }

    /// Ends the store, and closes its durable region in order. A store that is dropped does the same, and discards errors.
    ///
    /// # Errors
    /// If the region's medium fails. All that was in it before is found when it is opened next.
    pub fn close(mut self) -> Result<()> {
        self.inner.vm.close_region()
    }

    /// Statistics of collections so far: counts, pauses, bytes, with the objects born after the last one. They are displayed as a small table.
    pub fn gc_stats(&self) -> crate::GcStats {
        self.inner.vm.gc_stats()
    }

    /// The spaces of the heap, with the memory that each is in.
    pub fn gc_spaces(&self) -> Vec<crate::GcSpace> {
        self.inner.vm.heap().spaces()
    }

    /// Has `log` called with each phase that a plan which samples enters from now on, by the program's clock. An entry shows
    /// itself as one line.
    pub fn on_phase(&mut self, log: impl FnMut(&crate::PimaEntry) + Send + 'static) {
        self.inner.vm.intervals.log = Some(Box::new(log));
    }

    /// Every phase that a plan which samples has entered; none under other plans.
    pub fn phases(&self) -> &[crate::PimaEntry] {
        self.inner.vm.phases()
    }

    /// When the program's first interval had ended, since the store was made, or in the observer's time; none if it reports
    /// none.
    pub fn first_interval(&self) -> Option<std::time::Duration> {
        self.inner.vm.intervals.first
    }

    /// Statistics of the sampler of a sampling plan; none under other plans.
    pub fn warmth(&self) -> Option<varve_heap::warm::WarmStats> {
        let sampling = self.inner.vm.sampling.as_ref();
        sampling.map(|sampling| sampling.warmth.stats())
    }

    /// The input that the plan needs and the program has not reported, in a line, if any: marks at allocation sites, intervals.
    pub fn untold(&self) -> Option<String> {
        self.inner.vm.untold()
    }

    /// Where those spaces and the collector's tables are.
    pub fn gc_ranges(&self) -> Vec<crate::GcRanges> {
        self.inner.vm.heap().ranges()
    }

    /// The clock of the observer of accesses; the host's without an observer.
    pub fn clock(&self) -> Clock {
        Clock::of(self.inner.vm.recording.clone())
    }

    /// The observer's time when all accesses so far are done; none without an observer.
    pub fn observed_time(&self) -> Option<std::time::Duration> {
        let recording = self.inner.vm.recording.as_ref();
        recording.map(|recording| recording.now())
    }

    /// Passes all buffered accesses to the observer.
    ///
    /// # Errors
    /// If the observer takes no more accesses.
    pub fn tell(&mut self) -> Result<()> {
        self.inner.vm.tell()
    }

    /// Groups stores into durable objects: they survive from the next [`Store::commit_durable`] on, all of it or nothing, and not from the
    /// end of each operation on. So many requests share one wait for the medium, and their answers wait for it. Pending stores are committed when
    /// grouping ends. Only a region in an ordinary file that is synced at each commit ([`Medium::File`](crate::Medium::File) without an interval)
    /// waits for its medium so long: any other goes on as it is.
    ///
    /// # Errors
    /// As [`Store::commit_durable`].
    pub fn group_durable(&mut self, grouped: bool) -> Result<()> {
        self.inner.vm.group_durable(grouped)
    }

    /// Has all that was stored into durable objects be in the medium. Does nothing if there is no region. A failure-atomic region that is open is
    /// rolled back after a crash, unless its end is committed too.
    ///
    /// # Errors
    /// If the medium fails: nothing is stored any more then.
    pub fn commit_durable(&mut self) -> Result<()> {
        self.inner.vm.commit_durable()
    }

    /// Whether anything that was stored into durable objects waits for [`Store::commit_durable`].
    pub fn uncommitted(&self) -> bool {
        self.inner.vm.uncommitted()
    }

    /// Collects all garbage now.
    ///
    /// # Errors
    /// If the heap is full even so.
    pub fn gc(&mut self) -> Result<()> {
        self.inner.vm.collect()
    }
}

/// A store that is borrowed for an operation.
pub struct StoreContextMut<'a, T> {
    inner: &'a mut StoreInner<T>,
}

impl<T> StoreContextMut<'_, T> {
    pub(crate) fn vm(&mut self) -> &mut Vm {
        &mut self.inner.vm
    }

    pub(crate) fn vm_ptr(&mut self) -> *mut Vm {
        (self.inner as *mut StoreInner<T>).cast()
    }

    /// The host's data.
    pub fn data(&self) -> &T {
        &self.inner.data
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.inner.data
    }
}

/// Whatever gives access to a store: the store itself, a [`Caller`], a [`RootScope`](root::RootScope).
pub trait AsContextMut {
    /// The host's data in the store.
    type Data;
    /// Borrows the store.
    fn as_context_mut(&mut self) -> StoreContextMut<'_, Self::Data>;
}

impl<T> AsContextMut for Store<T> {
    type Data = T;
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut {
            inner: &mut self.inner,
        }
    }
}

impl<T> AsContextMut for StoreContextMut<'_, T> {
    type Data = T;
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut { inner: self.inner }
    }
}

impl<C: AsContextMut> AsContextMut for &mut C {
    type Data = C::Data;
    fn as_context_mut(&mut self) -> StoreContextMut<'_, C::Data> {
        (**self).as_context_mut()
    }
}

/// The store as a host function sees it.
pub struct Caller<'a, T> {
    inner: &'a mut StoreInner<T>,
}

impl<T> Caller<'_, T> {
    /// # Safety
    /// `vm` is the first field of a `StoreInner<T>` that no other code uses while the result lives.
    pub(crate) unsafe fn new(vm: *mut Vm) -> Self {
        // SAFETY: as this function.
        let inner = unsafe { &mut *vm.cast::<StoreInner<T>>() };
        Caller { inner }
    }

    /// The host's data.
    pub fn data(&self) -> &T {
        &self.inner.data
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.inner.data
    }

    /// The bytes of a memory, and the host's data, at once.
    ///
    /// # Errors
    /// If the memory is of another store.
    pub fn memory_and_data(&mut self, memory: crate::Memory) -> Result<(&mut [u8], &mut T)> {
        crate::extern_::same_store(memory.store, self.inner.vm.id)?;
        let inner = &mut *self.inner;
        Ok((
            inner.vm.memories[memory.id as usize].bytes_mut(),
            &mut inner.data,
        ))
    }

    /// Whether accesses are observed.
    pub(crate) fn is_observed(&self) -> bool {
        self.inner.vm.recording.is_some()
    }

    /// Records a copy between a file and a linear memory.
    pub(crate) fn observe_file(&self, memory: crate::Memory, moved: &observe::Moved) {
        self.inner.vm.observe_file(memory.id, moved);
    }

    /// The calls of compiled code that led here, innermost first; not beyond the host function that called it, and at most 64.
    pub fn frames(&mut self) -> Vec<crate::FrameInfo> {
        // SAFETY: a caller exists while compiled code waits for a host function.
        unsafe { crate::helpers::traps::frames(&self.inner.vm) }
    }

    /// The same as addresses in code, which are cheap: [`Store::frames_at`] makes frames of them.
    pub(crate) fn stack(&mut self) -> Box<[usize]> {
        // SAFETY: as `frames`.
        unsafe { crate::helpers::traps::stack(&self.inner.vm) }
    }

    /// The calling instance's export of this name.
    pub fn get_export(&mut self, name: &str) -> Option<crate::Extern> {
        let instance = self.inner.vm.calling_instance()?;
        self.inner.vm.export(instance, name)
    }
}

impl<T> AsContextMut for Caller<'_, T> {
    type Data = T;
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut { inner: self.inner }
    }
}
