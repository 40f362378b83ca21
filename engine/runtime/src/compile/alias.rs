//! Alias regions of memory accesses: they keep the optimizer from mistaking a store into one field for one into another.
//!
//! Each byte belongs to one region, for all code that touches it; only calls change what is in all of them. A field belongs
//! to the topmost type that has it, so that accesses through a type and its supertypes agree.

use super::isa::Level;
use super::translate::Translator;
use super::traps::trap_code;
use crate::error::TrapKind;
use crate::module::topmost;
use crate::store::region::Place;
use crate::types::TypeIndex;
use cranelift_codegen::ir::{AliasRegion, AliasRegionData, MemFlagsData};

/// A region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Region {
    /// Where references are spilled.
    Spills,
    /// The store's context without its mutator.
    Context,
    Mutator,
    /// The entries of the write barrier.
    Remembered,
    Cards,
    Headers,
    /// Of a profile.
    Counters,
    Lengths,
    /// Fields of exceptions.
    Exceptions,
    Field(TypeIndex, u32),
    Elements(TypeIndex),
    Global(Place),
    Memory(u32),
}

/// The number of [`Region::Spills`], which comes first.
const SPILLS: u32 = 0;

fn data(number: u32) -> AliasRegionData {
    AliasRegionData {
        user_id: number,
        description: "".into(),
    }
}

/// The region of spilled references, in code that has regions.
pub(super) fn of_spills(level: Level) -> Option<AliasRegionData> {
    (level == Level::Optimizing).then(|| data(SPILLS))
}

impl Translator<'_, '_> {
    /// References that the compiler itself spills have a region of their own.
    pub(super) fn begin_regions(&mut self) {
        if self.job.level == Level::Optimizing {
            self.regions.insert(Region::Spills, SPILLS);
        }
    }

    fn alias_region(&mut self, region: Region) -> Option<AliasRegion> {
        if self.job.level == Level::Baseline {
            return None;
        }
        let next = self.regions.len() as u32;
        let number = *self.regions.entry(region).or_insert(next);
        Some(self.b.func.dfg.alias_regions.insert(data(number)))
    }

    /// For accesses that cannot fault.
    pub(super) fn trusted(&mut self, region: Region) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(self.alias_region(region))
    }

    /// For accesses that do not fault, to what has a smaller alignment than its size.
    pub(super) fn unaligned(&mut self, region: Region) -> MemFlagsData {
        MemFlagsData::new()
            .with_notrap()
            .with_alias_region(self.alias_region(region))
    }

    /// For accesses that fault, which means this trap.
    pub(super) fn trapping(&mut self, region: Region, kind: TrapKind) -> MemFlagsData {
        MemFlagsData::new()
            .with_trap_code(Some(trap_code(kind)))
            .with_alias_region(self.alias_region(region))
    }

    /// The region of a struct's field.
    pub(super) fn field_region(&self, ty: TypeIndex, field: u32) -> Region {
        let t = self.env.types.get(ty);
        if t.opaque {
            return Region::Exceptions;
        }
        Region::Field(topmost(self.env.types, ty, field), field)
    }

    /// The region of an array's elements.
    pub(super) fn element_region(&self, ty: TypeIndex) -> Region {
        Region::Elements(self.env.types.get(ty).display[0])
    }
}
