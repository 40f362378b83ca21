//! References, structs, arrays, casts.

use super::alias::Region;
use super::env::clif_type;
use super::facts::{Condition, Fact};
use super::profile::Counted;
use super::translate::{Translator, args, trap_code};
use crate::error::TrapKind;
use crate::helpers::Helper;
use crate::store::region::{
    CONTEXT, Context, ROW_DEPTH, TYPE_ROW, TYPE_ROWS, displacement, row_kind,
};
use crate::types::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use std::mem::offset_of;
use varve_heap::layout;
use varve_machine::Kind as Access;
use wasmparser::Operator;

const I31_NON_NULL: ValType = ValType::Ref(RefType {
    nullable: false,
    heap: HeapType::I31,
});

/// Longest array that is allocated inline: larger ones may not fit into any nursery.
const INLINE_ARRAY_BYTES: u64 = 4096;

impl Translator<'_, '_> {
    // ---- objects ----------------------------------------------------------------------------------------------------------------

    /// The address of an object. Never kept across a call: objects move.
    pub(super) fn object_address(&mut self, reference: Value) -> Value {
        let base = self.base();
        self.object_at(base, reference)
    }

    /// The address of what belongs to an object and is as far from `base` as the object is from the heap's base.
    pub(super) fn object_at(&mut self, base: Value, reference: Value) -> Value {
        let wide = self.b.ins().uextend(types::I64, reference);
        let byte = self.b.ins().ishl_imm_u(wide, self.env.align.shift() as i64);
        self.b.ins().iadd(base, byte)
    }

    /// For an access that faults where the reference is null.
    fn null_checked(&mut self, region: Region) -> MemFlagsData {
        self.trapping(region, TrapKind::NullReference)
    }

    /// The address for an access at a fixed offset. Null faults there by itself if the offset is within the guard.
    fn checked_object(&mut self, reference: Value, offset: u32) -> Value {
        if offset as u64 + 8 > layout::NULL_GUARD {
            self.b
                .ins()
                .trapz(reference, trap_code(TrapKind::NullReference));
        }
        self.object_address(reference)
    }

    /// A field of an exception.
    pub(super) fn exception_field(&mut self, reference: Value, ty: ValType, offset: u32) -> Value {
        let address = self.checked_object(reference, offset);
        let flags = self.null_checked(Region::Exceptions);
        let ty = clif_type(ty);
        let v = self.b.ins().load(ty, flags, address, offset as i32);
        self.observe(
            Access::Read,
            Some(reference),
            address,
            offset as i32,
            ty.bytes(),
        );
        v
    }

    fn load_storage(
        &mut self,
        address: Value,
        offset: i32,
        storage: Storage,
        signed: bool,
        flags: MemFlagsData,
    ) -> Value {
        let part = match storage {
            Storage::I8 => types::I8,
            Storage::I16 => types::I16,
            Storage::Val(v) => return self.b.ins().load(clif_type(v), flags, address, offset),
        };
        let v = self.b.ins().load(part, flags, address, offset);
        match signed {
            true => self.b.ins().sextend(types::I32, v),
            false => self.b.ins().uextend(types::I32, v),
        }
    }

    fn store_storage(
        &mut self,
        value: Value,
        address: Value,
        offset: i32,
        storage: Storage,
        flags: MemFlagsData,
    ) {
        let value = match storage {
            Storage::I8 => self.b.ins().ireduce(types::I8, value),
            Storage::I16 => self.b.ins().ireduce(types::I16, value),
            Storage::Val(_) => value,
        };
        self.b.ins().store(flags, value, address, offset);
    }

