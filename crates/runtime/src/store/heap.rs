//! A store's heap: how it is set up, and what the store asks of it whatever its plan and observer are.

use super::observe::{Bound, Recording, Watch};
use super::region::REGION;
use crate::engine::Config;
use crate::error::{Error, Result};
use crate::types::{Canonical, Composite, HOST_TYPE, TypeIndex};
use std::sync::Arc;
use varve_heap::plan::Places;
use varve_heap::{
    Backing, Kind, Observer, OutOfMemory, Ref, Roots, Shape, Shapes, Site, SpaceRanges, SpaceUse,
    Stats, Stress, Unobserved, plans,
};

pub(crate) use varve_heap::Mutator;

/// A heap with any plan and any observer. Compiled code allocates and stores by itself; what comes here is slow anyhow.
pub(crate) type Heap = dyn Managed;

/// See [`Heap`].
pub(crate) trait Managed {
    fn base_address(&self) -> u64;
    fn attach(&mut self) -> Mutator;
    fn shapes_mut(&mut self) -> &mut Shapes;
    fn alloc_struct(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        site: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory>;
    fn alloc_array(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        site: u32,
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
    fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots);
    fn set_log(&mut self, log: Option<varve_heap::Log>);
    fn stats(&self) -> &Stats;
    fn spaces(&self) -> Vec<SpaceUse>;
    fn ranges(&self) -> Vec<SpaceRanges>;
    /// Why memory that the plan asked for was not there, if it was not.
    fn failure(&self) -> Option<String>;
    /// Whether compiled code has to note each write to an object in its header.
    fn monitors(&self) -> bool;
    /// Whether the plan may want to know where objects are born.
    fn asks_about_sites(&self) -> bool;
    /// What compiled code sets in the temperature byte of objects that are born at a site.
    fn temperature(&self, site: Site<'_>) -> u8;
}

impl<P: Places, O: Observer> Managed for varve_heap::Heap<P, O> {
    fn base_address(&self) -> u64 {
        self.base_address()
    }

    fn attach(&mut self) -> Mutator {
        self.attach()
    }

    fn shapes_mut(&mut self) -> &mut Shapes {
        self.shapes_mut()
    }

    fn alloc_struct(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        site: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        self.alloc_struct(mutator, ty, site, roots)
    }

    fn alloc_array(
        &mut self,
        mutator: &mut Mutator,
        ty: u32,
        site: u32,
        len: u32,
        roots: &mut dyn Roots,
    ) -> Result<Ref, OutOfMemory> {
        self.alloc_array(mutator, ty, site, len, roots)
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

    fn collect(&mut self, mutator: &mut Mutator, kind: Kind, roots: &mut dyn Roots) {
        self.collect(mutator, kind, roots);
    }

    fn set_log(&mut self, log: Option<varve_heap::Log>) {
        self.set_log(log);
    }

    fn stats(&self) -> &Stats {
        self.stats()
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
}

/// A heap with the store's region right before its base. Without a plan it is in one memory.
pub(crate) fn new(
    config: &Config,
    recording: Option<&Arc<Recording>>,
    backing: Option<Box<dyn Backing>>,
) -> Result<Box<Heap>> {
    let default = varve_heap::Config::default();
    let threads = match recording {
        Some(_) => 1,
        None => default.threads,
    };
    let settings = varve_heap::Config {
        max: config.heap_max,
        nursery: config.nursery,
        nursery_max: default.nursery_max.max(config.nursery),
        stress: if config.gc_stress {
            Stress::Full(1)
        } else {
            Stress::Off
        },
        poison: config.gc_stress,
        before: REGION as u64,
        threads,
        backing: match recording {
            Some(r) => Some(Box::new(Bound(Arc::clone(r)))),
            None => backing,
        },
        ..default
    };
    let failed = |e: varve_heap::ConfigError| Error::System(e.to_string());
    let plan = match (&config.plan, recording) {
        (Some(spec), _) => plans::by_name(spec, None),
        (None, Some(_)) => plans::by_name("dram", None),
        (None, None) => {
            let heap = varve_heap::Heap::new(settings, Shapes::new()).map_err(failed)?;
            return Ok(Box::new(heap));
        }
    };
    let plan = plan.map_err(|e| Error::usage(e.to_string()))?.plan;
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
