//! Arithmetic, comparisons and conversions of integers.

use super::Generator;
use super::assembler::{Alu, Cond, Place, RAX, RCX, RDX, RSP, SCRATCH, Shift, Size, is_float};
use super::plan::What;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, TrapCode, Type, Value, types};

/// The operation that has room for a value of a type. Upper parts of registers are whatever they are.
fn size(ty: Type) -> Size {
    match ty {
        types::I64 => Size::Double,
        _ => Size::Word,
    }
}

fn condition(cc: IntCC) -> Cond {
    match cc {
        IntCC::Equal => Cond::EQUAL,
        IntCC::NotEqual => Cond::NOT_EQUAL,
        IntCC::SignedLessThan => Cond::LESS,
        IntCC::SignedGreaterThanOrEqual => Cond::GREATER_EQUAL,
        IntCC::SignedGreaterThan => Cond::GREATER,
        IntCC::SignedLessThanOrEqual => Cond::LESS_EQUAL,
        IntCC::UnsignedLessThan => Cond::BELOW,
        IntCC::UnsignedGreaterThanOrEqual => Cond::ABOVE_EQUAL,
        IntCC::UnsignedGreaterThan => Cond::ABOVE,
        IntCC::UnsignedLessThanOrEqual => Cond::BELOW_EQUAL,
    }
}

fn is_small(ty: Type) -> bool {
    matches!(ty, types::I8 | types::I16)
}

