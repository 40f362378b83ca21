//! A store's heap: its setup, and its interface to the store for any plan and observer.

use super::observe::{Bound, Recording, Watch};
use super::region::REGION;
use crate::engine::Config;
use crate::error::{Error, Result};
use crate::types::{Canonical, Composite, HOST_TYPE, TypeIndex};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use varve_heap::plan::Places;
use varve_heap::record::Recorder;
use varve_heap::{
    Backing, Dram, Interval, Kind, Observer, OutOfMemory, Plan, Ref, ReportError, Roots, Shape,
    Shapes, Site, SpaceRanges, SpaceUse, Stats, Stress, Tier, Unobserved, plans,
};

pub(crate) use varve_heap::Mutator;

/// A heap with any plan and any observer. Compiled code allocates and stores by itself; calls that come here are slow
/// anyhow.
pub(crate) type Heap = dyn Managed;

/// See [`Heap`].
pub(crate) trait Managed {
    fn base_address(&self) -> u64;
    fn attach(&mut self) -> Mutator;
    fn shapes_mut(&mut self) -> &mut Shapes;
    /// An object with this header; `len` is for arrays.
    fn alloc(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        len: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory>;
    fn alloc_host(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        handle: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory>;
    /// See [`varve_heap::Heap::lend`].
    fn lend(&mut self, mutator: &mut Mutator, open: bool) -> bool;
    fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots);
    /// Collects everything, and gives the durable objects that are referred to.
    fn collect_durable(&mut self, mutator: &mut Mutator, roots: &mut dyn Roots) -> Vec<Ref>;
    fn set_log(&mut self, log: Option<varve_heap::Log>);
    /// Statistics of collections, with the objects born since the last one.
    fn stats_now(&self, mutator: &Mutator) -> Stats;
    fn spaces(&self) -> Vec<SpaceUse>;
    fn ranges(&self) -> Vec<SpaceRanges>;
    /// Why memory that the plan asked for was not there, if it was not.
    fn failure(&self) -> Option<String>;
    /// Whether compiled code has to note each write to an object in its header.
    fn monitors(&self) -> bool;
    /// Whether the plan may want to know where objects are born.
    fn asks_about_sites(&self) -> bool;
    /// The temperature byte that compiled code sets in objects that are born at a site.
    fn temperature(&self, site: Site<'_>) -> u8;
    fn plan(&self) -> &dyn Plan;
    /// The temperature of objects that the programmer marked, if the plan takes marks: it uses nothing else then.
    fn marked(&self) -> u8 {
        let key = varve_sites::Key::default();
        self.temperature(Site {
            key: &key,
            hinted: true,
        })
    }
    /// See [`varve_heap::Heap::heats`].
    fn heats(&mut self, object: Ref);
    /// See [`varve_heap::Heap::interval`].
    fn interval(
        &mut self,
        mutator: &mut Mutator,
        interval: Interval,
        roots: &mut dyn Roots,
        now: &dyn Fn() -> Duration,
    ) -> Result<Option<Tier>, ReportError>;
    /// The same heap, if it is one that counts accesses.
    fn profiled(&self) -> Option<&Profiled>;
}

/// A heap that counts accesses, in one memory.
pub(crate) type Profiled = varve_heap::Heap<Dram, Recorder>;

impl<P: Places + 'static, O: Observer + 'static> Managed for varve_heap::Heap<P, O> {
    fn base_address(&self) -> u64 {
        self.base_address()
    }

    fn attach(&mut self) -> Mutator {
        self.attach()
    }

    fn shapes_mut(&mut self) -> &mut Shapes {
        self.shapes_mut()
    }

    fn alloc(
        &mut self,
        mutator: &mut Mutator,
        header: u64,
        len: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        self.alloc(mutator, header, len, roots)
    }

    fn alloc_host(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        handle: u64,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        self.alloc_host(mutator, ty, handle, roots)
    }

    fn lend(&mut self, mutator: &mut Mutator, open: bool) -> bool {
        self.lend(mutator, open)
    }

    fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots) {
        self.collect(mutator, kind, roots);
    }

    fn collect_durable(&mut self, mutator: &mut Mutator, roots: &mut dyn Roots) -> Vec<Ref> {
        self.collect_durable(mutator, roots).into_refs()
    }

    fn set_log(&mut self, log: Option<varve_heap::Log>) {
        self.set_log(log);
    }

    fn stats_now(&self, mutator: &Mutator) -> Stats {
        self.stats_now(mutator)
    }

    fn spaces(&self) -> Vec<SpaceUse> {
        self.spaces()
    }

    fn ranges(&self) -> Vec<SpaceRanges> {
        self.ranges()
    }

    fn failure(&self) -> Option<String> {
        self.failure()
    }

    fn monitors(&self) -> bool {
        self.plan().monitors()
    }

    fn asks_about_sites(&self) -> bool {
        P::SEVERAL
    }

    fn temperature(&self, site: Site<'_>) -> u8 {
        self.temperature(site)
    }

    fn plan(&self) -> &dyn Plan {
        self.plan()
    }

    fn heats(&mut self, object: Ref) {
        self.heats(object);
    }

    fn interval(
        &mut self,
        mutator: &mut Mutator,
        interval: Interval,
        roots: &mut dyn Roots,
        now: &dyn Fn() -> Duration,
    ) -> Result<Option<Tier>, ReportError> {
        self.interval(mutator, interval, roots, now)
    }

    fn profiled(&self) -> Option<&Profiled> {
        (self as &dyn Any).downcast_ref()
    }
}

/// The observer of a store.
pub(crate) enum Watched {
    /// None.
    Not,
    /// Every access is recorded for a sink.
    Recorded(Arc<Recording>),
    /// Accesses are counted by allocation site.
    Profiled,
    /// A backing binds the memory of spaces on this machine.
    Placed(Box<dyn Backing>),
}

impl Watched {
    pub fn recording(&self) -> Option<&Arc<Recording>> {
        match self {
            Watched::Recorded(recording) => Some(recording),
            Watched::Not | Watched::Profiled | Watched::Placed(_) => None,
        }
    }
}

/// A heap with the store's region right before its base. Without a plan it is in one memory.
pub(crate) fn new(config: &Config, watched: Watched) -> Result<Box<Heap>> {
    let recording = watched.recording().cloned();
    let recording = recording.as_ref();
    let profiled = matches!(watched, Watched::Profiled);
    let default = varve_heap::Config::default();
    let threads = match recording {
        Some(_) => 1,
        None => config.gc_threads.unwrap_or(default.threads),
    };
    let settings = varve_heap::Config {
        max: config.heap_max,
        nursery: config.nursery,
        nursery_max: config.nursery_max.max(config.nursery),
        growth: config.heap_growth,
        initial: config.heap_initial,
        stress: if config.gc_stress {
            Stress::Full(1)
        } else {
            Stress::Off
        },
        poison: config.gc_stress,
        fast_max: config.fast_max,
        sized: config.sized,
        instances: config.instances.clone(),
        before: REGION as u64,
        durable: config.durable.is_some(),
        align: config.object_align,
        threads,
        backing: match watched {
            Watched::Recorded(recording) => Some(Box::new(Bound(recording))),
            Watched::Placed(backing) => Some(backing),
            Watched::Not | Watched::Profiled => None,
        },
        ..default
    };
    let failed = |e: varve_heap::ConfigError| match e {
        varve_heap::ConfigError::Reserve { .. } => Error::System(e.to_string()),
        _ => Error::usage(e.to_string()),
    };
    if profiled {
        if config.plan.is_some() {
            let why = "a program is profiled in one memory: leave the heap plan out";
            return Err(Error::usage(why));
        }
        let recorder = Recorder::new(&settings).map_err(failed)?;
        let heap = Profiled::with(settings, Shapes::new(), Dram, recorder).map_err(failed)?;
        return Ok(Box::new(heap));
    }
    let plan = match (&config.plan, recording) {
        (Some(spec), _) => plans::by_name(spec, config.profile.as_deref()),
        (None, Some(_)) => plans::by_name("dram", None),
        (None, None) => {
            let heap = varve_heap::Heap::new(settings, Shapes::new()).map_err(failed)?;
            return Ok(Box::new(heap));
        }
    };
    let chosen = plan.map_err(|e| Error::usage(e.to_string()))?;
    if let Some(recording) = recording {
        recording.set_code(chosen.code);
    }
    let plan = chosen.plan;
    Ok(match recording {
        None => Box::new(
            varve_heap::Heap::planned(settings, Shapes::new(), plan, Unobserved).map_err(failed)?,
        ),
        Some(r) => {
            let watch = Watch(Arc::clone(r));
            Box::new(
                varve_heap::Heap::planned(settings, Shapes::new(), plan, watch).map_err(failed)?,
            )
        }
    })
}

/// Tells the heap about a type: its number is the next one.
pub(crate) fn add_type(heap: &mut Heap, index: TypeIndex, ty: &Canonical) -> Result<()> {
    let name = format!("type {index}");
    let shape = match &ty.ty.composite {
        _ if index == HOST_TYPE => Shape::host("host value"),
        // Functions are no objects, but take part in the numbering.
        Composite::Func(_) => Shape::structure(name, crate::types::HEADER, []),
        Composite::Array(e) if e.storage.is_managed() => Shape::ref_array(name),
        Composite::Array(e) => Shape::array(name, e.storage.bytes()),
        Composite::Struct(fields) => {
            let refs = fields
                .iter()
                .zip(&ty.layout.offsets)
                .filter(|(f, _)| f.storage.is_managed());
            let refs: Vec<u32> = refs.map(|(_, &offset)| offset).collect();
            Shape::structure(name, ty.layout.size, refs)
        }
    };
    let number = heap
        .shapes_mut()
        .add(shape)
        .map_err(|e| Error::usage(e.to_string()))?;
    debug_assert_eq!(number, index);
    Ok(())
}
