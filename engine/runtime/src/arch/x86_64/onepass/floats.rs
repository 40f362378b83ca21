//! Arithmetic, comparisons and conversions of floats.

use super::Generator;
use super::assembler::{Alu, Cond, FLOAT_SCRATCH, Place, Reg, SCRATCH, Size};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value, types};

/// Last bytes of opcodes.
const SQRT: u8 = 0x51;
const AND: u8 = 0x54;
const AND_NOT: u8 = 0x55;
const OR: u8 = 0x56;
pub(super) const XOR: u8 = 0x57;
const ADD: u8 = 0x58;
const MULTIPLY: u8 = 0x59;
const CONVERT: u8 = 0x5A;
const SUBTRACT: u8 = 0x5C;
const MIN: u8 = 0x5D;
const DIVIDE: u8 = 0x5E;
const MAX: u8 = 0x5F;

fn sign(double: bool) -> i64 {
    if double { i64::MIN } else { 1 << 31 }
}

impl Generator<'_> {
    pub fn float(&mut self, inst: Inst) -> Option<()> {
        use Opcode::*;
        let opcode = self.func.dfg.insts[inst].opcode();
        let ty = self.type_of(self.result(inst));
        let double = ty == types::F64;
        match opcode {
            Fadd => self.float_binary(inst, ADD),
            Fsub => self.float_binary(inst, SUBTRACT),
            Fmul => self.float_binary(inst, MULTIPLY),
            Fdiv => self.float_binary(inst, DIVIDE),
            Sqrt => self.float_unary(inst, |g, to, from| {
                g.asm.float(double, SQRT, to, Place::Reg(from));
            }),
            Fpromote => self.float_unary(inst, |g, to, from| {
                g.asm.float(false, CONVERT, to, Place::Reg(from));
            }),
            Fdemote => self.float_unary(inst, |g, to, from| {
                g.asm.float(true, CONVERT, to, Place::Reg(from));
            }),
            Ceil | Floor | Trunc | Nearest if is_x86_feature_detected!("sse4.1") => {
                let mode = match opcode {
                    Nearest => 0,
                    Floor => 1,
                    Ceil => 2,
                    _ => 3,
                };
                self.float_unary(inst, |g, to, from| g.asm.round(double, to, from, mode));
            }
            Fneg => self.with_mask(inst, XOR, sign(double)),
            Fabs => self.with_mask(inst, AND, !sign(double)),
            Fcopysign => self.copy_sign(inst, double),
            Fmin | Fmax => self.extreme(inst, double, opcode == Fmin),
            Fcmp => return self.compare_floats(inst),
            FcvtFromSint => return self.integer_to_float(inst, double, true),
            FcvtFromUint => return self.integer_to_float(inst, double, false),
            FcvtToSintSat => return self.float_to_integer(inst, ty),
            Bitcast => return self.bitcast(inst, ty),
            _ => return None,
        }
        Some(())
    }

    fn float_binary(&mut self, inst: Inst, opcode: u8) {
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let double = self.type_of(result) == types::F64;
        let (from, with) = (self.operand(a), self.operand(b));
        self.used(a);
        self.used(b);
        let to = self.copy(from);
        self.asm.float(double, opcode, to, Place::Reg(with));
        self.define(result, to);
    }

    fn float_unary(&mut self, inst: Inst, f: impl FnOnce(&mut Self, Reg, Reg)) {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let reg = self.operand(from);
        self.used(from);
        let to = self.target(reg, true);
        f(self, to, reg);
        self.define(result, to);
    }

    /// An operation of the bits with a constant's.
    fn with_mask(&mut self, inst: Inst, opcode: u8, mask: i64) {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let reg = self.operand(from);
        self.used(from);
        let to = self.copy(reg);
        self.make_constant(FLOAT_SCRATCH, mask);
        self.asm.float_bits(opcode, to, FLOAT_SCRATCH);
        self.define(result, to);
    }

    fn copy_sign(&mut self, inst: Inst, double: bool) {
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let (from, with) = (self.operand(a), self.operand(b));
        self.used(a);
        self.used(b);
        // Not in the register of `b`, which is read last.
        let to = self.register(true);
        self.make_constant(FLOAT_SCRATCH, sign(double));
        self.asm.mov(to, FLOAT_SCRATCH);
        self.asm.float_bits(AND_NOT, to, from);
        self.asm.float_bits(AND, FLOAT_SCRATCH, with);
        self.asm.float_bits(OR, to, FLOAT_SCRATCH);
        self.define(result, to);
    }

    /// The smaller or larger one: of zeros by their signs, and not a number if one is none.
    fn extreme(&mut self, inst: Inst, double: bool, smaller: bool) {
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let (from, with) = (self.operand(a), self.operand(b));
        self.used(a);
        self.used(b);
        let to = self.register(true);
        self.asm.mov(to, from);
        self.asm.compare_floats(double, to, with);
        let differ = self.asm.jump_if(Cond::NOT_EQUAL);
        let nan = self.asm.jump_if(Cond::PARITY);
        // Equal: only zeros can have other bits.
        let opcode = if smaller { OR } else { AND };
        self.asm.float_bits(opcode, to, with);
        let done = self.asm.jump();
        let here = self.asm.at();
        self.asm.patch(nan, here);
        self.asm.float(double, ADD, to, Place::Reg(with));
        let done_too = self.asm.jump();
        let here = self.asm.at();
        self.asm.patch(differ, here);
        let opcode = if smaller { MIN } else { MAX };
        self.asm.float(double, opcode, to, Place::Reg(with));
        let here = self.asm.at();
        self.asm.patch(done, here);
        self.asm.patch(done_too, here);
        self.define(result, to);
    }

    fn compare_floats(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::FloatCompare { cond, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let double = self.type_of(a) == types::F64;
        let (mut x, mut y) = (self.operand(a), self.operand(b));
        self.used(a);
        self.used(b);
        // A NaN sets the flags of "below" and of "equal".
        let (cond, swap) = match cond {
            FloatCC::Equal | FloatCC::NotEqual => {
                self.asm.compare_floats(double, x, y);
                let to = self.register(false);
                let equal = cond == FloatCC::Equal;
                let (first, second, op) = match equal {
                    true => (Cond::EQUAL, Cond::NO_PARITY, Alu::And),
                    false => (Cond::NOT_EQUAL, Cond::PARITY, Alu::Or),
                };
                self.asm.set(first, to);
                self.asm.set(second, SCRATCH);
                self.asm.alu(op, Size::Word, to, Place::Reg(SCRATCH));
                self.define(result, to);
                return Some(());
            }
            FloatCC::GreaterThan => (Cond::ABOVE, false),
            FloatCC::GreaterThanOrEqual => (Cond::ABOVE_EQUAL, false),
            FloatCC::LessThan => (Cond::ABOVE, true),
            FloatCC::LessThanOrEqual => (Cond::ABOVE_EQUAL, true),
            FloatCC::UnorderedOrLessThan => (Cond::BELOW, false),
            FloatCC::UnorderedOrLessThanOrEqual => (Cond::BELOW_EQUAL, false),
            FloatCC::UnorderedOrGreaterThan => (Cond::BELOW, true),
            FloatCC::UnorderedOrGreaterThanOrEqual => (Cond::BELOW_EQUAL, true),
            FloatCC::Ordered => (Cond::NO_PARITY, false),
            FloatCC::Unordered => (Cond::PARITY, false),
            FloatCC::OrderedNotEqual => (Cond::NOT_EQUAL, false),
            FloatCC::UnorderedOrEqual => (Cond::EQUAL, false),
        };
        if swap {
            (x, y) = (y, x);
        }
        self.asm.compare_floats(double, x, y);
        self.outcome(inst, cond);
        Some(())
    }

    fn integer_to_float(&mut self, inst: Inst, double: bool, signed: bool) -> Option<()> {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let wide = match (self.type_of(from), signed) {
            (types::I32, _) => !signed,
            (types::I64, true) => true,
            _ => return None,
        };
        let mut reg = self.operand(from);
        if !signed {
            self.asm.mov_word(SCRATCH, reg);
            reg = SCRATCH;
        }
        self.used(from);
        let to = self.register(true);
        // The instruction keeps the upper part, and would wait for it.
        self.asm.float_bits(XOR, to, to);
        self.asm.convert_integer(double, wide, to, reg);
        self.define(result, to);
        Some(())
    }

    fn float_to_integer(&mut self, inst: Inst, ty: Type) -> Option<()> {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let double = self.type_of(from) == types::F64;
        let (wide, size) = match ty {
            types::I32 => (false, Size::Word),
            types::I64 => (true, Size::Double),
            _ => return None,
        };
        let reg = self.operand(from);
        let to = self.register(false);
        self.asm.truncate(double, wide, to, reg);
        // The lowest number stands for what has no place: less 1, it overflows.
        self.asm.alu_constant(Alu::Cmp, size, Place::Reg(to), 1);
        let done = self.asm.jump_if(Cond(1));
        self.asm.float_bits(XOR, FLOAT_SCRATCH, FLOAT_SCRATCH);
        self.asm.compare_floats(double, reg, FLOAT_SCRATCH);
        let number = self.asm.jump_if(Cond::NO_PARITY);
        self.asm.constant(to, 0);
        let zero = self.asm.jump();
        let here = self.asm.at();
        self.asm.patch(number, here);
        let negative = self.asm.jump_if(Cond::BELOW);
        let highest = if wide { i64::MAX } else { i32::MAX.into() };
        self.asm.constant(to, highest);
        let here = self.asm.at();
        for field in [done, zero, negative] {
            self.asm.patch(field, here);
        }
        self.used(from);
        self.define(result, to);
        Some(())
    }

    fn bitcast(&mut self, inst: Inst, ty: Type) -> Option<()> {
        let (from, result): (Value, Value) = (self.arg(inst, 0), self.result(inst));
        let double = match (self.type_of(from), ty) {
            (types::I32, types::F32) | (types::F32, types::I32) => false,
            (types::I64, types::F64) | (types::F64, types::I64) => true,
            _ => return None,
        };
        let reg = self.operand(from);
        self.used(from);
        let to = self.register(ty.is_float());
        match ty.is_float() {
            true => self.asm.bits_to_float(double, to, reg),
            false => self.asm.bits_of_float(double, to, reg),
        }
        self.define(result, to);
        Some(())
    }
}
