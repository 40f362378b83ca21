//! Locals, globals, linear memories and tables.

use super::alias::Region;
use super::env::clif_type;
use super::translate::Translator;
use crate::error::TrapKind;
use crate::helpers::Helper;
use crate::store::region::{MemoryRecord, Place, TableRecord, displacement};
use crate::types::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use std::mem::offset_of;
use varve_machine::Kind;
use wasmparser::{MemArg, MemArgTarget, Operator};

/// How a load or store touches memory.
#[derive(Clone, Copy)]
enum Width {
    /// The whole value.
    Full,
    /// The low bytes, read with sign.
    Signed(Type),
    /// The low bytes, read without sign.
    Unsigned(Type),
}

fn memory_of(arg: &MemArg) -> u32 {
    match arg.target {
        MemArgTarget::Memory(memory) => memory,
        MemArgTarget::Array(_) => unreachable!("loading refused the proposal"),
    }
}

impl Translator<'_, '_> {
    /// A word of the store's region that never changes while code runs.
    fn constant_word(&mut self, place: Place, offset: usize) -> Value {
        let base = self.base();
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b
            .ins()
            .load(types::I64, flags, base, displacement(place) + offset as i32)
    }

    fn word(&mut self, place: Place, offset: usize) -> Value {
        let base = self.base();
        self.b.ins().load(
            types::I64,
            MemFlagsData::trusted(),
            base,
            displacement(place) + offset as i32,
        )
    }

    /// A local of the innermost activation.
    fn local(&self, index: u32) -> &super::translate::Local {
        &self.locals[self.activation().locals + index as usize]
    }

    fn memory_record(&self, memory: u32) -> Place {
        self.env.memories[self.env.instance.memories[memory as usize] as usize].place
    }

    /// The address of an access. Memories reserve more than any 32-bit index and offset reach, so that what is out of
    /// bounds faults.
    fn memory_address(&mut self, arg: &MemArg) -> (Value, i32) {
        let index = self.pop();
        let index = self.b.ins().uextend(types::I64, index);
        let base = self.constant_word(
            self.memory_record(memory_of(arg)),
            offset_of!(MemoryRecord, base),
        );
        let address = self.b.ins().iadd(base, index);
        match i32::try_from(arg.offset) {
            Ok(offset) => (address, offset),
            Err(_) => (self.b.ins().iadd_imm_s(address, arg.offset as i64), 0),
        }
    }

    fn memory_flags(&mut self, arg: &MemArg) -> MemFlagsData {
        let memory = self.env.instance.memories[memory_of(arg) as usize];
        self.trapping(Region::Memory(memory), TrapKind::MemoryOutOfBounds)
    }

    /// Records an access of `bytes` at `index` and the operator's offset.
    fn observe_memory(&mut self, kind: Kind, arg: &MemArg, index: Value, bytes: u32) {
        let memory = self.env.instance.memories[memory_of(arg) as usize];
        self.record_memory(kind, memory, index, arg.offset, bytes);
    }

    fn load(&mut self, arg: &MemArg, ty: ValType, width: Width) {
        let index = self.stack.last().expect("validated").value;
        let (address, offset) = self.memory_address(arg);
        let (flags, whole) = (self.memory_flags(arg), clif_type(ty));
        let v = match width {
            Width::Full => self.b.ins().load(whole, flags, address, offset),
            Width::Signed(part) => {
                let v = self.b.ins().load(part, flags, address, offset);
                self.b.ins().sextend(whole, v)
            }
            Width::Unsigned(part) => {
                let v = self.b.ins().load(part, flags, address, offset);
                self.b.ins().uextend(whole, v)
            }
        };
        let bytes = match width {
            Width::Full => whole.bytes(),
            Width::Signed(part) | Width::Unsigned(part) => part.bytes(),
        };
        self.observe_memory(Kind::Read, arg, index, bytes);
        self.record_loaded(v);
        self.push(v, ty);
    }

    fn store(&mut self, arg: &MemArg, part: Option<Type>) {
        let value = self.pop();
        let index = self.stack.last().expect("validated").value;
        let (address, offset) = self.memory_address(arg);
        let value = match part {
            Some(part) => self.b.ins().ireduce(part, value),
            None => value,
        };
        let flags = self.memory_flags(arg);
        let bytes = self.b.func.dfg.value_type(value).bytes();
        self.b.ins().store(flags, value, address, offset);
        self.observe_memory(Kind::Write, arg, index, bytes);
    }

