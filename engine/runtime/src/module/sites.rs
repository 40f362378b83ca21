//! Allocation sites of a module: their places, and their names.
//!
//! A site is an operator that makes an object. An object made by a *maker* counts as made by the call of it: toolchains allocate all arrays of a type
//! in one small function, and the purpose of one array says nothing about the others. So a site is a place in a function and, for a maker, places in
//! the functions that are called from there:
//!
//! ```text
//!   load:  ... call $"Array<int>@new"      sites of load:  [offset of the call, offset in the maker]   array of i32
//!                                                          [offset of the call, offset in the maker]   Array<int>
//! ```

use super::ModuleInner;
use crate::types::{HeapType, Kind, Registry, Storage, ValType};
use std::collections::HashMap;
use varve_sites::Key;
use wasmparser::Operator;

/// Bytes of a maker's body at most: calls of it are inlined by both compilers where sites matter.
const MAKER: usize = 100;
/// Makers that call each other.
const MAKERS: usize = 4;

/// The name of the function that all objects are from which the module makes when it begins: those of its globals,
/// tables and segments.
const BEGINNING: &str = "(globals)";

/// An allocation site of a function.
pub(crate) struct Site {
    /// Offset of the operator in the module, after those of the calls that led to it.
    pub at: Vec<u32>,
    pub key: Key,
}

impl ModuleInner {
    /// Whether a function makes an object for its caller: a short one without loops and handlers that gives a reference to
    /// a type that it allocates.
    fn is_maker(&self, index: u32, types: &Registry) -> bool {
        let Some(body) = index
            .checked_sub(self.imported_funcs)
            .and_then(|defined| self.bodies.get(defined as usize))
        else {
            return false;
        };
        let [ValType::Ref(result)] = types.func(self.funcs[index as usize]).results[..] else {
            return false;
        };
        let HeapType::Concrete(result, _) = result.heap else {
            return false;
        };
        let mut allocates = false;
        let plain = body.len() <= MAKER
            && self.each_operator(index, |_, op| {
                allocates |= allocated(op).is_some_and(|ty| self.types[ty as usize] == result);
                !matches!(
                    op,
                    Operator::Loop { .. } | Operator::Try { .. } | Operator::TryTable { .. }
                )
            });
        plain && allocates
    }