    /// Notes for the collector that a reference was stored into an object, unless that has been noted already. No call, so
    /// that references stay in registers.
    ///
    /// `element` is the address of the element, in two parts, if the object is an array: of large ones only the line of what was
    /// stored is noted.
    fn barrier(&mut self, reference: Value, element: Option<(Value, i32)>) {
        if self.fresh.contains(&reference) {
            return;
        }
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let byte = self
            .b
            .ins()
            .load(types::I8, flags, address, layout::COLLECTOR_BYTE);
        self.observe(
            Access::Read,
            Some(reference),
            address,
            layout::COLLECTOR_BYTE,
            1,
        );
        let unlogged = self.b.ins().band_imm_u(byte, layout::UNLOGGED as i64);
        let (slow, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        self.b.ins().brif(unlogged, slow, &[], next, &[]);
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        if let Some((array, at)) = element {
            let (large, small) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(large);
            self.b.set_cold_block(small);
            let bit = self.b.ins().band_imm_u(byte, layout::LARGE as i64);
            self.b.ins().brif(bit, large, &[], small, &[]);
            self.b.seal_block(large);
            self.b.seal_block(small);
            self.b.switch_to_block(large);
            self.note_line(array, at, next);
            self.b.switch_to_block(small);
        }
        let logged = self.b.ins().band_imm_u(byte, !layout::UNLOGGED as i64);
        self.b
            .ins()
            .store(flags, logged, address, layout::COLLECTOR_BYTE);
        self.remember(reference);
        self.b.ins().jump(next, &[]);
        self.b.seal_block(next);
        self.b.switch_to_block(next);
    }

    /// Notes the line of an element of a large array, unless it has been noted; goes on in `next`.
    fn note_line(&mut self, array: Value, at: i32, next: Block) {
        let base = self.base();
        let address = self.b.ins().iadd_imm_s(array, i64::from(at));
        let offset = self.b.ins().isub(address, base);
        let line = self
            .b
            .ins()
            .ushr_imm_u(offset, layout::LINE_SIZE.trailing_zeros() as i64);
        let flags = self.trusted(Region::Mutator);
        let at = displacement(CONTEXT) + offset_of!(Context, mutator) as i32;
        let cards = self
            .b
            .ins()
            .load(types::I64, flags, base, at + layout::MUTATOR_CARDS);
        let card = self.b.ins().iadd(cards, line);
        let flags = self.trusted(Region::Cards);
        let noted = self.b.ins().load(types::I8, flags, card, 0);
        let note = self.b.create_block();
        self.b.set_cold_block(note);
        self.b.ins().brif(noted, next, &[], note, &[]);
        self.b.seal_block(note);
        self.b.switch_to_block(note);
        let one = self.b.ins().iconst(types::I8, 1);
        self.b.ins().store(flags, one, card, 0);
        let entry = self.b.ins().ireduce(types::I32, line);
        let entry = self.b.ins().ishl_imm_u(entry, 1);
        let entry = self
            .b
            .ins()
            .bor_imm_u(entry, layout::REMEMBERED_LINE as i64);
        self.remember(entry);
        self.b.ins().jump(next, &[]);
    }

    /// Adds an entry to what the next collection looks at.
    fn remember(&mut self, entry: Value) {
        let (base, flags) = (self.base(), self.trusted(Region::Mutator));
        let at = displacement(CONTEXT)
            + offset_of!(Context, mutator) as i32
            + layout::MUTATOR_REMEMBERED;
        let cursor = self.b.ins().load(types::I64, flags, base, at);
        let entries = self.trusted(Region::Remembered);
        self.b.ins().store(entries, entry, cursor, 0);
        let after = self.b.ins().iadd_imm_s(cursor, 4);
        self.b.ins().store(flags, after, base, at);
    }

    /// Notes in an object's header that it was written to, if the plan wants to know. What has just been born need not be
    /// told: that it survives is no write.
    fn note_write(&mut self, reference: Value) {
        if !self.env.heap.monitors() || self.fresh.contains(&reference) {
            return;
        }
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let at = layout::TEMPERATURE_BYTE;
        let byte = self.b.ins().load(types::I8, flags, address, at);
        let byte = self.b.ins().bor_imm_u(byte, layout::WRITTEN as i64);
        self.b.ins().store(flags, byte, address, at);
        self.observe(Access::Update, Some(reference), address, at, 1);
    }

    // ---- allocation -------------------------------------------------------------------------------------------------------------

    /// The number of the operator's allocation site: that of its call if it is in a maker.
    fn site(&mut self) -> u32 {
        self.count();
        let mut at = vec![self.offset];
        let mut around = self.activations.iter().rev();
        let mut activation = around.next().expect("the function itself");
        while activation.makes {
            at.push(activation.call_offset);
            activation = around.next().expect("makers have callers");
        }
        at.reverse();
        let func = activation.func_id;
        self.env.site(func, at)
    }

    /// Takes `size` bytes from the nursery, or branches to `slow`: the object's address.
    fn bump(&mut self, size: Value, slow: cranelift_codegen::ir::Block) -> Value {
        let base = self.base();
        let flags = self.trusted(Region::Mutator);
        let mutator = displacement(CONTEXT) + offset_of!(Context, mutator) as i32;
        let cursor = self
            .b
            .ins()
            .load(types::I64, flags, base, mutator + layout::MUTATOR_CURSOR);
        let limit = self
            .b
            .ins()
            .load(types::I64, flags, base, mutator + layout::MUTATOR_LIMIT);
        let end = self.b.ins().iadd(cursor, size);
        let full = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, limit);
        let fast = self.b.create_block();
        self.b.ins().brif(full, slow, &[], fast, &[]);
        self.b.seal_block(fast);
        self.b.switch_to_block(fast);
        let base = self.base();
        self.b
            .ins()
            .store(flags, end, base, mutator + layout::MUTATOR_CURSOR);
        cursor
    }

    fn reference_to(&mut self, address: Value) -> Value {
        let base = self.base();
        let byte = self.b.ins().isub(address, base);
        let wide = self.b.ins().ushr_imm_u(byte, self.env.align.shift() as i64);
        self.b.ins().ireduce(types::I32, wide)
    }

