//! Allocation: inline where the nursery has room, else by the runtime.

use super::alias::Region;
use super::facts::Fact;
use super::signatures::REFERENCE;
use super::translate::{Translator, args};
use crate::helpers::Helper;
use crate::store::region::{CONTEXT, Context, displacement};
use crate::types::{TypeIndex, array_base};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use std::mem::offset_of;
use varve_access::Kind as Access;
use varve_heap::layout;

/// Longest array that is allocated inline: larger ones may not fit into any nursery.
const INLINE_ARRAY_BYTES: u64 = 4096;

/// An object that is being allocated.
struct Birth {
    ty: TypeIndex,
    /// Its allocation site.
    site: u32,
    /// Where the runtime makes it.
    slow: Block,
    /// Where it is there.
    done: Block,
    /// The reference to it, there.
    object: Value,
}

impl Translator<'_, '_> {
    /// The number of the operator's allocation site: that of its call if it is in a maker.
    pub(super) fn site(&mut self) -> u32 {
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
    fn bump(&mut self, size: Value, slow: Block) -> Value {
        let base = self.base();
        let flags = self.trusted(Region::Mutator);
        let mutator = displacement(CONTEXT) + offset_of!(Context, mutator) as i32;
        let cursor = self
            .ins()
            .load(types::I64, flags, base, mutator + layout::MUTATOR_CURSOR);
        let limit = self
            .ins()
            .load(types::I64, flags, base, mutator + layout::MUTATOR_LIMIT);
        let end = self.ins().iadd(cursor, size);
        let full = self.ins().icmp(IntCC::UnsignedGreaterThan, end, limit);
        let fast = self.b.create_block();
        self.ins().brif(full, slow, &[], fast, &[]);
        self.b.seal_block(fast);
        self.b.switch_to_block(fast);
        let base = self.base();
        self.ins()
            .store(flags, end, base, mutator + layout::MUTATOR_CURSOR);
        cursor
    }

    fn reference_to(&mut self, address: Value) -> Value {
        let base = self.base();
        let byte = self.ins().isub(address, base);
        let shift = self.env.align.shift() as i64;
        self.ins().ushr_imm_u(byte, shift)
    }

    /// Writes a header, and gives the constant.
    fn header(&mut self, address: Value, ty: TypeIndex, site: u32) -> Value {
        let temperature = self.env.sites.temperature(site);
        let header = layout::new_header(ty, site, temperature) as i64;
        let header = self.own_constant(types::I64, header);
        let flags = self.trusted(Region::Headers);
        self.ins().store(flags, header, address, 0);
        header
    }

    /// A fresh object with zeroed fields: inline if the nursery has room.
    pub(super) fn allocate_struct(&mut self, ty: TypeIndex) -> Value {
        if self.is_class_data(ty) {
            return self.allocate_class_data(ty);
        }
        let site = self.site();
        let size = self.env.types.get(ty).layout.size;
        let size = self.i64(self.env.align.object_size(size.into()) as i64);
        let birth = self.begin_birth(ty, site);
        let address = self.bump(size, birth.slow);
        let header = self.header(address, ty, site);
        self.end_birth(birth, address, header, None)
    }

    fn begin_birth(&mut self, ty: TypeIndex, site: u32) -> Birth {
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        let object = self.b.append_block_param(done, REFERENCE);
        Birth {
            ty,
            site,
            slow,
            done,
            object,
        }
    }

    /// The object at `address`, or without room in the nursery the runtime's; `len` is that of an array.
    fn end_birth(
        &mut self,
        birth: Birth,
        address: Value,
        header: Value,
        len: Option<Value>,
    ) -> Value {
        let (helper, written) = match len {
            None => (Helper::AllocStruct, layout::HEADER_SIZE),
            Some(_) => (Helper::AllocArray, layout::ARRAY_NARROW_BASE),
        };
        let object = birth.object;
        let reference = self.reference_to(address);
        self.ins().jump(birth.done, &args(&[reference]));
        self.b.seal_block(birth.slow);
        self.b.switch_to_block(birth.slow);
        let ty = self.i32(birth.ty as i64);
        let site = self.own_constant(types::I32, birth.site.into());
        self.born(object, Some(header), site);
        let arguments: Vec<Value> = [Some(ty), len, Some(site)].into_iter().flatten().collect();
        let reference = self.call_helper(helper, &arguments).expect("result");
        self.ins().jump(birth.done, &args(&[reference]));
        self.b.seal_block(birth.done);
        self.b.switch_to_block(birth.done);
        self.track(object);
        self.record_birth(object, written);
        self.fresh.push(object);
        self.learn(Fact::Volatile(object));
        object
    }

    /// Records the writes of a header, and of an array's length.
    fn record_birth(&mut self, reference: Value, bytes: u32) {
        if self.observes() {
            let address = self.object_address(reference);
            self.observe(Access::Write, None, address, 0, bytes);
        }
    }

    pub(super) fn allocate_array(&mut self, ty: TypeIndex, len: Value) -> Value {
        let site = self.site();
        let element = self.env.types.element(ty).storage.bytes();
        let birth = self.begin_birth(ty, site);
        let small = self.b.create_block();
        let most = (INLINE_ARRAY_BYTES - array_base(element) as u64) / element as u64;
        let long = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThan, len, most as i64);
        self.ins().brif(long, birth.slow, &[], small, &[]);
        self.b.seal_block(small);
        self.b.switch_to_block(small);
        let wide = self.ins().uextend(types::I64, len);
        let bytes = self.ins().ishl_imm_u(wide, element.trailing_zeros() as i64);
        let most = self.env.align.bytes() as i64 - 1;
        let bytes = self
            .ins()
            .iadd_imm_s(bytes, array_base(element) as i64 + most);
        let size = self.ins().band_imm_s(bytes, !most);
        let address = self.bump(size, birth.slow);
        let header = self.header(address, ty, site);
        let flags = self.trusted(Region::Lengths);
        self.ins().store(flags, len, address, layout::ARRAY_LENGTH);
        self.end_birth(birth, address, header, Some(len))
    }
}
