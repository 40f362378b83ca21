//! Evaluates initialiser expressions.

use super::Vm;
use super::root::Rooted;
use crate::error::{Error, Result};
use crate::module::{Expr, ModuleInner};
use crate::types::{Storage, ValType};
use wasmparser::{BinaryReader, Operator};

/// A value while an expression is evaluated; objects are handles, since evaluation allocates.
#[derive(Clone, Copy)]
enum Item {
    Bits(u64),
    Vector(u128),
    Object(Rooted),
}

impl Vm {
    fn item_bits(&self, item: &Item) -> u64 {
        match item {
            Item::Bits(b) => *b,
            Item::Vector(_) => unreachable!("validated"),
            Item::Object(r) => self.roots.get(r).expect("evaluation keeps its own handles") as u64,
        }
    }

    fn item_any(&self, item: &Item) -> u128 {
        match item {
            Item::Vector(v) => *v,
            item => self.item_bits(item).into(),
        }
    }

    /// The value of an expression, by its bits; a reference among them must be stored before anything allocates.
    pub(crate) fn evaluate(
        &mut self,
        instance: u32,
        module: &ModuleInner,
        expr: &Expr,
    ) -> Result<u128> {
        let mark = self.roots.mark();
        let result = self.evaluate_items(instance, module, expr);
        let bits = result.map(|item| self.item_any(&item));
        self.roots.release(mark);
        bits
    }

    fn evaluate_items(&mut self, instance: u32, module: &ModuleInner, expr: &Expr) -> Result<Item> {
        let reader = BinaryReader::new(&module.bytes[expr.clone()], expr.start as u64);
        let broken = |e: wasmparser::Error| {
            Error::Internal(format!("validated expression does not decode: {e}"))
        };
        let mut ops = wasmparser::OperatorsReader::new(reader);
        let mut stack: Vec<Item> = Vec::new();
        while !ops.eof() {
            let op = ops.read().map_err(broken)?;
            self.evaluate_op(instance, module, &op, &mut stack)?;
        }
        stack
            .pop()
            .ok_or_else(|| Error::Internal("empty initialiser expression".into()))
    }

    fn object_item(&mut self, raw: u32) -> Item {
        match raw {
            0 => Item::Bits(0),
            r => Item::Object(self.roots.push(r)),
        }
    }

    fn evaluate_op(
        &mut self,
        instance: u32,
        module: &ModuleInner,
        op: &Operator<'_>,
        stack: &mut Vec<Item>,
    ) -> Result<()> {
        use Operator::*;
        let pop = |stack: &mut Vec<Item>| stack.pop().expect("validated");
        let item = match *op {
            End => return Ok(()),
            I32Const { value } => Item::Bits(value as u32 as u64),
            I64Const { value } => Item::Bits(value as u64),
            F32Const { value } => Item::Bits(value.bits() as u64),
            F64Const { value } => Item::Bits(value.bits()),
            V128Const { value } => Item::Vector(u128::from_le_bytes(*value.bytes())),
            I32Add | I32Sub | I32Mul | I64Add | I64Sub | I64Mul => {
                let b = self.item_bits(&pop(stack));
                let a = self.item_bits(&pop(stack));
                Item::Bits(match op {
                    I32Add => (a as u32).wrapping_add(b as u32) as u64,
                    I32Sub => (a as u32).wrapping_sub(b as u32) as u64,
                    I32Mul => (a as u32).wrapping_mul(b as u32) as u64,
                    I64Add => a.wrapping_add(b),
                    I64Sub => a.wrapping_sub(b),
                    _ => a.wrapping_mul(b),
                })
            }
            GlobalGet { global_index } => {
                let place = self.instances[instance as usize].globals[global_index as usize];
                match module.globals[global_index as usize].0.ty {
                    ValType::V128 => Item::Vector(self.global_vector(place)),
                    ty if ty.is_managed() => self.object_item(self.global_bits(place) as u32),
                    _ => Item::Bits(self.global_bits(place)),
                }
            }
            RefNull { .. } => Item::Bits(0),
            RefFunc { function_index } => {
                Item::Bits(self.instances[instance as usize].funcs[function_index as usize] as u64)
            }
            RefI31 => {
                let v = self.item_bits(&pop(stack)) as u32;
                Item::Bits((v << 1 | 1) as u64)
            }
            AnyConvertExtern | ExternConvertAny => return Ok(()),
            StructNew { struct_type_index } => {
                let ty = module.types[struct_type_index as usize];
                let count = self.engine.types().fields(ty).len();
                let fields = stack.split_off(stack.len() - count);
                let site = self.beginning(instance, module, struct_type_index);
                let raw = self.new_struct(ty, site, |vm, i| vm.item_any(&fields[i]))?;
                self.object_item(raw)
            }
            StructNewDefault { struct_type_index } => {
                let site = self.beginning(instance, module, struct_type_index);
                let raw = self.alloc_struct(module.types[struct_type_index as usize], site)?;
                self.object_item(raw)
            }
            ArrayNew { array_type_index } => {
                let len = self.item_bits(&pop(stack)) as u32;
                let value = pop(stack);
                let site = self.beginning(instance, module, array_type_index);
                let ty = module.types[array_type_index as usize];
                let raw = self.new_array(ty, site, len, |vm, _| vm.item_any(&value))?;
                self.object_item(raw)
            }
            ArrayNewDefault { array_type_index } => {
                let len = self.item_bits(&pop(stack)) as u32;
                let site = self.beginning(instance, module, array_type_index);
                let raw = self.alloc_array(module.types[array_type_index as usize], len, site)?;
                self.object_item(raw)
            }
            ArrayNewFixed {
                array_type_index,
                array_size,
            } => {
                let items = stack.split_off(stack.len() - array_size as usize);
                let ty = module.types[array_type_index as usize];
                let site = self.beginning(instance, module, array_type_index);
                let raw = self.new_array(ty, site, array_size, |vm, i| {
                    vm.item_any(&items[i as usize])
                })?;
                self.object_item(raw)
            }
            _ => {
                return Err(Error::Internal(format!(
                    "no evaluation of {op:?} in an initialiser"
                )));
            }
        };
        stack.push(item);
        Ok(())
    }

    /// An array of `len` elements, whose values are resolved by `bits` after the allocation.
    pub(crate) fn new_array(
        &mut self,
        ty: u32,
        site: u32,
        len: u32,
        bits: impl Fn(&Vm, u32) -> u128,
    ) -> Result<u32> {
        let raw = self.alloc_array(ty, len, site)?;
        let a = self.array(raw);
        for i in 0..len {
            // SAFETY: the array was made with these elements.
            unsafe { self.write(a.address(i), a.storage, bits(self, i)) };
        }
        if matches!(a.storage, Storage::Val(v) if v.is_managed()) && len > 0 {
            self.barrier(raw);
        }
        Ok(raw)
    }
}
