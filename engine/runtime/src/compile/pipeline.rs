//! Loads and stores in compiled code: stages in a fixed order, each a function of the [`Slot`].
//!
//! | load | store | stage | see |
//! |---|---|---|---|
//! | 1 | | a known value of the slot is not loaded again | `facts` |
//! | | 1 | bounds, as the runtime relies on them where it stores | |
//! | 2 | 2 | durability: where the object is; whether the runtime has to store | `persist` |
//! | 3 | 3 | null, bounds, and the address | |
//! | 4 | 4 | the access itself | |
//! | 5 | 5 | observation: the access is recorded for the model | `observe` |
//! | 6 | 6 | profiling: counted for the object's site | `profile` |
//! | 7 | 7 | facts: the slot's new value | `facts` |
//! | | 8 | barrier: the store is recorded for the collector and the plan | `barrier` |
//! | | 9 | the end of a store that the runtime did in its own way | `persist` |
//!
//! An object's first values, to which no other reference exists, take stages 4 and 5 alone. Fills and copies are done by helpers, which have these
//! stages in their own code.

use super::facts::Fact;
use super::observe::{ACCESS, BOUNDS};
use super::profile::Counted;
use super::slot::{Kind, Slot};
use super::translate::Translator;
use super::traps::trap_code;
use crate::error::TrapKind;
use crate::store::region::MemoryRecord;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use std::mem::offset_of;
use varve_access::Kind as Access;
use varve_heap::layout;

impl Translator<'_, '_> {
    /// The value of a slot. The operands of the operator are on the stack still: a stage may leave this code for other code that begins with
    /// the operator.
    pub(super) fn load(&mut self, slot: &Slot) -> Value {
        if let Some(known) = self.known(slot) {
            self.profile(Counted::Read, slot);
            return known;
        }
        let object = self.settle(slot);
        self.check_bounds(slot);
        let address = self.address(slot, object);
        let value = self.read(slot, address);
        self.observe_load(slot, address, value);
        self.profile(Counted::Read, slot);
        self.learn_content(slot, value);
        value
    }

    /// Stores a value in a slot. The operands are on the stack as for a load.
    pub(super) fn store(&mut self, slot: &Slot, value: Value) {
        self.check_bounds(slot);
        let durable = self.begin_store(slot, value);
        // Optimized code knows by now. Observed baseline code always checks twice.
        if self.knows_facts() || self.observes() {
            self.check_bounds(slot);
        }
        let address = self.address(slot, slot.reference);
        self.write(slot, address, value);
        self.observe_slot(Access::Write, slot, address);
        self.profile(Counted::Write, slot);
        self.replace_content(slot, value);
        self.barrier(slot, address);
        self.end_store(durable, slot);
    }

    /// Stores a value in a slot of a new object, which is at `address`.
    pub(super) fn initialize(&mut self, slot: &Slot, address: Value, value: Value) {
        self.write(slot, address, value);
        self.observe_slot(Access::Write, slot, address);
    }

    // ---- known already ----------------------------------------------------------------------------------------------------------

    fn known(&self, slot: &Slot) -> Option<Value> {
        if let Kind::Global { place } = slot.kind {
            return self.global_at(place);
        }
        let reference = slot.reference?;
        match slot.kind {
            Kind::Field { .. } => self.field_of(reference, slot.region),
            Kind::Element { index, .. } => self.element_of(reference, index, slot.region),
            Kind::Length => self.length_of(reference),
            _ => None,
        }
    }

    // ---- null, bounds, address --------------------------------------------------------------------------------------------------

    /// Of an element: traps where its array is null or has no such element. Optimized code checks once.
    fn check_bounds(&mut self, slot: &Slot) {
        let (Kind::Element { index, .. }, Some(array)) = (slot.kind, slot.reference) else {
            return;
        };
        if !self.is_in_bounds(array, index) {
            let length = self.load(&Slot::length(array));
            self.execute(BOUNDS);
            let out = self
                .ins()
                .icmp(IntCC::UnsignedGreaterThanOrEqual, index, length);
            self.trap_if(out, TrapKind::ArrayOutOfBounds);
            self.learn_in_bounds(array, index);
        }
    }

    /// The address that the slot's offset is added to. `object` is where the object is, if the slot is in one.
    fn address(&mut self, slot: &Slot, object: Option<Value>) -> Value {
        match (slot.kind, object) {
            (Kind::Memory { memory, index, .. }, _) => self.memory_address(slot, memory, index),
            (_, None) => self.base(),
            (Kind::Element { index, .. }, Some(array)) => {
                let address = self.object_address(array);
                let wide = self.ins().uextend(types::I64, index);
                let shift = slot.width.bytes().trailing_zeros();
                let byte = self.ins().ishl_imm_u(wide, i64::from(shift));
                self.ins().iadd(address, byte)
            }
            (_, Some(object)) => {
                // Null faults by itself if the offset is within the guard.
                if slot.trap.is_some() && slot.offset as u64 + 8 > layout::NULL_GUARD {
                    let null = trap_code(TrapKind::NullReference);
                    self.ins().trapz(object, null);
                }
                self.object_address(object)
            }
        }
    }

    /// Memories reserve more than any 32-bit index and offset reach, so that accesses out of bounds fault. Indices of 64 bits are compared.
    fn memory_address(&mut self, slot: &Slot, memory: u32, index: Value) -> Value {
        if self.env.memories[memory as usize].ty.wide {
            self.check_wide(slot, memory, index);
        }
        let index = self.widened(index);
        let record = self.env.memories[memory as usize].place;
        let base = self.constant_word(record, offset_of!(MemoryRecord, base));
        let address = self.ins().iadd(base, index);
        match slot.kind {
            Kind::Memory { offset, .. } if offset != slot.offset as u64 => {
                self.ins().iadd_imm_s(address, offset as i64)
            }
            _ => address,
        }
    }

