//! Throws that are left out of code.
//!
//! Compilers of Java write a throw for each null check and bounds check, and hardly one ever runs:
//!
//! ```text
//! block $some (param (ref null $T)) (result (ref null $T))
//!   br_on_non_null $some
//!   call $npe  throw $java        <- left out
//! end
//! ```
//!
//! Neither a local nor an operand is needed there. If nothing in the code catches the exception, nothing of the activation is. So there is a
//! trap with a code of its own, which says where the call is. If control ever reaches it, the runtime takes the frame away, and goes on in code
//! that has the call and the throw alone (`store/tier/left_out.rs`). Then the function's code is made anew, with its throws.

use super::control::FrameKind;
use super::isa::Level;
use super::slot::Slot;
use super::translate::{Operand, Start, Translator, broken};
use super::traps::{MOST_LEFT_OUT, left_out_code};
use crate::error::Result;
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, TrapCode};
use wasmparser::{BinaryReader, BlockType, Operator, OperatorsReader};

/// Operators by their first bytes, for a look ahead at many places that hardly costs anything.
mod opcode {
    pub const BLOCK: u8 = 0x02;
    pub const THROW: u8 = 0x08;
    pub const END: u8 = 0x0b;
    pub const BR_IF: u8 = 0x0d;
    pub const CALL: u8 = 0x10;
    pub const LOCAL_GET: u8 = 0x20;
    pub const I32_CONST: u8 = 0x41;
    pub const I32_LT_S: u8 = 0x48;
    pub const BR_ON_NON_NULL: u8 = 0xd6;
    /// The first of two bytes of operators on objects, and the second of `array.len`.
    pub const OBJECTS: u8 = 0xfb;
    pub const ARRAY_LEN: u8 = 0x0f;
    /// A block without parameters and results.
    pub const EMPTY: u8 = 0x40;
}

/// Reads an operator without immediates, if it is the next one.
fn is(code: &mut BinaryReader<'_>, opcode: u8) -> Option<()> {
    (code.read_u8().ok()? == opcode).then_some(())
}

/// The same with an index or a number.
fn index(code: &mut BinaryReader<'_>, opcode: u8) -> Option<u32> {
    is(code, opcode)?;
    code.read_var_u32().ok()
}

/// A check of an index, by the numbers of the locals that are index and array, and by where the call before the throw is.
struct RangeCheck {
    index: u32,
    array: u32,
    throw: u32,
}

/// Operators of such checks, and of a null check, that follow their first one.
const RANGE_CHECK: usize = 14;
const NULL_CHECK: usize = 4;

impl Translator<'_, '_> {
    /// Translates an operator, and perhaps some after it, where they come to a throw that is left out; whether they do.
    pub(super) fn leave_out(
        &mut self,
        op: &Operator<'_>,
        reader: &mut OperatorsReader<'_>,
    ) -> Result<bool> {
        let mut code = reader.get_binary_reader();
        let code = &mut code;
        match *op {
            Operator::Call { function_index } => {
                if self.is_payload(function_index, code).is_none() {
                    return Ok(false);
                }
                if !self.may_leave_out(self.offset) {
                    // Baseline code that leaves it out does not count it.
                    return Ok(self.never_throws(self.offset) && self.leave_here());
                }
                self.forget_called();
                let code = self.throw_code(self.offset);
                self.ins().trap(code);
                self.dead();
                Ok(true)
            }
            Operator::Block { blockty } => {
                if let Some(throw) = self.null_check(blockty, code) {
                    self.check_null(throw);
                    self.skip(NULL_CHECK, reader)?;
                    return Ok(true);
                }
                if blockty == BlockType::Empty
                    && let Some(check) = self.range_check(code)
                {
                    self.check_range(&check);
                    self.skip(RANGE_CHECK, reader)?;
                    return Ok(true);
                }
                Ok(false)
            }
            // The result of the cast is tested for null right after that.
            Operator::RefCastNullable { .. } => {
                if let Some(throw) = self.null_check_ahead(code) {
                    self.check_null(throw);
                }
                Ok(false)
            }
            Operator::BrIf { relative_depth } => self.branch_or_throw(relative_depth, code),
            _ => Ok(false),
        }
    }