    fn table_record(&self, table: u32) -> Place {
        self.env.tables[self.env.instance.tables[table as usize] as usize].place
    }

    pub(super) fn table_id(&mut self, table: u32) -> Value {
        let id = self.env.instance.tables[table as usize];
        self.i32(id as i64)
    }

    /// The address of an element, after a check of the bounds.
    pub(super) fn element_address(&mut self, table: u32, index: Value, trap: TrapKind) -> Value {
        let place = self.table_record(table);
        let len = self.word(place, offset_of!(TableRecord, len));
        let index = self.b.ins().uextend(types::I64, index);
        let out = self
            .b
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(out, trap);
        let base = self.word(place, offset_of!(TableRecord, base));
        let byte = self.b.ins().ishl_imm_u(index, 2);
        self.b.ins().iadd(base, byte)
    }

    fn table_type(&self, table: u32) -> ValType {
        ValType::Ref(self.env.module.tables[table as usize].0.element)
    }

    fn global_get(&mut self, index: u32) {
        let ty = self.env.module.globals[index as usize].0;
        let place = self.env.instance.globals[index as usize];
        if !ty.mutable && !ty.ty.is_managed() {
            let bits = self.env.constant(place);
            let v = match ty.ty {
                ValType::I64 => self.i64(bits as i64),
                ValType::F32 => {
                    self.b
                        .ins()
                        .f32const(cranelift_codegen::ir::immediates::Ieee32::with_bits(
                            bits as u32,
                        ))
                }
                ValType::F64 => self
                    .b
                    .ins()
                    .f64const(cranelift_codegen::ir::immediates::Ieee64::with_bits(bits)),
                _ => self.i32(bits as i64),
            };
            return self.push(v, ty.ty);
        }
        let (base, flags) = (self.base(), self.trusted(Region::Global(place)));
        let at = displacement(place);
        let v = self.b.ins().load(clif_type(ty.ty), flags, base, at);
        self.observe(Kind::Read, None, base, at, clif_type(ty.ty).bytes());
        self.record_loaded(v);
        self.push(v, ty.ty);
    }

    /// Calls a helper with operands from the stack as its last arguments.
    fn help(&mut self, helper: Helper, first: &[Value], operands: usize) -> Option<Value> {
        let mut args = first.to_vec();
        args.extend(self.pop_n(operands));
        self.call_helper(helper, &args)
    }

    fn push_help(&mut self, helper: Helper, first: &[Value], operands: usize, ty: ValType) {
        let v = self
            .help(helper, first, operands)
            .expect("a helper with a result");
        self.push(v, ty);
    }

    fn memory_id(&mut self, memory: u32) -> Value {
        let id = self.env.instance.memories[memory as usize];
        self.i32(id as i64)
    }

    pub(super) fn instance_id(&mut self) -> Value {
        self.i32(self.env.instance_id as i64)
    }

