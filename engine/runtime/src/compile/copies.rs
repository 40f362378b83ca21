//! Copies of elements that are no references, without the runtime: of a few in a loop, as strings of some characters have them, of more by
//! the C library.

use super::isa::Level;
use super::slot::Slot;
use super::translate::{Translator, args};
use crate::code::link::Native;
use crate::error::TrapKind;
use crate::types::{TypeIndex, array_base};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Type, Value, types};
use cranelift_codegen::isa::CallConv;

/// Most elements that are copied in a loop. An assumption: about the number that takes as long as a call.
const FEW: i64 = 8;

impl Translator<'_, '_> {
    /// Whether a copy between arrays of a type has no observer besides the program.
    pub(super) fn copies_inline(&self, ty: TypeIndex) -> bool {
        let element = self.env.types.element(ty).storage;
        self.job.level == Level::Optimizing
            && !element.is_managed()
            && element.bytes() <= 8
            && !self.observes()
            && self.env.checks.is_none()
            && !self.env.heap.monitors()
    }

    /// Copies elements: `operands` are those of `array.copy`.
    pub(super) fn copy_inline(&mut self, ty: TypeIndex, operands: &[Value]) {
        let &[to, to_start, from, from_start, len] = operands else {
            unreachable!("validated: five operands")
        };
        let lengths = [to, from].map(|array| self.load(&Slot::length(array)));
        let count = self.ins().uextend(types::I64, len);
        for (start, length) in [to_start, from_start].into_iter().zip(lengths) {
            let start = self.ins().uextend(types::I64, start);
            let end = self.ins().iadd(start, count);
            let length = self.ins().uextend(types::I64, length);
            let out = self.ins().icmp(IntCC::UnsignedGreaterThan, end, length);
            self.trap_if(out, TrapKind::ArrayOutOfBounds);
        }
        let size = self.env.types.element(ty).storage.bytes();
        let to_address = self.element_at(to, to_start, size);
        let from_address = self.element_at(from, from_start, size);
        let bytes = self
            .ins()
            .ishl_imm_u(count, i64::from(size.trailing_zeros()));
        let (few, many, done) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        // Within one array a loop would have to know which of the two is behind the other.
        let is_few = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThanOrEqual, len, FEW);
        let others = self.ins().icmp(IntCC::NotEqual, to, from);
        let by_loop = self.ins().band(is_few, others);
        self.ins().brif(by_loop, few, &[], many, &[]);
        self.b.seal_block(few);
        self.b.seal_block(many);
        self.b.switch_to_block(few);
        let part = Type::int(8 * size as u16).expect("a power of two up to eight bytes");
        self.copy_few(ty, part, to_address, from_address, bytes, done);
        self.b.switch_to_block(many);
        self.call_memmove(to_address, from_address, bytes);
        self.ins().jump(done, &[]);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.forget_elements();
    }

    fn element_at(&mut self, array: Value, index: Value, size: u32) -> Value {
        let address = self.object_address(array);
        let wide = self.ins().uextend(types::I64, index);
        let byte = self
            .ins()
            .ishl_imm_u(wide, i64::from(size.trailing_zeros()));
        let address = self.ins().iadd(address, byte);
        self.ins().iadd_imm_s(address, i64::from(array_base(size)))
    }

    /// A loop over elements as wide as `part`; goes on in `done`.
    fn copy_few(
        &mut self,
        ty: TypeIndex,
        part: Type,
        to: Value,
        from: Value,
        bytes: Value,
        done: ir::Block,
    ) {
        let (head, body) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        let zero = self.i64(0);
        self.ins().jump(head, &args(&[zero]));
        self.b.switch_to_block(head);
        let more = self.ins().icmp(IntCC::UnsignedLessThan, at, bytes);
        self.ins().brif(more, body, &[], done, &[]);
        self.b.seal_block(body);
        self.b.switch_to_block(body);
        let flags = self.trusted(self.element_region(ty));
        let source = self.ins().iadd(from, at);
        let value = self.ins().load(part, flags, source, 0);
        let target = self.ins().iadd(to, at);
        self.ins().store(flags, value, target, 0);
        let next = self.ins().iadd_imm_s(at, i64::from(part.bytes()));
        self.ins().jump(head, &args(&[next]));
        self.b.seal_block(head);
    }

    /// Nothing can collect while it runs, so that addresses stay what they are.
    fn call_memmove(&mut self, to: Value, from: Value, bytes: Value) {
        let signature = || {
            let mut sig = ir::Signature::new(CallConv::SystemV);
            sig.params.extend([ir::AbiParam::new(types::I64); 3]);
            sig.returns.push(ir::AbiParam::new(types::I64));
            sig
        };
        self.call_native(Native::Memmove, signature, &[to, from, bytes]);
    }
}