    /// Whether a throw whose call is at an offset may be left out here.
    fn may_leave_out(&self, throw: u32) -> bool {
        let is_kind = match (self.job.level, &self.job.start) {
            (Level::Baseline, Start::Function) => true,
            (Level::Baseline, _) => false,
            (Level::Optimizing, _) => self.job.speculates,
        };
        // A maker's throw would have to know who called the maker.
        let is_made = self.activations.iter().any(|a| a.makes);
        let has_room = self.left_out.len() < MOST_LEFT_OUT;
        is_kind && has_room && !is_made && self.handlers.is_empty() && self.never_throws(throw)
    }

    /// Whether baseline code has not come to a throw yet. Observed code always has its throws, and counts them.
    fn never_throws(&self, throw: u32) -> bool {
        let Some(feedback) = self.env.feedback.get(&self.activation().func_id) else {
            return false;
        };
        let count = feedback.count(self.env.region, throw);
        !self.observes() && !feedback.throws && count.unwrap_or_default() == 0
    }

    /// Whether a function of this module takes no operands, and the next operator throws its result.
    fn is_payload(&self, func: u32, code: &mut BinaryReader<'_>) -> Option<()> {
        let tag = index(code, opcode::THROW)?;
        let module = self.env.module;
        let of = self.env.types.func(module.funcs[func as usize]);
        let thrown = self.env.types.exception_of(module.tags[tag as usize]);
        // The first field is the tag.
        let carried = self.env.types.fields(thrown).len() - 1;
        let is_own = func >= module.imported_funcs;
        (is_own && of.params.is_empty() && of.results.len() == carried).then_some(())
    }

    /// Whether a call of such a function and a throw come next: where the call is.
    fn throw_ahead(&self, code: &mut BinaryReader<'_>) -> Option<u32> {
        let at = code.original_position() as u32;
        let func = index(code, opcode::CALL)?;
        self.is_payload(func, code)?;
        self.may_leave_out(at).then_some(at)
    }

    /// The rest of a null check, whose block has just begun.
    fn null_check(&self, ty: BlockType, code: &mut BinaryReader<'_>) -> Option<u32> {
        let BlockType::FuncType(ty) = ty else {
            return None;
        };
        let ty = self.env.types.func(self.env.module.types[ty as usize]);
        if (ty.params.len(), ty.results.len()) != (1, 1) || self.null_path.is_some() {
            return None;
        }
        (index(code, opcode::BR_ON_NON_NULL)? == 0).then_some(())?;
        let throw = self.throw_ahead(code)?;
        is(code, opcode::END)?;
        Some(throw)
    }

    /// A whole null check.
    fn null_check_ahead(&self, code: &mut BinaryReader<'_>) -> Option<u32> {
        is(code, opcode::BLOCK)?;
        let ty = u32::try_from(code.read_var_s33().ok()?).ok()?;
        self.null_check(BlockType::FuncType(ty), code)
    }

    /// The topmost operand is not null from here on.
    fn check_null(&mut self, throw: u32) {
        let operand = *self.stack.last().expect("validated");
        let ty = Self::non_null(operand.ty);
        if !self.is_some(operand) {
            let code = self.throw_code(throw);
            self.ins().trapz(operand.value, code);
            self.learn_type(operand.value, ty);
        }
        *self.stack.last_mut().expect("validated") = Operand { ty, ..operand };
    }

