//! Loads and stores.

use super::Generator;
use super::assembler::{PINNED, Place, RBP, Size, is_float, memory};
use super::plan::{NO_REGISTER, What};
use cranelift_codegen::ir::{Inst, InstructionData, MemFlags, Opcode, Type, Value, types};

fn size(ty: Type) -> Option<Size> {
    match ty {
        types::I8 => Some(Size::Byte),
        types::I16 => Some(Size::Half),
        types::I32 => Some(Size::Word),
        types::I64 => Some(Size::Double),
        _ => None,
    }
}

impl Generator<'_> {
    /// The memory at an address plus `offset`.
    fn at(&mut self, address: Value, offset: i32) -> Option<Place> {
        Some(match self.info(address).what {
            What::Pinned => memory(PINNED, offset),
            What::Frame(start) => memory(RBP, start.checked_add(offset)?),
            _ => memory(self.operand(address), offset),
        })
    }

    /// Records that the next instruction may trap.
    fn may_trap(&mut self, flags: MemFlags) {
        if let Some(code) = self.func.dfg.mem_flags[flags].trap_code() {
            let at = self.asm.at();
            self.piece.traps.push((at, code));
        }
    }

    pub fn load(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::Load {
            opcode,
            arg,
            flags,
            offset,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let (address, result) = (self.resolve(arg), self.result(inst));
        let ty = self.type_of(result);
        let wide = ty == types::I64;
        let place = self.at(address, offset.into())?;
        self.used(address);
        let to = match place {
            Place::Memory { base, .. } if base != RBP => self.target(base, ty.is_float()),
            _ => self.register(ty.is_float()),
        };
        self.may_trap(flags);
        let asm = &mut self.asm;
        match opcode {
            Opcode::Load if ty.is_float() => asm.load_float(ty == types::F64, to, place),
            Opcode::Load => asm.load_part(size(ty)?, to, place),
            Opcode::Uload8 => asm.load_part(Size::Byte, to, place),
            Opcode::Uload16 => asm.load_part(Size::Half, to, place),
            Opcode::Uload32 => asm.load_part(Size::Word, to, place),
            Opcode::Sload8 => asm.load_signed(Size::Byte, wide, to, place),
            Opcode::Sload16 => asm.load_signed(Size::Half, wide, to, place),
            Opcode::Sload32 => asm.load_signed(Size::Word, wide, to, place),
            _ => return None,
        }
        self.define(result, to);
        Some(())
    }

    pub fn store(&mut self, inst: Inst) -> Option<()> {
        let InstructionData::Store {
            opcode,
            args,
            flags,
            offset,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let (value, address) = (self.resolve(args[0]), self.resolve(args[1]));
        let ty = self.type_of(value);
        let size = match opcode {
            Opcode::Store if ty.is_float() => None,
            Opcode::Store => Some(size(ty)?),
            Opcode::Istore8 => Some(Size::Byte),
            Opcode::Istore16 => Some(Size::Half),
            Opcode::Istore32 => Some(Size::Word),
            _ => return None,
        };
        let place = self.at(address, offset.into())?;
        let narrow = size != Some(Size::Double);
        let in_register = self.info(value).reg != NO_REGISTER;
        let constant = match size {
            Some(_) if !in_register => self.short_constant(value, narrow),
            _ => None,
        };
        match (size, constant) {
            (Some(size), Some(constant)) => {
                self.may_trap(flags);
                self.asm.store_constant(size, place, constant);
            }
            _ => {
                let from = self.operand(value);
                self.may_trap(flags);
                match size {
                    Some(size) => self.asm.store_part(size, place, from),
                    None => {
                        debug_assert!(is_float(from));
                        self.asm.store_float(ty == types::F64, place, from);
                    }
                }
            }
        }
        self.used(value);
        self.used(address);
        Some(())
    }
}
