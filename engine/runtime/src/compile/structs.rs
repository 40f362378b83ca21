//! Structs.

use super::slot::Slot;
use super::translate::Translator;
use crate::types::TypeIndex;
use cranelift_codegen::ir::Value;
use wasmparser::Operator;

impl Translator<'_, '_> {
    /// A struct with these fields. No barrier: an object that has just been allocated is young, or is known to the
    /// collector.
    pub(super) fn new_struct(&mut self, ty: TypeIndex, values: &[Value]) -> Value {
        let reference = self.allocate_struct(ty);
        let address = self.object_address(reference);
        let offsets = self.env.types.get(ty).layout.offsets.clone();
        for (i, &v) in values.iter().enumerate() {
            let storage = self.env.types.fields(ty)[i].storage;
            let region = self.field_region(ty, i as u32);
            let slot = Slot::of_new(reference, storage, offsets[i], region);
            self.initialize(&slot, address, v);
        }
        if !self.is_class_data(ty) {
            self.born_of(ty, values);
        }
        reference
    }

    /// Reads a field, of a whole value, ahead of the operators that want it. The reference is not null.
    pub(super) fn read_field(&mut self, reference: Value, type_index: u32, field: u32) -> Value {
        let ty = self.env.module.types[type_index as usize];
        let slot = Slot {
            trap: None,
            counted: false,
            ahead: true,
            ..self.field_slot(reference, ty, field, false)
        };
        let value = self.load(&slot);
        if slot.managed {
            self.track(value);
        }
        value
    }

    fn struct_get(&mut self, type_index: u32, field: u32, signed: bool) {
        let ty = self.env.module.types[type_index as usize];
        let reference = self.stack.last().expect("validated").value;
        let slot = self.field_slot(reference, ty, field, signed);
        let value = self.load(&slot);
        self.pop();
        let storage = self.env.types.fields(ty)[field as usize].storage;
        self.push(value, storage.unpacked());
    }

    fn struct_set(&mut self, type_index: u32, field: u32) {
        let ty = self.env.module.types[type_index as usize];
        let [object, value] = self.stack[self.stack.len() - 2..] else {
            unreachable!("validated: an object and a value")
        };
        let slot = self.field_slot(object.value, ty, field, false);
        self.store(&slot, value.value);
        self.pop_n(2);
    }

    /// Translates an operator on structs; whether it is one.
    pub(super) fn translate_struct(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            StructNew { .. } | StructNewDefault { .. } if self.leave_if_never() => {}
            StructNew { struct_type_index } => {
                let ty = self.env.module.types[struct_type_index as usize];
                let values = self.pop_n(self.env.types.fields(ty).len());
                let v = self.new_struct(ty, &values);
                self.push(v, self.concrete(struct_type_index, false));
            }
            StructNewDefault { struct_type_index } => {
                let ty = self.env.module.types[struct_type_index as usize];
                let v = self.allocate_struct(ty);
                if !self.is_class_data(ty) {
                    self.born_empty(ty);
                }
                self.push(v, self.concrete(struct_type_index, false));
            }
            StructGet {
                struct_type_index,
                field_index,
            }
            | StructGetU {
                struct_type_index,
                field_index,
            } => self.struct_get(struct_type_index, field_index, false),
            StructGetS {
                struct_type_index,
                field_index,
            } => self.struct_get(struct_type_index, field_index, true),
            StructSet {
                struct_type_index,
                field_index,
            } => self.struct_set(struct_type_index, field_index),
            _ => return false,
        }
        true
    }
}
