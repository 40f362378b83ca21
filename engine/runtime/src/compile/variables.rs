//! Locals and globals.

use super::slot::Slot;
use super::translate::{Local, Translator};
use crate::types::ValType;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use wasmparser::Operator;

impl Translator<'_, '_> {
    /// A local of the innermost activation.
    fn local(&self, index: u32) -> &Local {
        &self.locals[self.activation().locals + index as usize]
    }

    fn global_get(&mut self, index: u32) {
        let ty = self.env.module.globals[index as usize].0;
        let place = self.env.instance.globals[index as usize];
        if !ty.mutable && !ty.ty.is_managed() && ty.ty != ValType::V128 {
            let bits = self.env.constant(place);
            let v = match ty.ty {
                ValType::I64 | ValType::Ref(_) => self.i64(bits as i64),
                ValType::F32 => self.ins().f32const(Ieee32::with_bits(bits as u32)),
                ValType::F64 => self.ins().f64const(Ieee64::with_bits(bits)),
                _ => self.i32(bits as i64),
            };
            return self.push(v, ty.ty);
        }
        let v = self.load(&Slot::global(place, ty.ty));
        self.push(v, ty.ty);
    }

    /// Translates an operator on locals or globals; whether it is one.
    pub(super) fn translate_variable(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            LocalGet { local_index } => {
                let local = self.local(local_index);
                let (variable, ty) = (local.variable, local.ty);
                let v = self.value_of(variable);
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
                let value = self.stack.last().expect("validated").value;
                let place = self.env.instance.globals[global_index as usize];
                let ty = self.env.module.globals[global_index as usize].0.ty;
                self.store(&Slot::global(place, ty), value);
                self.pop();
                self.after_global(global_index);
            }
            _ => return false,
        }
        true
    }
}
