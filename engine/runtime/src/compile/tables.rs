//! Tables. They belong to the store and are no data of the program: accesses to them are neither observed nor counted, nothing of them survives, and
//! the collector finds their references. So they need no stage of [`super::pipeline`] but the check of bounds, which calls through them share.

use super::translate::Translator;
use crate::error::TrapKind;
use crate::helpers::Helper;
use crate::store::region::{Place, TableRecord};
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use std::mem::offset_of;
use wasmparser::Operator;

impl Translator<'_, '_> {
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
        let index = self.widened(index);
        let out = self
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(out, trap);
        let base = self.word(place, offset_of!(TableRecord, base));
        let byte = self.ins().ishl_imm_u(index, 2);
        self.ins().iadd(base, byte)
    }

    fn has_wide_indices(&self, table: u32) -> bool {
        self.env.module.tables[table as usize].0.wide
    }

    fn table_type(&self, table: u32) -> ValType {
        ValType::Ref(self.env.module.tables[table as usize].0.element)
    }

    /// Translates an operator on tables; whether it is one.
    pub(super) fn translate_table(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            TableGet { table } => {
                let index = self.pop();
                let address = self.element_address(table, index, TrapKind::TableOutOfBounds);
                let v = self.ins().uload32(MemFlagsData::trusted(), address, 0);
                self.push(v, self.table_type(table));
            }
            TableSet { table } => {
                let v = self.pop();
                let index = self.pop();
                let address = self.element_address(table, index, TrapKind::TableOutOfBounds);
                let flags = MemFlagsData::trusted();
                self.ins().istore32(flags, v, address, 0);
            }
            TableSize { table } => {
                let place = self.table_record(table);
                let len = self.word(place, offset_of!(TableRecord, len));
                self.push_size(len, self.has_wide_indices(table));
            }
            TableGrow { table } => {
                let id = self.table_id(table);
                let (by, value) = (self.pop_wide(), self.pop());
                let old = self.call_helper(Helper::TableGrow, &[id, value, by]);
                self.push_size(old.expect("a size"), self.has_wide_indices(table));
            }
            TableFill { table } => {
                let id = self.table_id(table);
                let (len, value, to) = (self.pop_wide(), self.pop(), self.pop_wide());
                self.call_helper(Helper::TableFill, &[id, to, value, len]);
            }
            TableCopy {
                dst_table,
                src_table,
            } => {
                let (d, s) = (self.table_id(dst_table), self.table_id(src_table));
                let (len, from, to) = (self.pop_wide(), self.pop_wide(), self.pop_wide());
                self.call_helper(Helper::TableCopy, &[d, s, to, from, len]);
            }
            TableInit { elem_index, table } => {
                let (i, e, t) = (
                    self.instance_id(),
                    self.i32(elem_index as i64),
                    self.table_id(table),
                );
                let (len, from, to) = (self.pop(), self.pop(), self.pop_wide());
                self.call_helper(Helper::TableInit, &[i, e, t, to, from, len]);
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
