//! How a store's heap is set up.

use super::region::REGION;
use crate::engine::Config;
use crate::error::{Error, Result};
use crate::types::{Canonical, Composite, HOST_TYPE, TypeIndex};
use varve_heap::{Shape, Shapes, Stress};

pub(crate) use varve_heap::{Heap, Mutator};

/// A heap with the store's region right before its base.
pub(crate) fn new(config: &Config) -> Result<Heap> {
    let default = varve_heap::Config::default();
    let config = varve_heap::Config {
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
        ..default
    };
    Heap::new(config, Shapes::new()).map_err(|e| Error::System(e.to_string()))
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
