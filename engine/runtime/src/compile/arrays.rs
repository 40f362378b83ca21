//! Arrays.

use super::profile::Counted;
use super::slot::Slot;
use super::translate::Translator;
use crate::helpers::Helper;
use crate::types::{ValType, array_base};
use cranelift_codegen::ir::{Value, types};
use wasmparser::Operator;

impl Translator<'_, '_> {
    /// Reads the length of an array, which is not null, ahead of what wants it.
    pub(super) fn read_length(&mut self, reference: Value) {
        self.load(&Slot::length(reference));
    }

    fn array_get(&mut self, type_index: u32, signed: bool) {
        let ty = self.env.module.types[type_index as usize];
        let [array, index] = self.stack[self.stack.len() - 2..] else {
            unreachable!("validated: an array and an index")
        };
        let slot = self.element_slot(array.value, ty, index.value, signed);
        let value = self.load(&slot);
        self.pop_n(2);
        self.push(value, self.env.types.element(ty).storage.unpacked());
    }

    fn array_set(&mut self, type_index: u32) {
        let ty = self.env.module.types[type_index as usize];
        let [array, index, value] = self.stack[self.stack.len() - 3..] else {
            unreachable!("validated: an array, an index and a value")
        };
        let slot = self.element_slot(array.value, ty, index.value, false);
        self.store(&slot, value.value);
        self.pop_n(3);
    }

    fn array_new(&mut self, type_index: u32) {
        let ty = self.env.module.types[type_index as usize];
        let len = self.pop();
        let value = self.pop();
        let reference = self.allocate_array(ty, len);
        let zero = self.i32(0);
        self.fill(reference, zero, value, len);
        self.push(reference, self.concrete(type_index, false));
    }

    fn fill(&mut self, array: Value, start: Value, value: Value, len: Value) {
        match self.halves(value) {
            Some([low, high]) => {
                self.call_helper(Helper::ArrayFillVector, &[array, start, low, high, len]);
            }
            None => {
                let value = self.bits(value);
                self.call_helper(Helper::ArrayFill, &[array, start, value, len]);
            }
        }
    }

    fn array_new_fixed(&mut self, type_index: u32, count: u32) {
        let ty = self.env.module.types[type_index as usize];
        let values = self.pop_n(count as usize);
        let len = self.i32(count as i64);
        let reference = self.allocate_array(ty, len);
        let storage = self.env.types.element(ty).storage;
        let region = self.element_region(ty);
        let address = self.object_address(reference);
        for (i, v) in values.into_iter().enumerate() {
            let at = array_base(storage.bytes()) + i as u32 * storage.bytes();
            let slot = Slot::of_new(reference, storage, at, region);
            self.initialize(&slot, address, v);
        }
        self.push(reference, self.concrete(type_index, false));
    }

    fn array_from_segment(&mut self, helper: Helper, type_index: u32, segment: u32) {
        let site = self.site();
        let ty = self.env.module.types[type_index as usize];
        let len = self.pop();
        let offset = self.pop();
        // One operand for both: helpers that throw have few.
        let segment = u64::from(self.env.instance_id) << 32 | u64::from(segment);
        let (segment, ty) = (self.i64(segment as i64), self.i32(ty as i64));
        let site = self.own_constant(types::I32, site.into());
        let v = self
            .call_helper(helper, &[segment, ty, offset, len, site])
            .expect("result");
        self.born(v, None, site);
        self.push(v, self.concrete(type_index, false));
    }

    fn array_init(&mut self, helper: Helper, segment: u32) {
        let operands = self.pop_n(4);
        let (i, s) = (self.instance_id(), self.i32(segment as i64));
        self.call_helper(
            helper,
            &[i, s, operands[0], operands[1], operands[2], operands[3]],
        );
        self.count_access(Counted::Write, operands[0], Some(operands[3]));
    }

    /// Translates an operator on arrays; whether it is one.
    pub(super) fn translate_array(&mut self, op: &Operator<'_>) -> bool {
        use Operator::*;
        match *op {
            ArrayNewDefault { .. } if self.leave_if_never() => {}
            ArrayNew { array_type_index } => self.array_new(array_type_index),
            ArrayNewDefault { array_type_index } => {
                let len = self.pop();
                let v = self.allocate_array(self.env.module.types[array_type_index as usize], len);
                self.push(v, self.concrete(array_type_index, false));
            }
            ArrayNewFixed {
                array_type_index,
                array_size,
            } => self.array_new_fixed(array_type_index, array_size),
            ArrayNewData {
                array_type_index,
                array_data_index,
            } => self.array_from_segment(Helper::ArrayNewData, array_type_index, array_data_index),
            ArrayNewElem {
                array_type_index,
                array_elem_index,
            } => self.array_from_segment(Helper::ArrayNewElem, array_type_index, array_elem_index),
            ArrayGet { array_type_index } | ArrayGetU { array_type_index } => {
                self.array_get(array_type_index, false)
            }
            ArrayGetS { array_type_index } => self.array_get(array_type_index, true),
            ArraySet { array_type_index } => self.array_set(array_type_index),
            ArrayLen => {
                let reference = self.stack.last().expect("validated").value;
                let length = self.load(&Slot {
                    counted: true,
                    ..Slot::length(reference)
                });
                self.pop();
                self.push(length, ValType::I32);
            }
            ArrayFill { .. } => {
                let o = self.pop_n(4);
                self.fill(o[0], o[1], o[2], o[3]);
                self.count_access(Counted::Write, o[0], Some(o[3]));
            }
            ArrayCopy {
                array_type_index_dst,
                ..
            } => {
                let o = self.pop_n(5);
                let ty = self.env.module.types[array_type_index_dst as usize];
                match self.copies_inline(ty) {
                    true => self.copy_inline(ty, &o),
                    false => {
                        self.call_helper(Helper::ArrayCopy, &o);
                    }
                }
                self.count_access(Counted::Write, o[0], Some(o[4]));
                self.count_access(Counted::Read, o[2], Some(o[4]));
            }
            ArrayInitData {
                array_data_index, ..
            } => self.array_init(Helper::ArrayInitData, array_data_index),
            ArrayInitElem {
                array_elem_index, ..
            } => self.array_init(Helper::ArrayInitElem, array_elem_index),
            _ => return false,
        }
        true
    }
}