    /// Calls `f` with each operator and its offset, until it says no: whether it never did.
    pub(super) fn each_operator(
        &self,
        index: u32,
        mut f: impl FnMut(u32, &Operator<'_>) -> bool,
    ) -> bool {
        let range = self.bodies[(index - self.imported_funcs) as usize].clone();
        let bytes = wasmparser::BinaryReader::new(&self.bytes[range.clone()], range.start as u64);
        let body = wasmparser::FunctionBody::new(bytes);
        let Ok(mut reader) = body.get_operators_reader() else {
            return false;
        };
        while !reader.eof() {
            let at = reader.original_position() as u32;
            match reader.read() {
                Ok(op) if f(at, &op) => {}
                _ => return false,
            }
        }
        true
    }

    /// The allocation sites of a function, in the order of its code.
    pub fn sites(&self, index: u32, types: &Registry) -> Vec<Site> {
        let mut places = Vec::new();
        self.places(index, types, &mut Vec::new(), &mut vec![index], &mut places);
        let function = self.site_function(index);
        let mut before: HashMap<String, u32> = HashMap::new();
        let site = |(at, ty)| {
            let ty = self.site_type(ty, types);
            let count = before.entry(ty.clone()).or_default();
            let nth = *count;
            *count += 1;
            let function = function.clone();
            Site {
                at,
                key: Key { function, ty, nth },
            }
        };
        places.into_iter().map(site).collect()
    }

    /// Adds places with the types that are made there. `calls` led to this function, which is the last of `around`.
    fn places(
        &self,
        index: u32,
        types: &Registry,
        calls: &mut Vec<u32>,
        around: &mut Vec<u32>,
        places: &mut Vec<(Vec<u32>, u32)>,
    ) {
        self.each_operator(index, |at, op| {
            calls.push(at);
            if let Some(ty) = allocated(op) {
                places.push((calls.clone(), ty));
            }
            if let Operator::Call { function_index } = *op
                && self.is_made_by(function_index, around, types)
            {
                around.push(function_index);
                self.places(function_index, types, calls, around, places);
                around.pop();
            }
            calls.pop();
            true
        });
    }

    /// Whether a function's objects count as made by its caller. `around` are that caller, by its index, and the makers that
    /// it was called by, the outermost function first.
    pub fn is_made_by(&self, index: u32, around: &[u32], types: &Registry) -> bool {
        around.len() <= MAKERS && !around.contains(&index) && self.is_maker(index, types)
    }

    /// The site of an object that the module makes when it begins.
    pub fn beginning(&self, ty: u32, types: &Registry) -> Key {
        Key {
            function: BEGINNING.into(),
            ty: self.site_type(ty, types),
            nth: 0,
        }
    }

    /// Whether a function is called this in site profiles.
    pub fn has_site_function(&self, name: &str) -> bool {
        let names = self.site_functions();
        name == BEGINNING || names.values().any(|n| n == name)
    }

    /// The name of a function in site profiles.
    fn site_function(&self, index: u32) -> String {
        let name = self.site_functions().get(&index);
        name.cloned().unwrap_or_else(|| format!("func {index}"))
    }

    /// Names of functions by their indices. Of those that share a name all but the first get a number.
    fn site_functions(&self) -> &HashMap<u32, String> {
        self.site_functions.get_or_init(|| {
            let mut before: HashMap<&str, u32> = HashMap::new();
            let defined = self.imported_funcs..self.funcs.len() as u32;
            let named = |index| {
                let export = || {
                    let of =
                        |e: &&super::Export| e.kind == super::ExportKind::Func && e.index == index;
                    self.exports.iter().find(of).map(|e| &e.name)
                };
                let Some(name) = self.names.get(&index).or_else(export) else {
                    return (index, format!("func {index}"));
                };
                let count = before.entry(name).or_default();
                *count += 1;
                match *count {
                    1 => (index, name.into()),
                    n => (index, format!("{name} #{n}")),
                }
            };
            defined.map(named).collect()
        })
    }

    /// The name of a type in site profiles; empty if it has none. Arrays without a name are called by their elements.
    fn site_type(&self, ty: u32, types: &Registry) -> String {
        if let Some(name) = self.type_names.get(&ty) {
            return name.clone();
        }
        let ty = self.types[ty as usize];
        if types.get(ty).ty.kind() != Kind::Array {
            return String::new();
        }
        let element = match types.element(ty).storage {
            Storage::I8 => "i8",
            Storage::I16 => "i16",
            Storage::Val(ValType::I32) => "i32",
            Storage::Val(ValType::I64) => "i64",
            Storage::Val(ValType::F32) => "f32",
            Storage::Val(ValType::F64) => "f64",
            Storage::Val(ValType::V128) => "v128",
            Storage::Val(ValType::Ref(_)) => "ref",
        };
        format!("{element}[]")
    }
}

/// The type, by its index in the module, of the object that an operator allocates.
fn allocated(op: &Operator<'_>) -> Option<u32> {
    use Operator::*;
    match *op {
        StructNew { struct_type_index } | StructNewDefault { struct_type_index } => {
            Some(struct_type_index)
        }
        ArrayNew { array_type_index }
        | ArrayNewDefault { array_type_index }
        | ArrayNewFixed {
            array_type_index, ..
        }
        | ArrayNewData {
            array_type_index, ..
        }
        | ArrayNewElem {
            array_type_index, ..
        } => Some(array_type_index),
        _ => None,
    }
}
