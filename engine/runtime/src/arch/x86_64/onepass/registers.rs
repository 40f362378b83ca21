//! Which value is in which register, and which in its slot.

use super::assembler::{
    PINNED, R8, R9, R10, RAX, RBP, RCX, RDI, RDX, RSI, Reg, SCRATCH, XMM0, is_float, slot,
};
use super::floats::XOR;
use super::plan::{Info, NO_REGISTER, What};
use super::{Generator, bit};
use cranelift_codegen::ir::Value;

/// Caller-saved registers: a function need not save them.
const GENERAL: [Reg; 8] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10];
/// All but the last, which is for what an instruction needs besides.
const FLOATS: [Reg; 15] = [
    XMM0,
    XMM0 + 1,
    XMM0 + 2,
    XMM0 + 3,
    XMM0 + 4,
    XMM0 + 5,
    XMM0 + 6,
    XMM0 + 7,
    XMM0 + 8,
    XMM0 + 9,
    XMM0 + 10,
    XMM0 + 11,
    XMM0 + 12,
    XMM0 + 13,
    XMM0 + 14,
];

/// The source of a value that is moved at a block's end or a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Source {
    Reg(Reg),
    Slot(i32),
    Constant(i64),
    Frame(i32),
}

impl Generator<'_> {
    /// A register with the value. It keeps it until the instruction's end.
    pub fn operand(&mut self, value: Value) -> Reg {
        let Info {
            what, reg, float, ..
        } = *self.info(value);
        if reg != NO_REGISTER {
            self.locked |= bit(reg);
            return reg;
        }
        if what == What::Pinned {
            return PINNED;
        }
        let reg = self.register(float);
        match what {
            What::Made => {
                let at = self.slot_of(value);
                self.asm.load(reg, slot(at));
                self.holds[reg as usize] = Some(value);
                let info = self.info(value);
                info.reg = reg;
                info.stored = true;
            }
            What::Constant(bits) => self.make_constant(reg, bits),
            What::Frame(offset) => self.asm.address(true, reg, RBP, offset),
            What::Pinned => unreachable!("it has a register of its own"),
        }
        reg
    }

    /// A constant in a register of either kind. Leaves the flags alone.
    pub fn make_constant(&mut self, reg: Reg, bits: i64) {
        match is_float(reg) {
            true if bits == 0 => self.asm.float_bits(XOR, reg, reg),
            true => {
                self.asm.constant(SCRATCH, bits);
                self.asm.bits_to_float(true, reg, SCRATCH);
            }
            false => self.asm.constant(reg, bits),
        }
    }

    /// The constant that a value is, if it fits into 32 bits with its sign; of 32-bit values, the lower half counts.
    pub fn short_constant(&mut self, value: Value, narrow: bool) -> Option<i32> {
        match self.info(value).what {
            What::Constant(bits) if narrow => Some(bits as i32),
            What::Constant(bits) => i32::try_from(bits).ok(),
            _ => None,
        }
    }

    /// A register that is free until the instruction's end.
    pub fn register(&mut self, float: bool) -> Reg {
        let all: &[Reg] = if float { &FLOATS } else { &GENERAL };
        let locked = self.locked;
        let free = |r: &&Reg| locked & bit(**r) == 0;
        let empty = all
            .iter()
            .find(|r| free(r) && self.holds[**r as usize].is_none());
        let reg = match empty {
            Some(&reg) => reg,
            None => self.oldest(all),
        };
        self.empty(reg);
        self.locked |= bit(reg);
        reg
    }

    /// A register to empty: one whose value is in its slot, else the next in turn.
    fn oldest(&mut self, all: &[Reg]) -> Reg {
        let len = all.len();
        let turn = self.turn as usize % len;
        self.turn = self.turn.wrapping_add(1);
        let order = (0..len).map(|i| all[(turn + i) % len]);
        let locked = self.locked;
        let free = order.filter(|&r| locked & bit(r) == 0);
        let mut first = None;
        for reg in free {
            let value = self.holds[reg as usize].expect("no register is empty");
            if self.info(value).stored {
                return reg;
            }
            first = first.or(Some(reg));
        }
        first.expect("no instruction needs all registers")
    }

    /// Puts what a register holds into its slot, so that another value can be there.
    pub fn empty(&mut self, reg: Reg) {
        if let Some(value) = self.holds[reg as usize].take() {
            self.save(value, reg);
            self.info(value).reg = NO_REGISTER;
        }
    }

    /// Takes a register for the instruction, if the instruction does not have it already. Its old value is spilled to its slot.
    pub fn claim(&mut self, reg: Reg) {
        if self.locked & bit(reg) == 0 {
            self.empty(reg);
            self.locked |= bit(reg);
        }
    }

    fn save(&mut self, value: Value, reg: Reg) {
        if !self.info(value).stored {
            let at = self.slot_of(value);
            self.asm.store(slot(at), reg);
            self.info(value).stored = true;
        }
    }

    /// The slot of a value. A value used in one stretch alone frees it after its last use.
    pub fn slot_of(&mut self, value: Value) -> i32 {
        let info = *self.info(value);
        if info.slot != 0 {
            return info.slot;
        }
        let reused = match info.global {
            true => None,
            false => self.memory.free_slots.pop(),
        };
        let at = reused.unwrap_or_else(|| {
            self.memory.plan.frame += 8;
            -self.memory.plan.frame
        });
        self.info(value).slot = at;
        at
    }

    /// A value was used once. After the last time its register is empty, and still has it until the instruction's end.
    pub fn used(&mut self, value: Value) {
        self.info(value).uses -= 1;
        self.free_if_unused(value);
    }

    pub fn free_if_unused(&mut self, value: Value) {
        let info = self.info(value);
        if info.uses > 0 {
            return;
        }
        let reg = std::mem::replace(&mut info.reg, NO_REGISTER);
        let at = match info.global {
            true => 0,
            false => std::mem::take(&mut info.slot),
        };
        if reg != NO_REGISTER {
            self.holds[reg as usize] = None;
        }
        if at != 0 {
            self.memory.free_slots.push(at);
        }
    }

    /// A register for a result that is computed from `from` in place: `from` itself if its value is dead, else a register with a copy.
    pub fn copy(&mut self, from: Reg) -> Reg {
        if self.is_spare(from) {
            return from;
        }
        let to = self.register(is_float(from));
        self.asm.mov(to, from);
        to
    }

    /// A register for a result that is written in one instruction, which may read `from`.
    pub fn target(&mut self, from: Reg, float: bool) -> Reg {
        match is_float(from) == float && self.is_spare(from) {
            true => from,
            false => self.register(float),
        }
    }

    pub fn is_spare(&self, reg: Reg) -> bool {
        reg != PINNED && self.holds[reg as usize].is_none()
    }

    /// The instruction's result is in a register. Code that uses it may be there already, if this code is after the usual one.
    pub fn define(&mut self, value: Value, reg: Reg) {
        let info = *self.info(value);
        if info.global && info.is_used {
            self.info(value).stored = false;
            self.save(value, reg);
        }
        if info.uses > 0 {
            self.info(value).reg = reg;
            self.holds[reg as usize] = Some(value);
        }
    }

    /// Registers hold nothing from here on.
    pub fn forget_registers(&mut self) {
        for reg in 0..self.holds.len() {
            if let Some(value) = self.holds[reg].take() {
                self.info(value).reg = NO_REGISTER;
            }
        }
    }

    /// Where a value is.
    pub fn source(&mut self, value: Value) -> Source {
        let info = *self.info(value);
        match info.what {
            _ if info.reg != NO_REGISTER => Source::Reg(info.reg),
            What::Constant(bits) => Source::Constant(bits),
            What::Frame(offset) => Source::Frame(offset),
            What::Pinned => Source::Reg(PINNED),
            What::Made => Source::Slot(self.slot_of(value)),
        }
    }

    /// Puts what is in registers and will be used again into its slots.
    pub fn save_all(&mut self) {
        for reg in 0..self.holds.len() {
            if let Some(value) = self.holds[reg]
                && self.info(value).uses > 0
            {
                self.save(value, reg as Reg);
            }
        }
    }
}