    /// Writes a header, and gives the constant.
    fn header(&mut self, address: Value, ty: TypeIndex, site: u32) -> Value {
        let temperature = self.env.sites.temperature(site);
        let header = self.i64(layout::new_header(ty, site, temperature) as i64);
        let flags = self.trusted(Region::Headers);
        self.b.ins().store(flags, header, address, 0);
        header
    }

    /// A fresh object with zeroed fields: inline if the nursery has room.
    fn allocate_struct(&mut self, ty: TypeIndex) -> Value {
        if self.is_class_data(ty) {
            return self.allocate_class_data(ty);
        }
        let site = self.site();
        let size = self.env.types.get(ty).layout.size;
        let size = self.i64(self.env.align.object_size(size.into()) as i64);
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        let result = self.b.append_block_param(done, types::I32);
        let address = self.bump(size, slow);
        let header = self.header(address, ty, site);
        let reference = self.reference_to(address);
        self.b.ins().jump(done, &args(&[reference]));
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        let (ty, site) = (self.i32(ty as i64), self.i32(site as i64));
        self.born(result, Some(header), site);
        let reference = self
            .call_helper(Helper::AllocStruct, &[ty, site])
            .expect("result");
        self.b.ins().jump(done, &args(&[reference]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.b.declare_value_needs_stack_map(result);
        self.record_birth(result, layout::HEADER_SIZE);
        self.fresh.push(result);
        self.learn(Fact::Volatile(result));
        result
    }

    /// Records the writes of a header, and of an array's length.
    fn record_birth(&mut self, reference: Value, bytes: u32) {
        if self.observes() {
            let address = self.object_address(reference);
            self.observe(Access::Write, None, address, 0, bytes);
        }
    }

    fn allocate_array(&mut self, ty: TypeIndex, len: Value) -> Value {
        let site = self.site();
        let element = self.env.types.element(ty).storage.bytes();
        let (slow, small, done) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        self.b.set_cold_block(slow);
        let result = self.b.append_block_param(done, types::I32);
        let most = (INLINE_ARRAY_BYTES - array_base(element) as u64) / element as u64;
        let long = self
            .b
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThan, len, most as i64);
        self.b.ins().brif(long, slow, &[], small, &[]);
        self.b.seal_block(small);
        self.b.switch_to_block(small);
        let wide = self.b.ins().uextend(types::I64, len);
        let bytes = self
            .b
            .ins()
            .ishl_imm_u(wide, element.trailing_zeros() as i64);
        let most = self.env.align.bytes() as i64 - 1;
        let bytes = self
            .b
            .ins()
            .iadd_imm_s(bytes, array_base(element) as i64 + most);
        let size = self.b.ins().band_imm_s(bytes, !most);
        let address = self.bump(size, slow);
        let header = self.header(address, ty, site);
        let flags = self.trusted(Region::Lengths);
        self.b
            .ins()
            .store(flags, len, address, layout::ARRAY_LENGTH);
        let reference = self.reference_to(address);
        self.b.ins().jump(done, &args(&[reference]));
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        let (ty, site) = (self.i32(ty as i64), self.i32(site as i64));
        self.born(result, Some(header), site);
        let reference = self
            .call_helper(Helper::AllocArray, &[ty, len, site])
            .expect("result");
        self.b.ins().jump(done, &args(&[reference]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.b.declare_value_needs_stack_map(result);
        self.record_birth(result, layout::ARRAY_NARROW_BASE);
        self.fresh.push(result);
        self.learn(Fact::Volatile(result));
        result
    }

    /// A struct with these fields. No barrier: what has just been allocated is young, or is known to the collector.
    pub(super) fn new_struct(&mut self, ty: TypeIndex, values: &[Value]) -> Value {
        let reference = self.allocate_struct(ty);
        let address = self.object_address(reference);
        let offsets = self.env.types.get(ty).layout.offsets.clone();
        for (i, &v) in values.iter().enumerate() {
            let storage = self.env.types.fields(ty)[i].storage;
            let region = self.field_region(ty, i as u32);
            let flags = self.trusted(region);
            self.store_storage(v, address, offsets[i] as i32, storage, flags);
            let at = offsets[i] as i32;
            self.observe(Access::Write, None, address, at, storage.bytes());
        }
        if !self.is_class_data(ty) {
            self.born_of(ty, values);
        }
        reference
    }

    fn struct_get(&mut self, type_index: u32, field: u32, signed: bool) {
        let ty = self.env.module.types[type_index as usize];
        let storage = self.env.types.fields(ty)[field as usize].storage;
        let offset = self.env.types.get(ty).layout.offsets[field as usize];
        let reference = self.stack.last().expect("validated").value;
        let region = self.field_region(ty, field);
        if let Some(v) = self.field_of(reference, region) {
            self.pop();
            self.not_executed(1);
            self.count_access(Counted::Read, reference, None);
            self.push(v, storage.unpacked());
            return;
        }
        let place = self.settled_struct(reference, ty, field);
        self.pop();
        let address = self.checked_object(place, offset);
        let flags = self.null_checked(region);
        let v = self.load_storage(address, offset as i32, storage, signed, flags);
        let (at, bytes) = (offset as i32, storage.bytes());
        self.observe(Access::Read, Some(reference), address, at, bytes);
        self.record_loaded(v);
        self.count_access(Counted::Read, reference, None);
        if matches!(storage, Storage::Val(_)) {
            self.learn(Fact::Field(reference, region, v));
        }
        self.push(v, storage.unpacked());
    }

    /// Reads a field, of a whole value, ahead of the operators that want it. The reference is not null.
    pub(super) fn read_field(&mut self, reference: Value, type_index: u32, field: u32) -> Value {
        let ty = self.env.module.types[type_index as usize];
        let storage = self.env.types.fields(ty)[field as usize].storage;
        let offset = self.env.types.get(ty).layout.offsets[field as usize] as i32;
        let place = self.settled_ahead(reference, ty, field);
        let address = self.object_address(place);
        let region = self.field_region(ty, field);
        let flags = self.trusted(region);
        let v = self.load_storage(address, offset, storage, false, flags);
        if storage.is_managed() {
            self.b.declare_value_needs_stack_map(v);
        }
        self.observe(
            Access::Read,
            Some(reference),
            address,
            offset,
            storage.bytes(),
        );
        self.record_loaded(v);
        self.learn(Fact::Field(reference, region, v));
        v
    }

    /// Reads the length of an array, which is not null.
    pub(super) fn read_length(&mut self, reference: Value) {
        let address = self.object_address(reference);
        self.length(reference, address);
    }

    fn struct_set(&mut self, type_index: u32, field: u32) {
        let ty = self.env.module.types[type_index as usize];
        let storage = self.env.types.fields(ty)[field as usize].storage;
        let offset = self.env.types.get(ty).layout.offsets[field as usize];
        let [object, value] = self.stack[self.stack.len() - 2..] else {
            unreachable!("validated: an object and a value")
        };
        let (reference, value) = (object.value, value.value);
        let at = |t: &mut Self| t.i64(i64::from(offset));
        let done = self.begin_store(reference, ty, storage, value, at);
        self.pop_n(2);
        let address = self.checked_object(reference, offset);
        let region = self.field_region(ty, field);
        let flags = self.null_checked(region);
        self.store_storage(value, address, offset as i32, storage, flags);
        let (at, bytes) = (offset as i32, storage.bytes());
        self.observe(Access::Write, Some(reference), address, at, bytes);
        self.forget_stored(region);
        if matches!(storage, Storage::Val(_)) {
            self.learn(Fact::Field(reference, region, value));
        }
        self.count_access(Counted::Write, reference, None);
        if storage.is_managed() {
            self.barrier(reference, None);
        }
        self.note_write(reference);
        self.end_store(done, storage);
        self.after_constant(reference, ty, field);
    }

    // ---- arrays -----------------------------------------------------------------------------------------------------------------

    /// For accesses to elements, once the index was checked.
    fn element_flags(&mut self, type_index: u32) -> MemFlagsData {
        let region = self.element_region(self.env.module.types[type_index as usize]);
        self.trusted(region)
    }

    fn element(&self, type_index: u32) -> Storage {
        self.env
            .types
            .element(self.env.module.types[type_index as usize])
            .storage
    }

    /// Checks for null and bounds, once.
    fn check_index(&mut self, reference: Value, index: Value) {
        if !self.is_in_bounds(reference, index) {
            let address = self.object_address(reference);
            self.check_bounds(reference, address, index);
            self.learn(Fact::InBounds(reference, index));
        }
    }

    /// How far from an array's start an element is.
    fn element_offset(&mut self, index: Value, storage: Storage) -> Value {
        let wide = self.b.ins().uextend(types::I64, index);
        let byte = self.b.ins().imul_imm_s(wide, i64::from(storage.bytes()));
        self.b
            .ins()
            .iadd_imm_s(byte, i64::from(array_base(storage.bytes())))
    }

    /// The address of an element less its array's base offset, after checks for null and bounds. The element is that of `place`, which is
    /// where the array is.
    fn array_element(
        &mut self,
        reference: Value,
        place: Value,
        index: Value,
        storage: Storage,
    ) -> Value {
        self.check_index(reference, index);
        let address = self.object_address(place);
        let wide = self.b.ins().uextend(types::I64, index);
        let byte = self
            .b
            .ins()
            .ishl_imm_u(wide, storage.bytes().trailing_zeros() as i64);
        self.b.ins().iadd(address, byte)
    }

    /// The length of an array; null traps.
    fn length(&mut self, reference: Value, address: Value) -> Value {
        if let Some(length) = self.length_of(reference) {
            return length;
        }
        let flags = self.null_checked(Region::Lengths);
        let length = self
            .b
            .ins()
            .load(types::I32, flags, address, layout::ARRAY_LENGTH);
        self.observe(
            Access::Read,
            Some(reference),
            address,
            layout::ARRAY_LENGTH,
            4,
        );
        self.learn(Fact::Length(reference, length));
        length
    }

    fn check_bounds(&mut self, reference: Value, address: Value, index: Value) {
        let len = self.length(reference, address);
        let out = self
            .b
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(out, TrapKind::ArrayOutOfBounds);
    }

    fn array_get(&mut self, type_index: u32, signed: bool) {
        let storage = self.element(type_index);
        let [array, index] = self.stack[self.stack.len() - 2..] else {
            unreachable!("validated: an array and an index")
        };
        let (reference, index) = (array.value, index.value);
        let ty = self.env.module.types[type_index as usize];
        let region = self.element_region(ty);
        if let Some(v) = self.element_of(reference, index, region) {
            self.pop_n(2);
            self.not_executed(3);
            self.count_access(Counted::Read, reference, None);
            self.push(v, storage.unpacked());
            return;
        }
        let place = self.settled_array(reference, ty);
        self.pop_n(2);
        let address = self.array_element(reference, place, index, storage);
        let at = array_base(storage.bytes()) as i32;
        let flags = self.element_flags(type_index);
        let v = self.load_storage(address, at, storage, signed, flags);
        self.observe(Access::Read, Some(reference), address, at, storage.bytes());
        self.record_loaded(v);
        self.count_access(Counted::Read, reference, None);
        if matches!(storage, Storage::Val(_)) {
            self.learn(Fact::Element(reference, index, region, v));
        }
        self.push(v, storage.unpacked());
    }

    fn array_set(&mut self, type_index: u32) {
        let storage = self.element(type_index);
        let [array, index, value] = self.stack[self.stack.len() - 3..] else {
            unreachable!("validated: an array, an index and a value")
        };
        let (reference, index, value) = (array.value, index.value, value.value);
        let ty = self.env.module.types[type_index as usize];
        self.check_index(reference, index);
        let offset = |t: &mut Self| t.element_offset(index, storage);
        let done = self.begin_store(reference, ty, storage, value, offset);
        self.pop_n(3);
        let address = self.array_element(reference, reference, index, storage);
        let at = array_base(storage.bytes()) as i32;
        let flags = self.element_flags(type_index);
        self.store_storage(value, address, at, storage, flags);
        self.observe(Access::Write, Some(reference), address, at, storage.bytes());
        let region = self.element_region(self.env.module.types[type_index as usize]);
        self.forget_stored(region);
        if matches!(storage, Storage::Val(_)) {
            self.learn(Fact::Element(reference, index, region, value));
        }
        self.count_access(Counted::Write, reference, None);
        if storage.is_managed() {
            self.barrier(reference, Some((address, at)));
        }
        self.note_write(reference);
        self.end_store(done, storage);
    }

    /// A value as the 64 bits that helpers take.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        let value = match ty {
            types::F32 => self.b.ins().bitcast(types::I32, MemFlagsData::new(), value),
            types::F64 => return self.b.ins().bitcast(types::I64, MemFlagsData::new(), value),
            types::I64 => return value,
            _ => value,
        };
        self.b.ins().uextend(types::I64, value)
    }

    fn array_new(&mut self, type_index: u32) {
        let ty = self.env.module.types[type_index as usize];
        let len = self.pop();
        let value = self.pop();
        let reference = self.allocate_array(ty, len);
        let (zero, value) = (self.i32(0), self.bits(value));
        self.call_helper(Helper::ArrayFill, &[reference, zero, value, len]);
        self.push(reference, self.concrete(type_index, false));
    }

    fn array_new_fixed(&mut self, type_index: u32, count: u32) {
        let ty = self.env.module.types[type_index as usize];
        let values = self.pop_n(count as usize);
        let len = self.i32(count as i64);
        let reference = self.allocate_array(ty, len);
        let storage = self.element(type_index);
        let address = self.object_address(reference);
        for (i, v) in values.into_iter().enumerate() {
            let at = array_base(storage.bytes()) + i as u32 * storage.bytes();
            let flags = self.element_flags(type_index);
            self.store_storage(v, address, at as i32, storage, flags);
            self.observe(Access::Write, None, address, at as i32, storage.bytes());
        }
        self.push(reference, self.concrete(type_index, false));
    }

    fn array_from_segment(&mut self, helper: Helper, type_index: u32, segment: u32) {
        let site = self.site();
        let ty = self.env.module.types[type_index as usize];
        let len = self.pop();
        let offset = self.pop();
        let (i, ty, s, site) = (
            self.instance_id(),
            self.i32(ty as i64),
            self.i32(segment as i64),
            self.i32(site as i64),
        );
        let v = self
            .call_helper(helper, &[i, ty, s, offset, len, site])
            .expect("result");
        self.born(v, None, site);
        self.push(v, self.concrete(type_index, false));
    }

    fn array_init(&mut self, helper: Helper, segment: u32) {
        let operands = self.pop_n(4);
        let (i, s) = (self.instance_id(), self.i32(segment as i64));
        self.call_helper(
            helper,
            &[i, s, operands[0], operands[1], operands[2], operands[3]],
        );
        self.count_access(Counted::Write, operands[0], Some(operands[3]));
    }

    // ---- type tests -------------------------------------------------------------------------------------------------------------

    fn row_word(&mut self, ty: Value, word: u32) -> Value {
        let base = self.base();
        let wide = self.b.ins().uextend(types::I64, ty);
        let byte = self
            .b
            .ins()
            .ishl_imm_u(wide, TYPE_ROW.trailing_zeros() as i64);
        let row = self.b.ins().iadd(base, byte);
        let at = displacement(TYPE_ROWS) + 4 * word as i32;
        self.b
            .ins()
            .load(types::I32, MemFlagsData::trusted().with_readonly(), row, at)
    }

    /// Whether a type id is `wanted` or extends it.
    pub(super) fn is_type(&mut self, actual: Value, wanted: TypeIndex) -> Value {
        let canonical = self.env.types.get(wanted);
        let depth = canonical.display.len();
        if canonical.ty.is_final {
            return self.b.ins().icmp_imm_s(IntCC::Equal, actual, wanted as i64);
        }
        if depth > ROW_DEPTH {
            let wanted = self.i32(wanted as i64);
            let v = self
                .call_helper(Helper::IsSubtype, &[actual, wanted])
                .expect("result");
            return self.b.ins().ireduce(types::I8, v);
        }
        let ancestor = self.row_word(actual, depth as u32);
        self.b
            .ins()
            .icmp_imm_s(IntCC::Equal, ancestor, wanted as i64)
    }

    fn type_of_object(&mut self, reference: Value) -> Value {
        let address = self.object_address(reference);
        let flags = self.trusted(Region::Headers);
        let low = self.b.ins().load(types::I32, flags, address, 0);
        // On one of several paths: what it takes along is in memory.
        self.forget_recorded();
        self.observe(Access::Read, Some(reference), address, 0, 4);
        self.forget_recorded();
        self.b.ins().band_imm_u(low, (1 << layout::TYPE_BITS) - 1)
    }

    /// Whether a reference, known not to be null, points at something of type `wanted`; an i8.
    fn test_non_null(&mut self, reference: Value, from: HeapType, wanted: HeapType) -> Value {
        use HeapType::*;
        if self.env.types.is_heap_subtype(from, wanted) {
            return self.b.ins().iconst(types::I8, 1);
        }
        match wanted {
            Any | Func | Extern | Exn => return self.b.ins().iconst(types::I8, 1),
            None | NoFunc | NoExtern | NoExn => return self.b.ins().iconst(types::I8, 0),
            Concrete(ty, Kind::Func) => {
                let actual = self.type_of_func(reference, TrapKind::NullReference);
                return self.is_type(actual, ty);
            }
            _ => {}
        }
        let low = self.b.ins().band_imm_u(reference, layout::I31_TAG as i64);
        let is_i31 = self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
        if wanted == I31 {
            return is_i31;
        }
        let may_be_i31 = matches!(from, Any | Eq | I31 | Extern);
        let (object, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I8);
        if may_be_i31 {
            let eq = self.b.ins().iconst(types::I8, (wanted == Eq) as i64);
            self.b.ins().brif(is_i31, done, &args(&[eq]), object, &[]);
        } else {
            self.b.ins().jump(object, &[]);
        }
        self.b.seal_block(object);
        self.b.switch_to_block(object);
        let actual = self.type_of_object(reference);
        let fits = match wanted {
            Concrete(ty, _) => self.is_type(actual, ty),
            _ => {
                let kind = self.row_word(actual, 0);
                match wanted {
                    Struct => self
                        .b
                        .ins()
                        .icmp_imm_s(IntCC::Equal, kind, row_kind::STRUCT as i64),
                    Array => self
                        .b
                        .ins()
                        .icmp_imm_s(IntCC::Equal, kind, row_kind::ARRAY as i64),
                    _ => self
                        .b
                        .ins()
                        .icmp_imm_s(IntCC::NotEqual, kind, row_kind::OPAQUE as i64),
                }
            }
        };
        self.b.ins().jump(done, &args(&[fits]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        result
    }

    /// Whether a reference is of type `to`; an i8.
    fn test(&mut self, operand: super::translate::Operand, to: RefType) -> Value {
        let ValType::Ref(from) = operand.ty else {
            unreachable!("validated: a reference")
        };
        if self.is_known(operand.value, to) {
            return self.b.ins().iconst(types::I8, 1);
        }
        if !from.nullable {
            return self.test_non_null(operand.value, from.heap, to.heap);
        }
        let (some, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I8);
        let null = self.b.ins().iconst(types::I8, to.nullable as i64);
        self.b
            .ins()
            .brif(operand.value, some, &[], done, &args(&[null]));
        self.b.seal_block(some);
        self.b.switch_to_block(some);
        let fits = self.test_non_null(operand.value, from.heap, to.heap);
        self.b.ins().jump(done, &args(&[fits]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        result
    }

    fn ref_test(&mut self, heap: wasmparser::HeapType, nullable: bool) {
        let to = RefType {
            nullable,
            heap: self.heap_type(heap),
        };
        let operand = self.pop_operand();
        let v = self.test(operand, to);
        self.count_outcome(v);
        self.push_bool(v);
        let condition = self.stack.last().expect("just pushed").value;
        self.says(condition, Condition::Is(operand.value, to));
    }

    fn ref_cast(&mut self, heap: wasmparser::HeapType, nullable: bool) {
        let to = RefType {
            nullable,
            heap: self.heap_type(heap),
        };
        let operand = self.pop_operand();
        let v = self.test(operand, to);
        self.count_outcome(v);
        self.b.ins().trapz(v, trap_code(TrapKind::CastFailure));
        self.learn(Fact::Is(operand.value, to));
        self.push(operand.value, ValType::Ref(to));
    }

    fn br_on_cast(
        &mut self,
        depth: u32,
        from: wasmparser::RefType,
        to: wasmparser::RefType,
        on_success: bool,
    ) {
        let (from, to) = (self.ref_type(from), self.ref_type(to));
        let operand = self.pop_operand();
        let fits = self.test(operand, to);
        self.count_outcome(fits);
        // What remains after a successful cast is not of the target type: null only if the target does not take it.
        let rest = RefType {
            nullable: from.nullable && !to.nullable,
            heap: from.heap,
        };
        let (taken, stays) = if on_success { (to, rest) } else { (rest, to) };
        self.push(operand.value, ValType::Ref(taken));
        let condition = match on_success {
            true => fits,
            false => self.b.ins().icmp_imm_s(IntCC::Equal, fits, 0),
        };
        let (block, types) = self.target(depth);
        let values = self.branch_args(types.len());
        self.branch_if(condition, block, &values);
        self.pop();
        self.learn(Fact::Is(operand.value, stays));
        self.push(operand.value, ValType::Ref(stays));
    }

    fn non_null(ty: ValType) -> ValType {
        match ty {
            ValType::Ref(r) => ValType::Ref(RefType {
                nullable: false,
                heap: r.heap,
            }),
            t => t,
        }
    }

    /// A conversion between `any` and `extern`: the same reference under another type.
    fn retype(&mut self, heap: HeapType) {
        let operand = self.pop_operand();
        let nullable = matches!(operand.ty, ValType::Ref(r) if r.nullable);
        self.push(operand.value, ValType::Ref(RefType { nullable, heap }));
    }

    /// Whether the operator is one of these.
    pub(super) fn object_op(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            RefNull { hty } => {
                let heap = self.heap_type(hty);
                let v = self.i32(0);
                self.stack.push(super::translate::Operand {
                    value: v,
                    ty: ValType::Ref(RefType {
                        nullable: true,
                        heap,
                    }),
                });
            }
            RefIsNull => {
                let v = self.pop();
                let is = self.b.ins().icmp_imm_s(IntCC::Equal, v, 0);
                self.push_bool(is);
            }
            RefFunc { function_index } => {
                let place = self.env.instance.funcs[function_index as usize];
                let ty = self.env.module.funcs[function_index as usize];
                let v = self.i32(place as i64);
                let heap = HeapType::Concrete(ty, Kind::Func);
                self.push(
                    v,
                    ValType::Ref(RefType {
                        nullable: false,
                        heap,
                    }),
                );
            }
            RefEq => {
                let [a, b] = self.stack[self.stack.len() - 2..] else {
                    unreachable!("validated: two references")
                };
                let v = self.same(a, b);
                self.pop_n(2);
                self.push_bool(v);
            }
            RefAsNonNull => {
                let o = self.pop_operand();
                self.b
                    .ins()
                    .trapz(o.value, trap_code(TrapKind::NullReference));
                self.push(o.value, Self::non_null(o.ty));
            }
            BrOnNull { relative_depth } => {
                let o = self.pop_operand();
                let null = self.b.ins().icmp_imm_s(IntCC::Equal, o.value, 0);
                let (block, types) = self.target(relative_depth);
                let values = self.branch_args(types.len());
                self.branch_if(null, block, &values);
                self.push(o.value, Self::non_null(o.ty));
            }
            BrOnNonNull { relative_depth } => {
                let value = self.stack.last().expect("validated").value;
                let (block, types) = self.target(relative_depth);
                let values = self.branch_args(types.len());
                self.branch_if(value, block, &values);
                self.pop();
            }
            RefI31 => {
                let v = self.pop();
                let v = self.b.ins().ishl_imm_u(v, 1);
                let v = self.b.ins().bor_imm_u(v, layout::I31_TAG as i64);
                self.push(v, I31_NON_NULL);
            }
            I31GetS | I31GetU => {
                let v = self.pop();
                self.b.ins().trapz(v, trap_code(TrapKind::NullReference));
                let v = match op {
                    I31GetS => self.b.ins().sshr_imm_u(v, 1),
                    _ => self.b.ins().ushr_imm_u(v, 1),
                };
                self.push(v, ValType::I32);
            }
            AnyConvertExtern => self.retype(HeapType::Any),
            ExternConvertAny => self.retype(HeapType::Extern),
            RefTestNonNull { hty } => self.ref_test(hty, false),
            RefTestNullable { hty } => self.ref_test(hty, true),
            RefCastNonNull { hty } => self.ref_cast(hty, false),
            RefCastNullable { hty } => self.ref_cast(hty, true),
            BrOnCast {
                relative_depth,
                from_ref_type,
                to_ref_type,
            } => self.br_on_cast(relative_depth, from_ref_type, to_ref_type, true),
            BrOnCastFail {
                relative_depth,
                from_ref_type,
                to_ref_type,
            } => self.br_on_cast(relative_depth, from_ref_type, to_ref_type, false),
            _ => return false,
        }
        true
    }

    /// Whether the operator is one of these.
    pub(super) fn object(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            StructNew { .. } | StructNewDefault { .. } | ArrayNewDefault { .. }
                if self.leave_if_never() => {}
            StructNew { struct_type_index } => {
                let ty = self.env.module.types[struct_type_index as usize];
                let values = self.pop_n(self.env.types.fields(ty).len());
                let v = self.new_struct(ty, &values);
                self.push(v, self.concrete(struct_type_index, false));
            }
            StructNewDefault { struct_type_index } => {
                let ty = self.env.module.types[struct_type_index as usize];
                let v = self.allocate_struct(ty);
                if !self.is_class_data(ty) {
                    self.born_empty(ty);
                }
                self.push(v, self.concrete(struct_type_index, false));
            }
            StructGet {
                struct_type_index,
                field_index,
            }
            | StructGetU {
                struct_type_index,
                field_index,
            } => self.struct_get(struct_type_index, field_index, false),
            StructGetS {
                struct_type_index,
                field_index,
            } => self.struct_get(struct_type_index, field_index, true),
            StructSet {
                struct_type_index,
                field_index,
            } => self.struct_set(struct_type_index, field_index),
            ArrayNew { array_type_index } => self.array_new(array_type_index),
            ArrayNewDefault { array_type_index } => {
                let len = self.pop();
                let v = self.allocate_array(self.env.module.types[array_type_index as usize], len);
                self.push(v, self.concrete(array_type_index, false));
            }
            ArrayNewFixed {
                array_type_index,
                array_size,
            } => self.array_new_fixed(array_type_index, array_size),
            ArrayNewData {
                array_type_index,
                array_data_index,
            } => self.array_from_segment(Helper::ArrayNewData, array_type_index, array_data_index),
            ArrayNewElem {
                array_type_index,
                array_elem_index,
            } => self.array_from_segment(Helper::ArrayNewElem, array_type_index, array_elem_index),
            ArrayGet { array_type_index } | ArrayGetU { array_type_index } => {
                self.array_get(array_type_index, false)
            }
            ArrayGetS { array_type_index } => self.array_get(array_type_index, true),
            ArraySet { array_type_index } => self.array_set(array_type_index),
            ArrayLen => {
                let reference = self.pop();
                let address = self.object_address(reference);
                let v = self.length(reference, address);
                self.count_access(Counted::Read, reference, None);
                self.push(v, ValType::I32);
            }
            ArrayFill { .. } => {
                let o = self.pop_n(4);
                let value = self.bits(o[2]);
                self.call_helper(Helper::ArrayFill, &[o[0], o[1], value, o[3]]);
                self.count_access(Counted::Write, o[0], Some(o[3]));
            }
            ArrayCopy { .. } => {
                let o = self.pop_n(5);
                self.call_helper(Helper::ArrayCopy, &o);
                self.count_access(Counted::Write, o[0], Some(o[4]));
                self.count_access(Counted::Read, o[2], Some(o[4]));
            }
            ArrayInitData {
                array_data_index, ..
            } => self.array_init(Helper::ArrayInitData, array_data_index),
            ArrayInitElem {
                array_elem_index, ..
            } => self.array_init(Helper::ArrayInitElem, array_elem_index),
            _ => return self.object_op(op),
        }
        true
    }
}