    /// Whether the operator is one of these.
    pub(super) fn access(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        use ValType::{F32, F64, I32, I64};
        use Width::*;
        use types::{I8, I16};
        match *op {
            LocalGet { local_index } => {
                let local = self.local(local_index);
                let (variable, ty) = (local.variable, local.ty);
                let v = self.b.use_var(variable);
                self.push(v, ty);
            }
            LocalSet { local_index } => {
                let v = self.pop();
                let variable = self.local(local_index).variable;
                self.b.def_var(variable, v);
            }
            LocalTee { local_index } => {
                let v = self.stack.last().expect("validated").value;
                let variable = self.local(local_index).variable;
                self.b.def_var(variable, v);
            }
            GlobalGet { global_index } => self.global_get(global_index),
            GlobalSet { global_index } => {
                let v = self.pop();
                let place = self.env.instance.globals[global_index as usize];
                let (base, flags) = (self.base(), self.trusted(Region::Global(place)));
                self.b.ins().store(flags, v, base, displacement(place));
                let bytes = self.b.func.dfg.value_type(v).bytes();
                self.observe(Kind::Write, None, base, displacement(place), bytes);
            }
            I32Load { ref memarg } => self.load(memarg, I32, Full),
            I64Load { ref memarg } => self.load(memarg, I64, Full),
            F32Load { ref memarg } => self.load(memarg, F32, Full),
            F64Load { ref memarg } => self.load(memarg, F64, Full),
            I32Load8S { ref memarg } => self.load(memarg, I32, Signed(I8)),
            I32Load8U { ref memarg } => self.load(memarg, I32, Unsigned(I8)),
            I32Load16S { ref memarg } => self.load(memarg, I32, Signed(I16)),
            I32Load16U { ref memarg } => self.load(memarg, I32, Unsigned(I16)),
            I64Load8S { ref memarg } => self.load(memarg, I64, Signed(I8)),
            I64Load8U { ref memarg } => self.load(memarg, I64, Unsigned(I8)),
            I64Load16S { ref memarg } => self.load(memarg, I64, Signed(I16)),
            I64Load16U { ref memarg } => self.load(memarg, I64, Unsigned(I16)),
            I64Load32S { ref memarg } => self.load(memarg, I64, Signed(types::I32)),
            I64Load32U { ref memarg } => self.load(memarg, I64, Unsigned(types::I32)),
            I32Store { ref memarg }
            | I64Store { ref memarg }
            | F32Store { ref memarg }
            | F64Store { ref memarg } => self.store(memarg, None),
            I32Store8 { ref memarg } | I64Store8 { ref memarg } => self.store(memarg, Some(I8)),
            I32Store16 { ref memarg } | I64Store16 { ref memarg } => self.store(memarg, Some(I16)),
            I64Store32 { ref memarg } => self.store(memarg, Some(types::I32)),
            MemorySize { mem } => {
                let bytes = self.word(self.memory_record(mem), offset_of!(MemoryRecord, bytes));
                let pages = self.b.ins().ushr_imm_u(bytes, 16);
                let pages = self.b.ins().ireduce(types::I32, pages);
                self.push(pages, I32);
            }
            MemoryGrow { mem } => {
                let id = self.memory_id(mem);
                self.push_help(Helper::MemoryGrow, &[id], 1, I32);
            }
            MemoryFill { mem } => {
                let id = self.memory_id(mem);
                self.help(Helper::MemoryFill, &[id], 3);
            }
            MemoryCopy { dst_mem, src_mem } => {
                let (d, s) = (self.memory_id(dst_mem), self.memory_id(src_mem));
                self.help(Helper::MemoryCopy, &[d, s], 3);
            }
            MemoryInit { data_index, mem } => {
                let (i, d, m) = (
                    self.instance_id(),
                    self.i32(data_index as i64),
                    self.memory_id(mem),
                );
                self.help(Helper::MemoryInit, &[i, d, m], 3);
            }
            DataDrop { data_index } => {
                let (i, d) = (self.instance_id(), self.i32(data_index as i64));
                self.help(Helper::DataDrop, &[i, d], 0);
            }
            TableGet { table } => {
                let index = self.pop();
                let address = self.element_address(table, index, TrapKind::TableOutOfBounds);
                let v = self
                    .b
                    .ins()
                    .load(types::I32, MemFlagsData::trusted(), address, 0);
                self.push(v, self.table_type(table));
            }
            TableSet { table } => {
                let v = self.pop();
                let index = self.pop();
                let address = self.element_address(table, index, TrapKind::TableOutOfBounds);
                self.b.ins().store(MemFlagsData::trusted(), v, address, 0);
            }
            TableSize { table } => {
                let place = self.table_record(table);
                let len = self.word(place, offset_of!(TableRecord, len));
                let len = self.b.ins().ireduce(types::I32, len);
                self.push(len, I32);
            }
            TableGrow { table } => {
                let id = self.table_id(table);
                self.push_help(Helper::TableGrow, &[id], 2, I32);
            }
            TableFill { table } => {
                let id = self.table_id(table);
                self.help(Helper::TableFill, &[id], 3);
            }
            TableCopy {
                dst_table,
                src_table,
            } => {
                let (d, s) = (self.table_id(dst_table), self.table_id(src_table));
                self.help(Helper::TableCopy, &[d, s], 3);
            }
            TableInit { elem_index, table } => {
                let (i, e, t) = (
                    self.instance_id(),
                    self.i32(elem_index as i64),
                    self.table_id(table),
                );
                self.help(Helper::TableInit, &[i, e, t], 3);
            }
            ElemDrop { elem_index } => {
                let (i, e) = (self.instance_id(), self.i32(elem_index as i64));
                self.help(Helper::ElemDrop, &[i, e], 0);
            }
            _ => return false,
        }
        true
    }
}
