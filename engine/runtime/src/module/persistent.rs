//! Analysis of a module's code: which objects need persistence checks.

use super::ModuleInner;
use crate::types::{Registry, TypeIndex};
use std::collections::HashSet;
use wasmparser::Operator;

impl ModuleInner {
    /// Fields, by the topmost type that has them, that are stored into when their object is not certainly new.
    ///
    /// All other fields keep their initial values for ever, as their objects' copies do: loads of those need no check. Many toolchains
    /// declare all fields as mutable, and set those that no program could change, such as an object's class, right after the allocation.
    pub fn stored_fields(&self, types: &Registry) -> &HashSet<(TypeIndex, u32)> {
        self.stored_fields.get_or_init(|| {
            let mut stored = HashSet::new();
            for index in self.imported_funcs..self.funcs.len() as u32 {
                self.note_stores(index, types, &mut stored);
            }
            stored
        })
    }

    fn note_stores(&self, index: u32, types: &Registry, stored: &mut HashSet<(TypeIndex, u32)>) {
        let mut straight = Straight::default();
        self.each_operator(index, |_, op| {
            if let Some((ty, field)) = straight.step(op) {
                let ty = self.types[ty as usize];
                stored.insert((topmost(types, ty, field), field));
            }
            true
        });
    }
}

/// The topmost type that has a type's field.
pub(crate) fn topmost(types: &Registry, ty: TypeIndex, field: u32) -> TypeIndex {
    let display = &types.get(ty).display;
    let has = |&&a: &&TypeIndex| types.fields(a).len() > field as usize;
    display.iter().find(has).copied().unwrap_or(ty)
}

/// Which operands and locals are objects that were born since control last came together or anything was called.
#[derive(Default)]
struct Straight {
    /// The top of the operand stack, as far as it is known.
    stack: Vec<bool>,
    locals: HashSet<u32>,
}

impl Straight {
    /// The type and field of a store into an object that may be older.
    fn step(&mut self, op: &Operator<'_>) -> Option<(u32, u32)> {
        use Operator::*;
        match *op {
            StructNewDefault { .. } => self.stack.push(true),
            LocalTee { local_index } => match self.stack.last() {
                Some(true) => {
                    self.locals.insert(local_index);
                }
                _ => {
                    self.locals.remove(&local_index);
                }
            },
            LocalSet { local_index } => match self.stack.pop() {
                Some(true) => {
                    self.locals.insert(local_index);
                }
                _ => {
                    self.locals.remove(&local_index);
                }
            },
            LocalGet { local_index } => self.stack.push(self.locals.contains(&local_index)),
            GlobalGet { .. }
            | I32Const { .. }
            | I64Const { .. }
            | F32Const { .. }
            | F64Const { .. }
            | RefNull { .. }
            | RefFunc { .. } => self.stack.push(false),
            StructSet {
                struct_type_index,
                field_index,
            } => {
                let value = self.stack.pop();
                let object = self.stack.pop();
                let older = object != Some(true);
                if value != Some(false) {
                    // It may be durable from now on, if it was stored into a durable object.
                    self.forget();
                }
                return older.then_some((struct_type_index, field_index));
            }
            _ => self.forget(),
        }
        None
    }

    fn forget(&mut self) {
        self.stack.clear();
        self.locals.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, Module};

    #[test]
    fn fields_that_are_set_at_birth_alone_are_known() {
        let engine = Engine::default();
        let wasm = wat::parse_str(
            r#"(module
                (type $top (sub (struct (field $class (mut i32)) (field $hash (mut i32)))))
                (type $sub (sub $top (struct (field $class (mut i32)) (field $hash (mut i32)) (field $next (mut (ref null $top))))))
                (func $f)
                (func (export "make") (result (ref $sub)) (local $x (ref null $sub))
                    struct.new_default $sub  local.tee $x  i32.const 7  struct.set $sub $class
                    call $f
                    local.get $x  i32.const 8  struct.set $sub $hash
                    local.get $x  ref.as_non_null))"#,
        )
        .unwrap();
        let module = Module::new(&engine, &wasm).unwrap();
        let types = engine.types();
        let stored = module.inner.stored_fields(&types);
        let (top, sub) = (module.inner.types[0], module.inner.types[1]);
        assert!(stored.contains(&(top, 1)), "hash is set after a call");
        assert!(!stored.contains(&(top, 0)), "class is set at birth");
        assert!(!stored.contains(&(sub, 2)), "next is never set");
    }

    #[test]
    fn what_may_have_been_published_is_new_no_more() {
        let engine = Engine::default();
        let wasm = wat::parse_str(
            r#"(module
                (type $t (struct (field $class (mut i32)) (field $next (mut (ref null $t)))))
                (func (export "f") (param $old (ref $t)) (local $x (ref null $t))
                    struct.new_default $t  local.set $x
                    local.get $old  local.get $x  struct.set $t $next
                    local.get $x  i32.const 7  struct.set $t $class))"#,
        )
        .unwrap();
        let module = Module::new(&engine, &wasm).unwrap();
        let types = engine.types();
        let stored = module.inner.stored_fields(&types);
        let ty = module.inner.types[0];
        assert!(stored.contains(&(ty, 0)) && stored.contains(&(ty, 1)));
    }
}