    /// The rest of a check of an index against an array's length, whose outer block has just begun; see `ranges`. In baseline code: optimized
    /// code learns more from the two comparisons.
    fn range_check(&self, code: &mut BinaryReader<'_>) -> Option<RangeCheck> {
        use opcode::*;
        if self.job.level != Level::Baseline || self.env.checks.is_some() {
            return None;
        }
        let expect = |found: Option<u32>, wanted: u32| (found? == wanted).then_some(());
        is(code, BLOCK)?;
        is(code, EMPTY)?;
        let local = index(code, LOCAL_GET)?;
        expect(index(code, I32_CONST), 0)?;
        is(code, I32_LT_S)?;
        expect(index(code, BR_IF), 0)?;
        expect(index(code, LOCAL_GET), local)?;
        let array = index(code, LOCAL_GET)?;
        is(code, OBJECTS)?;
        is(code, ARRAY_LEN)?;
        is(code, I32_LT_S)?;
        expect(index(code, BR_IF), 1)?;
        is(code, END)?;
        let throw = self.throw_ahead(code)?;
        is(code, END)?;
        let ty = self.locals[self.activation().locals + array as usize].ty;
        // Another one traps, if the index is not negative.
        let is_never_null = matches!(ty, ValType::Ref(r) if !r.nullable);
        is_never_null.then_some(RangeCheck {
            index: local,
            array,
            throw,
        })
    }

    fn check_range(&mut self, check: &RangeCheck) {
        let first = self.activation().locals;
        let [index, array] = [check.index, check.array]
            .map(|local| self.locals[first + local as usize].variable)
            .map(|local| self.value_of(local));
        let length = self.load(&Slot {
            counted: true,
            ..Slot::length(array)
        });
        if !self.is_in_bounds(array, index) {
            let compare = IntCC::UnsignedGreaterThanOrEqual;
            let is_out = self.ins().icmp(compare, index, length);
            let code = self.throw_code(check.throw);
            self.ins().trapnz(is_out, code);
            self.learn_in_bounds(array, index);
        }
    }

    /// A branch that is taken if all is well, where the block around it ends with a throw after its end.
    fn branch_or_throw(&mut self, depth: u32, code: &mut BinaryReader<'_>) -> Result<bool> {
        if is(code, opcode::END).is_none() {
            return Ok(false);
        }
        let Some(throw) = self.throw_ahead(code) else {
            return Ok(false);
        };
        let condition = self.stack.last().expect("validated").value;
        if self.constant(condition).is_some() || !self.leads_on(depth) {
            return Ok(false);
        }
        self.pop();
        let code = self.throw_code(throw);
        self.ins().trapz(condition, code);
        self.learn_condition(condition, true);
        self.branch(depth);
        Ok(true)
    }

    /// The trap code of a throw that is left out, by the offset of the call before it.
    fn throw_code(&mut self, throw: u32) -> TrapCode {
        let here = std::mem::replace(&mut self.offset, throw);
        let location = self.location();
        self.offset = here;
        self.left_out.push(location);
        left_out_code(self.left_out.len() - 1).expect("there was room")
    }

    /// Whether a branch leads to the end of a block, and not to a loop's beginning.
    fn leads_on(&self, depth: u32) -> bool {
        let frame = &self.control[self.control.len() - 1 - depth as usize];
        matches!(frame.kind, FrameKind::Block)
    }

    fn skip(&mut self, operators: usize, reader: &mut OperatorsReader<'_>) -> Result<()> {
        for _ in 0..operators {
            reader.read().map_err(broken)?;
        }
        Ok(())
    }

    // ---- code of a throw --------------------------------------------------------------------------------------------------------

    /// The beginning of code that is a throw which other code leaves out.
    pub(super) fn begin_throw(&mut self, reader: &mut OperatorsReader<'_>, at: u32) -> Result<()> {
        self.begin_at(at);
        self.open_function();
        while reader.original_position() < u64::from(at) {
            reader.read().map_err(broken)?;
        }
        Ok(())
    }

    /// The call, and the throw.
    pub(super) fn end_throw(&mut self, mut reader: OperatorsReader<'_>) -> Result<()> {
        for _ in 0..2 {
            self.offset = reader.original_position() as u32;
            let op = reader.read().map_err(broken)?;
            self.next_offset = reader.original_position() as u32;
            self.step(&op)?;
        }
        self.control.clear();
        Ok(())
    }
}
