//! The translator's knowledge of the instance whose function it compiles.

use super::feedback::FeedbackTable;
use super::resume::Points;
use crate::engine::Checks;
use crate::module::ModuleInner;
use crate::store::durable::Durable;
use crate::store::heap::Heap;
use crate::store::instance::InstanceData;
use crate::store::linear::{LinearMemory, TableData};
use crate::store::observe::Recording;
use crate::store::region::{FuncRecord, Place, Region};
use crate::store::sites::{Origin, Sites, temperature};
use crate::store::{FuncData, FuncKind};
use crate::types::{FuncType, Registry};
use rustc_hash::FxHashSet as HashSet;
use varve_heap::{ObjectAlign, Sampler};

/// Assumptions of the translation, which are checked at its end.
#[derive(Clone)]
pub(crate) struct Assumptions {
    /// Nothing is durable yet.
    pub nothing_durable: bool,
    /// Loops, by their offsets, of which a later iteration has stores that the first one lacks.
    pub changing: HashSet<u32>,
}

/// The part of the store that translation reads, and the few lists that it adds to. Code that is kept from run to run depends on it:
/// `store/tier/depends.rs` has to know all that gets into code.
pub(crate) struct Env<'a> {
    pub module: &'a ModuleInner,
    pub instance: &'a InstanceData,
    pub instance_id: u32,
    pub types: &'a Registry,
    pub funcs: &'a [FuncData],
    pub tables: &'a [TableData],
    pub memories: &'a [LinearMemory],
    pub sites: &'a mut Sites,
    pub region: &'a mut Region,
    pub feedback: &'a mut FeedbackTable,
    pub points: &'a mut Points,
    /// Where accesses of compiled code are recorded, if they are.
    pub recording: Option<&'a Recording>,
    /// How far from an object its counters are, if accesses are counted.
    pub counters: Option<i64>,
    /// How persistence checks are compiled, if they are.
    pub checks: Option<Checks>,
    pub assumed: &'a Assumptions,
    /// Where optimized code counts them, if it does.
    pub check_counters: Option<Place>,
    /// The durable region, if there is one.
    pub durable: Option<&'a Durable>,
    /// Asked for the temperature of allocation sites.
    pub heap: &'a Heap,
    /// The alignment of its objects.
    pub align: ObjectAlign,
    /// Whether code records the running function, for a sampler.
    pub samples: bool,
    /// Whether loops check for an interrupt of the program.
    pub interruptible: bool,
}

impl<'a> Env<'a> {
    /// The body of a function of the module.
    pub fn body(&self, index: u32) -> wasmparser::FunctionBody<'a> {
        let module: &'a ModuleInner = self.module;
        let range = module.bodies[(index - module.imported_funcs) as usize].clone();
        let reader =
            wasmparser::BinaryReader::new(&module.bytes[range.clone()], range.start as u64);
        wasmparser::FunctionBody::new(reader)
    }

    /// The number in the module of one of its functions.
    pub fn index_of(&self, func: u32) -> u32 {
        match self.funcs[func as usize].kind {
            FuncKind::Wasm { index, .. } => index,
            FuncKind::Host(..) => unreachable!("translated functions have code"),
        }
    }

    /// The type of a function of the module.
    pub fn func_type(&self, index: u32) -> FuncType {
        self.types.func(self.module.funcs[index as usize]).clone()
    }

    /// The number of the allocation site at these offsets of a function: see [`Origin::Code`].
    pub fn site(&mut self, func: u32, at: Vec<u32>) -> u32 {
        let FuncKind::Wasm { index, .. } = self.funcs[func as usize].kind else {
            return 0;
        };
        let at: Box<[u32]> = at.into();
        let origin = Origin::Code {
            func,
            at: at.clone(),
        };
        if let Some(site) = self.sites.known(&origin) {
            return site;
        }
        let temperature = match self.heap.asks_about_sites() {
            true => {
                let key = self.sites.key((self.module, index), func, &at, self.types);
                temperature(self.heap, key)
            }
            false => 0,
        };
        let site = self.sites.add(origin, temperature);
        if let Some(warmth) = self.heap.plan().sampler().and_then(Sampler::stacks) {
            warmth.born_in(site, func);
        }
        site
    }

    /// Whether the call that led to a function's allocation matters.
    pub fn attributes(&self) -> bool {
        self.counters.is_some() || self.heap.asks_about_sites()
    }

    /// The function whose record is at a place: its number in the store.
    pub fn func_at(&self, place: Place) -> u32 {
        // SAFETY: places of functions are of records.
        unsafe { (*self.region.address::<FuncRecord>(place)).id }
    }

    /// The value of an immutable global.
    pub fn constant(&self, place: Place) -> u64 {
        // SAFETY: places of globals hold 8 bytes.
        unsafe { self.region.address::<u64>(place).read() }
    }
}