    /// Traps if an access to a memory with indices of 64 bits ends beyond the memory's end.
    fn check_wide(&mut self, slot: &Slot, memory: u32, index: Value) {
        let Kind::Memory { offset, .. } = slot.kind else {
            unreachable!("memories have no other slots")
        };
        let trap = TrapKind::MemoryOutOfBounds;
        let Some(reach) = offset.checked_add(slot.width.bytes().into()) else {
            let always = self.i32(1);
            return self.trap_if(always, trap);
        };
        let reach = self.i64(reach as i64);
        let end = self.ins().uadd_overflow_trap(index, reach, trap_code(trap));
        let record = self.env.memories[memory as usize].place;
        let bytes = self.word(record, offset_of!(MemoryRecord, bytes));
        let out = self.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
        self.trap_if(out, trap);
    }

    // ---- the access -------------------------------------------------------------------------------------------------------------

    fn flags(&mut self, slot: &Slot) -> MemFlagsData {
        match slot.trap {
            Some(trap) => self.trapping(slot.region, trap),
            // Vectors lie wherever other values may.
            None if slot.width.bytes() > 8 => self.unaligned(slot.region),
            None => self.trusted(slot.region),
        }
    }

    fn read(&mut self, slot: &Slot, address: Value) -> Value {
        let (flags, width) = (self.flags(slot), slot.width);
        if width.is_reference() {
            return self.ins().uload32(flags, address, slot.offset);
        }
        let value = self.ins().load(width.part, flags, address, slot.offset);
        match width.signed {
            _ if width.part == width.whole => value,
            true => self.ins().sextend(width.whole, value),
            false => self.ins().uextend(width.whole, value),
        }
    }

    fn write(&mut self, slot: &Slot, address: Value, value: Value) {
        let (flags, width) = (self.flags(slot), slot.width);
        if width.is_reference() {
            self.ins().istore32(flags, value, address, slot.offset);
            return;
        }
        let value = match width.part == width.whole {
            true => value,
            false => self.ins().ireduce(width.part, value),
        };
        self.ins().store(flags, value, address, slot.offset);
    }

    // ---- observation ------------------------------------------------------------------------------------------------------------

    fn observe_slot(&mut self, access: Access, slot: &Slot, address: Value) {
        if let Kind::Field { .. } | Kind::Element { .. } | Kind::Length = slot.kind {
            self.execute(ACCESS);
        }
        let bytes = slot.width.bytes();
        match slot.kind {
            Kind::Memory {
                memory,
                index,
                offset,
            } => self.record_memory(access, memory, index, offset, bytes),
            _ => self.observe(access, slot.reference, address, slot.offset, bytes),
        }
    }

    fn observe_load(&mut self, slot: &Slot, address: Value, value: Value) {
        self.observe_slot(Access::Read, slot, address);
        // The next access may be at an address that this one has loaded.
        if !matches!(slot.kind, Kind::Length | Kind::Header | Kind::Exception) {
            self.record_loaded(value);
        }
    }

    // ---- profiling --------------------------------------------------------------------------------------------------------------

    fn profile(&mut self, what: Counted, slot: &Slot) {
        if let (true, Some(reference)) = (slot.counted, slot.reference) {
            self.count_access(what, reference, None);
        }
    }

    // ---- facts ------------------------------------------------------------------------------------------------------------------

    /// The slot holds the value. Of a part of a value the rest is not known.
    fn learn_content(&mut self, slot: &Slot, value: Value) {
        if let Kind::Global { place } = slot.kind {
            self.learn(Fact::Global(place, value));
            return;
        }
        let Some(reference) = slot.reference else {
            return;
        };
        match slot.kind {
            _ if !slot.width.is_whole() => {}
            Kind::Field { .. } => self.learn(Fact::Field(reference, slot.region, value)),
            Kind::Element { index, .. } => {
                self.learn(Fact::Element(reference, index, slot.region, value));
            }
            Kind::Length => self.learn(Fact::Length(reference, value)),
            _ => {}
        }
    }

    /// The same after a store: the values of other slots that may alias this one are unknown.
    fn replace_content(&mut self, slot: &Slot, value: Value) {
        if slot.reference.is_some() || matches!(slot.kind, Kind::Global { .. }) {
            self.forget_stored(slot.region);
            self.learn_content(slot, value);
        }
    }

    // ---- barrier ----------------------------------------------------------------------------------------------------------------

    fn barrier(&mut self, slot: &Slot, address: Value) {
        let Some(object) = slot.reference else { return };
        if slot.managed {
            let element = matches!(slot.kind, Kind::Element { .. });
            self.note_reference(object, element.then_some((address, slot.offset)));
        }
        self.note_write(object);
    }

    // ---- addresses of objects ---------------------------------------------------------------------------------------------------

    /// The address of an object. Never kept across a call: objects move.
    pub(super) fn object_address(&mut self, reference: Value) -> Value {
        let base = self.base();
        if self.knows_facts() {
            return self.object_at(base, reference);
        }
        // The mid-end, which finds what is computed twice, leaves baseline code alone.
        match self.address_here {
            Some((near, of, address)) if (near, of) == (base, reference) => address,
            _ => {
                let address = self.object_at(base, reference);
                self.address_here = Some((base, reference, address));
                address
            }
        }
    }

    /// The address of an object's data that are as far from `base` as the object is from the heap's base.
    pub(super) fn object_at(&mut self, base: Value, reference: Value) -> Value {
        let shift = self.env.align.shift() as i64;
        let byte = self.ins().ishl_imm_u(reference, shift);
        self.ins().iadd(base, byte)
    }
}