impl Generator<'_> {
    pub fn type_of(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    pub fn integer(&mut self, inst: Inst) -> Option<()> {
        use Opcode::*;
        let opcode = self.func.dfg.insts[inst].opcode();
        let result = self.result(inst);
        let ty = self.type_of(result);
        match opcode {
            Iadd => self.add(inst),
            Isub => self.alu(inst, Alu::Sub),
            Band => self.and(inst),
            Bor => self.alu(inst, Alu::Or),
            Bxor => self.alu(inst, Alu::Xor),
            Ireduce => {
                let from = self.arg(inst, 0);
                let reg = self.operand(from);
                self.used(from);
                let to = self.copy(reg);
                self.define(result, to);
            }
            Icmp => return self.compare(inst),
            Uextend | Sextend => return self.extend(inst, opcode == Sextend),
            GetStackPointer => {
                let to = self.register(false);
                self.asm.mov(to, RSP);
                self.define(result, to);
            }
            Bnot | Ineg => {
                let from = self.arg(inst, 0);
                let reg = self.operand(from);
                self.used(from);
                let to = self.copy(reg);
                let minus_one = Place::Reg(to);
                self.asm.alu_constant(Alu::Xor, size(ty), minus_one, -1);
                if opcode == Ineg {
                    self.asm.alu_constant(Alu::Add, size(ty), minus_one, 1);
                }
                self.define(result, to);
            }
            UaddOverflowTrap => return self.add_or_trap(inst),
            _ if is_small(ty) => return None,
            Imul => self.multiply(inst),
            Ishl if self.is_element(inst, ty) => {}
            Ishl => self.shift(inst, Shift::Left),
            Ushr => self.shift(inst, Shift::Right),
            Sshr => self.shift(inst, Shift::Arithmetic),
            Rotl => self.shift(inst, Shift::RotateLeft),
            Rotr => self.shift(inst, Shift::RotateRight),
            Udiv | Sdiv | Urem | Srem => self.divide(inst, opcode),
            Clz if is_x86_feature_detected!("lzcnt") => self.count(inst, 0x0FBD),
            Ctz if is_x86_feature_detected!("bmi1") => self.count(inst, 0x0FBC),
            Popcnt if is_x86_feature_detected!("popcnt") => self.count(inst, 0x0FB8),
            _ => return None,
        }
        Some(())
    }

    /// Two operands, of which a constant is the second where that says the same.
    fn operands(&mut self, inst: Inst, ty: Type) -> (Value, Value) {
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        match self.short_constant(a, ty != types::I64) {
            Some(_) => (b, a),
            None => (a, b),
        }
    }

    fn alu(&mut self, inst: Inst, op: Alu) {
        let result = self.result(inst);
        let ty = self.type_of(result);
        let (a, b) = match op {
            Alu::Sub => (self.arg(inst, 0), self.arg(inst, 1)),
            _ => self.operands(inst, ty),
        };
        let constant = self.short_constant(b, ty != types::I64);
        let from = self.operand(a);
        let by = match constant {
            Some(_) => None,
            None => Some(self.operand(b)),
        };
        self.used(a);
        self.used(b);
        let to = self.copy(from);
        match (constant, by) {
            (_, Some(by)) => self.asm.alu(op, size(ty), to, Place::Reg(by)),
            (constant, None) => {
                let constant = constant.unwrap_or_default();
                let place = Place::Reg(to);
                self.asm.alu_constant(op, size(ty), place, constant);
            }
        }
        self.define(result, to);
    }

    /// A sum; with a constant, and from a register that is needed still, it is an address.
    fn add(&mut self, inst: Inst) {
        let result = self.result(inst);
        let ty = self.type_of(result);
        let (a, b) = self.operands(inst, ty);
        let Some(constant) = self.short_constant(b, ty != types::I64) else {
            return self.alu(inst, Alu::Add);
        };
        let from = self.operand(a);
        self.used(a);
        self.used(b);
        let to = self.target(from, false);
        match to == from {
            true => {
                let place = Place::Reg(to);
                self.asm.alu_constant(Alu::Add, size(ty), place, constant);
            }
            false => self.asm.address(ty == types::I64, to, from, constant),
        }
        self.define(result, to);
    }

    /// `and`, of whose outcome only whether it is zero may matter.
    fn and(&mut self, inst: Inst) {
        let result = self.result(inst);
        let ty = self.type_of(result);
        let (a, b) = self.operands(inst, ty);
        let constant = self.short_constant(b, ty != types::I64);
        let (Some(constant), true) = (constant, self.is_asked_next(inst, result)) else {
            return self.alu(inst, Alu::And);
        };
        let reg = self.operand(a);
        let size = match ty {
            types::I8 => Size::Byte,
            types::I16 => Size::Half,
            _ => size(ty),
        };
        self.asm.test_constant(size, reg, constant);
        self.used(a);
        self.used(b);
        self.flags = Some((result, Cond::NOT_EQUAL));
    }

    /// Whether the next instruction tests a value for zero, and is its only user.
    pub fn is_asked_next(&mut self, inst: Inst, value: Value) -> bool {
        let info = self.info(value);
        if info.uses != 1 || info.global {
            return false;
        }
        let Some(next) = self.func.layout.next_inst(inst) else {
            return false;
        };
        match self.func.dfg.insts[next] {
            InstructionData::Brif { arg, .. } | InstructionData::CondTrap { arg, .. } => {
                self.resolve(arg) == value && !self.is_passed(next, value)
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args,
            } => self.resolve(args[0]) == value,
            _ => false,
        }
    }

    /// Whether a branch hands a value on.
    fn is_passed(&self, inst: Inst, value: Value) -> bool {
        let dfg = &self.func.dfg;
        let to = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        to.iter()
            .flat_map(|call| call.args(&dfg.value_lists))
            .filter_map(|arg| arg.as_value())
            .any(|arg| self.resolve(arg) == value)
    }

    /// Whether a value is true, as a condition in the flags. The value is used.
    pub fn truth(&mut self, value: Value) -> Option<Cond> {
        if let Some((of, cond)) = self.flags.take()
            && of == value
        {
            self.used(value);
            return Some(cond);
        }
        let size = match self.type_of(value) {
            types::I8 => Size::Byte,
            types::I32 => Size::Word,
            types::I64 => Size::Double,
            _ => return None,
        };
        let reg = self.operand(value);
        self.asm.test(size, reg, reg);
        self.used(value);
        Some(Cond::NOT_EQUAL)
    }

    fn compare(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::IntCompare { cond, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let (mut a, mut b, mut cond) = (self.arg(inst, 0), self.arg(inst, 1), cond);
        let ty = self.type_of(a);
        let size = match ty {
            types::I8 => Size::Byte,
            types::I16 => Size::Half,
            types::I32 => Size::Word,
            _ => Size::Double,
        };
        let narrow = ty != types::I64;
        if self.short_constant(a, narrow).is_some() {
            (a, b, cond) = (b, a, cond.swap_args());
        }
        let reg = self.operand(a);
        match self.short_constant(b, narrow) {
            Some(0) if matches!(cond, IntCC::Equal | IntCC::NotEqual) => {
                self.asm.test(size, reg, reg);
            }
            Some(constant) => {
                let place = Place::Reg(reg);
                self.asm.alu_constant(Alu::Cmp, size, place, constant);
            }
            None => {
                let with = self.operand(b);
                self.asm.alu(Alu::Cmp, size, reg, Place::Reg(with));
            }
        }
        self.used(a);
        self.used(b);
        self.outcome(inst, condition(cond));
        Some(())
    }

    /// The flags hold an instruction's outcome: it stays there, or goes to a register.
    pub fn outcome(&mut self, inst: Inst, cond: Cond) {
        let result = self.result(inst);
        if self.is_asked_next(inst, result) {
            self.flags = Some((result, cond));
            return;
        }
        let to = self.register(false);
        self.asm.set(cond, to);
        self.define(result, to);
    }

    fn extend(&mut self, inst: Inst, signed: bool) -> Option<()> {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let size = match self.type_of(from) {
            types::I8 => Size::Byte,
            types::I16 => Size::Half,
            types::I32 => Size::Word,
            _ => return None,
        };
        let wide = self.type_of(result) == types::I64;
        let reg = self.operand(from);
        self.used(from);
        let to = self.target(reg, false);
        match signed {
            true => self.asm.load_signed(size, wide, to, Place::Reg(reg)),
            false => self.asm.load_part(size, to, Place::Reg(reg)),
        }
        self.define(result, to);
        Some(())
    }

    fn add_or_trap(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::IntAddTrap { code, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        self.alu(inst, Alu::Add);
        self.trap_if(Cond::BELOW, code);
        Some(())
    }

    fn multiply(&mut self, inst: Inst) {
        let result = self.result(inst);
        let ty = self.type_of(result);
        let wide = ty == types::I64;
        let (a, b) = self.operands(inst, ty);
        let from = self.operand(a);
        if let Some(constant) = self.short_constant(b, !wide) {
            self.used(a);
            self.used(b);
            let to = self.target(from, false);
            self.asm.multiply_constant(wide, to, from, constant);
            return self.define(result, to);
        }
        let by = self.operand(b);
        self.used(a);
        self.used(b);
        let to = self.copy(from);
        self.asm.multiply(wide, to, by);
        self.define(result, to);
    }

    fn constant_amount(&mut self, inst: Inst) -> Option<i64> {
        let by = self.arg(inst, 1);
        match self.info(by).what {
            What::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// A shift right before the sum that it is part of, as addresses are made. The sum is then done already.
    fn is_element(&mut self, inst: Inst, ty: Type) -> bool {
        let result = self.result(inst);
        let (Some(by @ 0..=3), types::I64) = (self.constant_amount(inst), ty) else {
            return false;
        };
        let info = self.info(result);
        if info.uses != 1 || info.global {
            return false;
        }
        let Some(next) = self.func.layout.next_inst(inst) else {
            return false;
        };
        if self.func.dfg.insts[next].opcode() != Opcode::Iadd || self.arg(next, 1) != result {
            return false;
        }
        let (base, index, amount) = (self.arg(next, 0), self.arg(inst, 0), self.arg(inst, 1));
        if self.short_constant(base, false).is_some() {
            return false;
        }
        let (base_reg, index_reg) = (self.operand(base), self.operand(index));
        self.used(base);
        self.used(index);
        self.used(amount);
        self.info(result).uses = 0;
        let to = match self.is_spare(base_reg) {
            true => base_reg,
            false => self.target(index_reg, false),
        };
        let asm = &mut self.asm;
        asm.address_of_element(to, base_reg, index_reg, by as u8);
        let sum = self.result(next);
        self.define(sum, to);
        self.skip = Some(next);
        true
    }

    fn shift(&mut self, inst: Inst, op: Shift) {
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let wide = self.type_of(result) == types::I64;
        let from = self.operand(a);
        if let Some(by) = self.constant_amount(inst) {
            self.used(a);
            self.used(b);
            let to = self.copy(from);
            let by = by as u8 & if wide { 63 } else { 31 };
            self.asm.shift(op, wide, to, by);
            return self.define(result, to);
        }
        let by = self.operand(b);
        self.used(a);
        self.used(b);
        self.claim(RCX);
        let to = match self.is_spare(from) && from != RCX && from != by {
            true => from,
            false => {
                let to = self.register(false);
                self.asm.mov(to, from);
                to
            }
        };
        if by != RCX {
            // The value there that is still needed is the first operand.
            self.empty(RCX);
            self.asm.mov(RCX, by);
        }
        self.asm.shift_variable(op, wide, to);
        self.define(result, to);
    }

    fn divide(&mut self, inst: Inst, opcode: Opcode) {
        let (a, b, result) = (self.arg(inst, 0), self.arg(inst, 1), self.result(inst));
        let wide = self.type_of(result) == types::I64;
        let size = if wide { Size::Double } else { Size::Word };
        let signed = matches!(opcode, Opcode::Sdiv | Opcode::Srem);
        let remainder = matches!(opcode, Opcode::Srem | Opcode::Urem);
        let known = self.short_constant(b, !wide);
        let (from, mut by) = (self.operand(a), self.operand(b));
        self.used(a);
        self.used(b);
        self.claim(RAX);
        self.claim(RDX);
        if by == RAX || by == RDX {
            self.asm.mov(SCRATCH, by);
            by = SCRATCH;
        }
        // Both are written: their values that are still needed go to their slots.
        self.empty(RAX);
        self.empty(RDX);
        self.asm.mov(RAX, from);
        if known.is_none_or(|by| by == 0) {
            self.asm.test(size, by, by);
            self.trap_if(Cond::EQUAL, TrapCode::INTEGER_DIVISION_BY_ZERO);
        }
        let mut done = None;
        if signed && known.is_none_or(|by| by == -1) {
            let place = Place::Reg(by);
            self.asm.alu_constant(Alu::Cmp, size, place, -1);
            let usual = self.asm.jump_if(Cond::NOT_EQUAL);
            if remainder {
                self.asm.constant(RDX, 0);
                done = Some(self.asm.jump());
            } else {
                // Only the lowest number overflows when 1 is taken away.
                self.asm.alu_constant(Alu::Cmp, size, Place::Reg(RAX), 1);
                self.trap_if(Cond(0), TrapCode::INTEGER_OVERFLOW);
            }
            let here = self.asm.at();
            self.asm.patch(usual, here);
        }
        match signed {
            true => self.asm.sign_into_rdx(wide),
            false => self.asm.constant(RDX, 0),
        }
        self.asm.divide(signed, wide, by);
        if let Some(done) = done {
            let here = self.asm.at();
            self.asm.patch(done, here);
        }
        self.define(result, if remainder { RDX } else { RAX });
    }

    fn count(&mut self, inst: Inst, opcode: u32) {
        let (from, result) = (self.arg(inst, 0), self.result(inst));
        let wide = self.type_of(result) == types::I64;
        let reg = self.operand(from);
        self.used(from);
        let to = self.target(reg, false);
        self.asm.count(opcode, wide, to, reg);
        self.define(result, to);
    }

    pub fn select(&mut self, inst: Inst) -> Option<()> {
        let (condition, a, b) = (self.arg(inst, 0), self.arg(inst, 1), self.arg(inst, 2));
        let result = self.result(inst);
        let (yes, no) = (self.operand(a), self.operand(b));
        let cond = self.truth(condition)?;
        self.used(a);
        self.used(b);
        let to = self.copy(no);
        if is_float(to) {
            let skip = self.asm.jump_if(cond.not());
            self.asm.mov(to, yes);
            let here = self.asm.at();
            self.asm.patch(skip, here);
        } else {
            self.asm.move_if(cond, to, yes);
        }
        self.define(result, to);
        Some(())
    }
}
