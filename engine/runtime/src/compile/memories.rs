//! Linear memories.

use super::slot::{Slot, Width};
use super::translate::Translator;
use crate::helpers::Helper;
use crate::store::region::{MemoryRecord, Place};
use crate::types::ValType;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::mem::offset_of;
use wasmparser::{MemArg, MemArgTarget, Operator};

impl Translator<'_, '_> {
    /// The number in the store of a memory of the module.
    fn memory_number(&self, memory: u32) -> u32 {
        self.env.instance.memories[memory as usize]
    }

    /// Whether addresses have 64 bits.
    fn is_wide(&self, memory: u32) -> bool {
        self.env.module.memories[memory as usize].wide
    }

    /// An address, index or length of any width in 64 bits.
    pub(super) fn pop_wide(&mut self) -> Value {
        let value = self.pop();
        self.widened(value)
    }

    pub(super) fn widened(&mut self, value: Value) -> Value {
        match self.b.func.dfg.value_type(value) == types::I32 {
            true => self.ins().uextend(types::I64, value),
            false => value,
        }
    }

    /// The size of a memory or table, as wide as its addresses or indices.
    pub(super) fn push_size(&mut self, size: Value, wide: bool) {
        match wide {
            true => self.push(size, ValType::I64),
            false => {
                let size = self.ins().ireduce(types::I32, size);
                self.push(size, ValType::I32);
            }
        }
    }

    fn memory_record(&self, memory: u32) -> Place {
        self.env.memories[self.memory_number(memory) as usize].place
    }

    fn memory_id(&mut self, memory: u32) -> Value {
        self.i32(self.memory_number(memory).into())
    }

    fn memory_slot(&self, arg: &MemArg, index: Value, width: Width) -> Slot {
        let MemArgTarget::Memory(memory) = arg.target else {
            unreachable!("loading refused the proposal")
        };
        Slot::memory(self.memory_number(memory), index, arg.offset, width)
    }

    pub(super) fn memory_load(&mut self, arg: &MemArg, ty: ValType, width: Width) {
        let index = self.stack.last().expect("validated").value;
        let slot = self.memory_slot(arg, index, width);
        let value = self.load(&slot);
        self.pop();
        self.push(value, ty);
    }

    pub(super) fn memory_store(&mut self, arg: &MemArg, width: Width) {
        let [index, value] = self.stack[self.stack.len() - 2..] else {
            unreachable!("validated: an index and a value")
        };
        let slot = self.memory_slot(arg, index.value, width);
        self.store(&slot, value.value);
        self.pop_n(2);
    }

    /// Translates an operator on linear memories; whether it is one.
    pub(super) fn translate_memory(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        use ValType::{F32, F64, I32, I64};
        use types::{I8, I16};
        let (whole, part) = (Width::whole, Width::part);
        match *op {
            I32Load { ref memarg } => self.memory_load(memarg, I32, whole(I32)),
            I64Load { ref memarg } => self.memory_load(memarg, I64, whole(I64)),
            F32Load { ref memarg } => self.memory_load(memarg, F32, whole(F32)),
            F64Load { ref memarg } => self.memory_load(memarg, F64, whole(F64)),
            I32Load8S { ref memarg } => self.memory_load(memarg, I32, part(I8, I32, true)),
            I32Load8U { ref memarg } => self.memory_load(memarg, I32, part(I8, I32, false)),
            I32Load16S { ref memarg } => self.memory_load(memarg, I32, part(I16, I32, true)),
            I32Load16U { ref memarg } => self.memory_load(memarg, I32, part(I16, I32, false)),
            I64Load8S { ref memarg } => self.memory_load(memarg, I64, part(I8, I64, true)),
            I64Load8U { ref memarg } => self.memory_load(memarg, I64, part(I8, I64, false)),
            I64Load16S { ref memarg } => self.memory_load(memarg, I64, part(I16, I64, true)),
            I64Load16U { ref memarg } => self.memory_load(memarg, I64, part(I16, I64, false)),
            I64Load32S { ref memarg } => self.memory_load(memarg, I64, part(types::I32, I64, true)),
            I64Load32U { ref memarg } => {
                self.memory_load(memarg, I64, part(types::I32, I64, false))
            }
            I32Store { ref memarg } => self.memory_store(memarg, whole(I32)),
            I64Store { ref memarg } => self.memory_store(memarg, whole(I64)),
            F32Store { ref memarg } => self.memory_store(memarg, whole(F32)),
            F64Store { ref memarg } => self.memory_store(memarg, whole(F64)),
            I32Store8 { ref memarg } => self.memory_store(memarg, part(I8, I32, false)),
            I32Store16 { ref memarg } => self.memory_store(memarg, part(I16, I32, false)),
            I64Store8 { ref memarg } => self.memory_store(memarg, part(I8, I64, false)),
            I64Store16 { ref memarg } => self.memory_store(memarg, part(I16, I64, false)),
            I64Store32 { ref memarg } => self.memory_store(memarg, part(types::I32, I64, false)),
            MemorySize { mem } => {
                let bytes = self.word(self.memory_record(mem), offset_of!(MemoryRecord, bytes));
                let pages = self.ins().ushr_imm_u(bytes, 16);
                self.push_size(pages, self.is_wide(mem));
            }
            MemoryGrow { mem } => {
                let id = self.memory_id(mem);
                let pages = self.pop_wide();
                let old = self.call_helper(Helper::MemoryGrow, &[id, pages]);
                self.push_size(old.expect("a size"), self.is_wide(mem));
            }
            MemoryFill { mem } => {
                let id = self.memory_id(mem);
                let (len, value, to) = (self.pop_wide(), self.pop(), self.pop_wide());
                self.call_helper(Helper::MemoryFill, &[id, to, value, len]);
            }
            MemoryCopy { dst_mem, src_mem } => {
                let (d, s) = (self.memory_id(dst_mem), self.memory_id(src_mem));
                let (len, from, to) = (self.pop_wide(), self.pop_wide(), self.pop_wide());
                self.call_helper(Helper::MemoryCopy, &[d, s, to, from, len]);
            }
            MemoryInit { data_index, mem } => {
                let (i, d, m) = (
                    self.instance_id(),
                    self.i32(data_index as i64),
                    self.memory_id(mem),
                );
                let (len, from, to) = (self.pop(), self.pop(), self.pop_wide());
                self.call_helper(Helper::MemoryInit, &[i, d, m, to, from, len]);
            }
            DataDrop { data_index } => {
                let (i, d) = (self.instance_id(), self.i32(data_index as i64));
                self.help(Helper::DataDrop, &[i, d], 0);
            }
            _ => return false,
        }
        true
    }
}
