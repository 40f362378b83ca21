//! Type tests and casts.

use super::facts::{Condition, Fact};
use super::slot::Slot;
use super::translate::{Operand, Translator, args};
use super::traps::trap_code;
use crate::error::TrapKind;
use crate::helpers::Helper;
use crate::store::region::{ROW_DEPTH, TYPE_ROW, TYPE_ROWS, displacement, row_kind};
use crate::types::{HeapType, Kind, RefType, TypeIndex, ValType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use varve_heap::layout;
use wasmparser::Operator;

/// Whether a reference of a type may be an integer of 31 bits.
fn may_be_i31(ty: HeapType) -> bool {
    matches!(
        ty,
        HeapType::Any | HeapType::Eq | HeapType::I31 | HeapType::Extern
    )
}

impl Translator<'_, '_> {
    fn row_word(&mut self, ty: Value, word: u32) -> Value {
        let base = self.base();
        let wide = self.ins().uextend(types::I64, ty);
        let byte = self
            .ins()
            .ishl_imm_u(wide, TYPE_ROW.trailing_zeros() as i64);
        let row = self.ins().iadd(base, byte);
        let at = displacement(TYPE_ROWS) + 4 * word as i32;
        self.ins()
            .load(types::I32, MemFlagsData::trusted().with_readonly(), row, at)
    }

    /// Whether a type id is `wanted` or extends it.
    pub(super) fn is_type(&mut self, actual: Value, wanted: TypeIndex) -> Value {
        let canonical = self.env.types.get(wanted);
        let depth = canonical.display.len();
        if canonical.ty.is_final {
            return self.ins().icmp_imm_s(IntCC::Equal, actual, wanted as i64);
        }
        if depth > ROW_DEPTH {
            let wanted = self.i32(wanted as i64);
            let v = self
                .call_helper(Helper::IsSubtype, &[actual, wanted])
                .expect("result");
            return self.ins().ireduce(types::I8, v);
        }
        let ancestor = self.row_word(actual, depth as u32);
        self.ins().icmp_imm_s(IntCC::Equal, ancestor, wanted as i64)
    }

    fn type_of_object(&mut self, reference: Value) -> Value {
        // On one of several paths: pending records must be in memory.
        self.forget_recorded();
        let low = self.load(&Slot::header(reference));
        self.forget_recorded();
        self.ins().band_imm_u(low, (1 << layout::TYPE_BITS) - 1)
    }

    /// Whether a reference, known not to be null, points at something of type `wanted`; an i8.
    fn test_non_null(&mut self, reference: Value, from: HeapType, wanted: HeapType) -> Value {
        use HeapType::*;
        if self.env.types.is_heap_subtype(from, wanted) {
            return self.ins().iconst(types::I8, 1);
        }
        match wanted {
            Any | Func | Extern | Exn => return self.ins().iconst(types::I8, 1),
            None | NoFunc | NoExtern | NoExn => return self.ins().iconst(types::I8, 0),
            Concrete(ty, Kind::Func) => {
                let actual = self.type_of_func(reference, TrapKind::NullReference);
                return self.is_type(actual, ty);
            }
            _ => {}
        }
        let low = self.ins().band_imm_u(reference, layout::I31_TAG as i64);
        let is_i31 = self.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
        if wanted == I31 {
            return is_i31;
        }
        let (object, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I8);
        if may_be_i31(from) {
            let eq = self.ins().iconst(types::I8, (wanted == Eq) as i64);
            self.ins().brif(is_i31, done, &args(&[eq]), object, &[]);
        } else {
            self.ins().jump(object, &[]);
        }
        self.b.seal_block(object);
        self.b.switch_to_block(object);
        let actual = self.type_of_object(reference);
        let fits = match wanted {
            Concrete(ty, _) => self.is_type(actual, ty),
            _ => {
                let kind = self.row_word(actual, 0);
                let (condition, of) = match wanted {
                    Struct => (IntCC::Equal, row_kind::STRUCT),
                    Array => (IntCC::Equal, row_kind::ARRAY),
                    _ => (IntCC::NotEqual, row_kind::OPAQUE),
                };
                self.ins().icmp_imm_s(condition, kind, of as i64)
            }
        };
        self.join(done, fits, result)
    }

    /// Whether a reference is of type `to`; an i8.
    fn test(&mut self, operand: Operand, to: RefType) -> Value {
        let ValType::Ref(from) = operand.ty else {
            unreachable!("validated: a reference")
        };
        if self.is_known(operand.value, to) {
            return self.ins().iconst(types::I8, 1);
        }
        if !from.nullable {
            return self.test_non_null(operand.value, from.heap, to.heap);
        }
        let (some, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I8);
        let null = self.ins().iconst(types::I8, to.nullable as i64);
        self.ins()
            .brif(operand.value, some, &[], done, &args(&[null]));
        self.b.seal_block(some);
        self.b.switch_to_block(some);
        let fits = self.test_non_null(operand.value, from.heap, to.heap);
        self.join(done, fits, result)
    }

    /// Goes on in the last block of a test, with what this path says: the test's result.
    fn join(&mut self, done: Block, fits: Value, result: Value) -> Value {
        self.ins().jump(done, &args(&[fits]));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        result
    }

    /// Takes a reference from the stack: it, the type that is asked for, and whether it is of that type.
    fn tested(&mut self, heap: wasmparser::HeapType, nullable: bool) -> (Operand, RefType, Value) {
        let to = RefType {
            nullable,
            heap: self.heap_type(heap),
        };
        let operand = self.pop_operand();
        let fits = self.test(operand, to);
        self.count_outcome(fits);
        (operand, to, fits)
    }

    fn ref_test(&mut self, heap: wasmparser::HeapType, nullable: bool) {
        let (operand, to, v) = self.tested(heap, nullable);
        self.push_bool(v);
        let condition = self.stack.last().expect("just pushed").value;
        self.says(condition, Condition::Is(operand.value, to));
    }

    fn ref_cast(&mut self, heap: wasmparser::HeapType, nullable: bool) {
        if self.counts() {
            let (operand, to, v) = self.tested(heap, nullable);
            self.ins().trapz(v, trap_code(TrapKind::CastFailure));
            return self.push_cast(operand, to);
        }
        let to = RefType {
            nullable,
            heap: self.heap_type(heap),
        };
        let operand = self.pop_operand();
        self.check_cast(operand, to);
        self.learn(Fact::Is(operand.value, to));
        self.push_cast(operand, to);
    }

    /// Pushes the result of a cast. A value that was never null still is not; observed code checks again.
    fn push_cast(&mut self, operand: Operand, to: RefType) {
        let may_be_null = matches!(operand.ty, ValType::Ref(from) if from.nullable);
        let nullable = to.nullable && (may_be_null || self.observes());
        self.push(operand.value, ValType::Ref(RefType { nullable, ..to }));
    }

    /// Traps where a reference is not of a type. Unlike a test this leaves no truth value behind where paths meet.
    fn check_cast(&mut self, operand: Operand, to: RefType) {
        let ValType::Ref(from) = operand.ty else {
            unreachable!("validated: a reference")
        };
        if self.is_known(operand.value, to) {
            return;
        }
        let failure = trap_code(TrapKind::CastFailure);
        let may_be_null = from.nullable && !self.is_never_null(operand.value);
        let mut done = (may_be_null && to.nullable).then(|| self.b.create_block());
        match done {
            Some(null) => {
                let some = self.b.create_block();
                self.ins().brif(operand.value, some, &[], null, &[]);
                self.b.seal_block(some);
                if self.null_is_asked {
                    // The answer is known there: the paths do not meet.
                    self.b.seal_block(null);
                    self.null_path = Some((null, self.facts.clone()));
                    done = None;
                }
                self.b.switch_to_block(some);
            }
            None if may_be_null => {
                self.ins().trapz(operand.value, failure);
            }
            None => {}
        }
        match self.leaf(from.heap, to.heap) {
            Some(ty) => self.check_leaf(operand.value, from.heap, ty),
            None => {
                let fits = self.test_non_null(operand.value, from.heap, to.heap);
                self.ins().trapz(fits, failure);
            }
        }
        if self.null_path.is_some() {
            self.learn_type(operand.value, Self::non_null(ValType::Ref(to)));
        }
        if let Some(done) = done {
            self.ins().jump(done, &[]);
            self.b.seal_block(done);
            self.b.switch_to_block(done);
        }
    }

    /// The type that a cast asks for, if no module has extended it yet though one may: then an object of it is most likely of just that type.
    fn leaf(&self, from: HeapType, wanted: HeapType) -> Option<TypeIndex> {
        let HeapType::Concrete(ty, Kind::Struct | Kind::Array) = wanted else {
            return None;
        };
        let types = self.env.types;
        let is_leaf = !types.get(ty).ty.is_final && !types.get(ty).extended;
        let is_known = types.is_heap_subtype(from, wanted);
        (is_leaf && !is_known).then_some(ty)
    }

    /// Traps where an object, of a reference that is not null, is not of a type: compares with the type itself first, which needs no
    /// more than the object's header.
    fn check_leaf(&mut self, reference: Value, from: HeapType, ty: TypeIndex) {
        let failure = trap_code(TrapKind::CastFailure);
        if may_be_i31(from) {
            let tag = self.ins().band_imm_u(reference, layout::I31_TAG as i64);
            self.ins().trapnz(tag, failure);
        }
        let actual = self.type_of_object(reference);
        let same = self.ins().icmp_imm_s(IntCC::Equal, actual, ty as i64);
        let (other, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(other);
        self.ins().brif(same, done, &[], other, &[]);
        self.b.seal_block(other);
        self.b.switch_to_block(other);
        let fits = self.is_type(actual, ty);
        self.ins().trapz(fits, failure);
        self.ins().jump(done, &[]);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
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
        // The value that remains after a successful cast is not of the target type: null only if the target excludes null.
        let rest = RefType {
            nullable: from.nullable && !to.nullable,
            heap: from.heap,
        };
        let (taken, stays) = if on_success { (to, rest) } else { (rest, to) };
        self.push(operand.value, ValType::Ref(taken));
        let condition = match on_success {
            true => fits,
            false => self.ins().icmp_imm_s(IntCC::Equal, fits, 0),
        };
        let (block, types) = self.target(depth);
        let values = self.branch_args(types.len());
        self.branch_if(condition, block, &values);
        self.pop();
        self.learn(Fact::Is(operand.value, stays));
        self.push(operand.value, ValType::Ref(stays));
    }

    /// Translates a type test or cast; whether the operator is one.
    pub(super) fn translate_cast(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
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
}
