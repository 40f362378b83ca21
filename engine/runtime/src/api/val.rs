//! Values of any type.

use super::func::Func;
use crate::error::{Error, Result};
use crate::store::Vm;
use crate::store::root::Rooted;
use crate::types::{HeapType, Hierarchy, Kind, RefType, ValType};
use varve_heap::layout::I31_TAG;

/// A value with its type.
#[derive(Clone, Copy, Debug)]
pub enum Val {
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit float, by its bits.
    F32(u32),
    /// A 64-bit float, by its bits.
    F64(u64),
    /// A vector, its first lane in the low bits.
    V128(u128),
    /// A function or null.
    FuncRef(Option<Func>),
    /// An object or a 31-bit integer or null.
    AnyRef(Option<Rooted>),
    /// A value of the host, or an object that was made external, or null.
    ExternRef(Option<Rooted>),
    /// An exception or null.
    ExnRef(Option<Rooted>),
}

impl Val {
    /// A 32-bit float.
    pub fn f32(v: f32) -> Val {
        Val::F32(v.to_bits())
    }

    /// A 64-bit float.
    pub fn f64(v: f64) -> Val {
        Val::F64(v.to_bits())
    }

    /// The integer, if it is of 32 bits.
    pub fn i32(&self) -> Option<i32> {
        if let Val::I32(v) = self {
            Some(*v)
        } else {
            None
        }
    }

    /// The integer, if it is of 64 bits.
    pub fn i64(&self) -> Option<i64> {
        if let Val::I64(v) = self {
            Some(*v)
        } else {
            None
        }
    }

    /// The reference to an object, a host's value or an exception, if it is one and not null.
    pub fn rooted(&self) -> Option<Rooted> {
        match self {
            Val::AnyRef(r) | Val::ExternRef(r) | Val::ExnRef(r) => *r,
            _ => None,
        }
    }

    /// Zero or null of a type.
    pub fn zero(ty: ValType) -> Val {
        match ty {
            ValType::I32 => Val::I32(0),
            ValType::I64 => Val::I64(0),
            ValType::F32 => Val::F32(0),
            ValType::F64 => Val::F64(0),
            ValType::V128 => Val::V128(0),
            ValType::Ref(r) => match r.heap.hierarchy() {
                Hierarchy::Func => Val::FuncRef(None),
                Hierarchy::Any => Val::AnyRef(None),
                Hierarchy::Extern => Val::ExternRef(None),
                Hierarchy::Exn => Val::ExnRef(None),
            },
        }
    }

    pub(crate) fn from_bits(vm: &mut Vm, ty: ValType, bits: impl Into<u128>) -> Val {
        let all = bits.into();
        let (bits, raw) = (all as u64, all as u32);
        match ty {
            ValType::I32 => Val::I32(raw as i32),
            ValType::I64 => Val::I64(bits as i64),
            ValType::F32 => Val::F32(raw),
            ValType::F64 => Val::F64(bits),
            ValType::V128 => Val::V128(all),
            ValType::Ref(r) => match r.heap.hierarchy() {
                Hierarchy::Func => Val::FuncRef((raw != 0).then(|| Func {
                    store: vm.id,
                    id: vm.func_at(raw),
                })),
                hierarchy => {
                    let handle = (raw != 0).then(|| vm.roots.push(raw));
                    match hierarchy {
                        Hierarchy::Any => Val::AnyRef(handle),
                        Hierarchy::Extern => Val::ExternRef(handle),
                        _ => Val::ExnRef(handle),
                    }
                }
            },
        }
    }

    /// As [`Val::to_bits`], of any type.
    pub(crate) fn to_any_bits(self, vm: &Vm, ty: ValType) -> Result<u128> {
        match (self, ty) {
            (Val::V128(v), ValType::V128) => Ok(v),
            _ => self.to_bits(vm, ty).map(u128::from),
        }
    }

    /// Takes the first value of a list of words.
    pub(crate) fn take(vm: &mut Vm, ty: ValType, words: &mut &[u64]) -> Val {
        let (own, rest) = words.split_at(ty.words());
        *words = rest;
        let high = own.get(1).copied().unwrap_or(0);
        Val::from_bits(vm, ty, u128::from(high) << 64 | u128::from(own[0]))
    }

    /// Puts a value at the beginning of a list of words, and goes on after it.
    pub(crate) fn put(self, vm: &Vm, ty: ValType, words: &mut &mut [u64]) -> Result<()> {
        let bits = self.to_any_bits(vm, ty)?;
        let (own, rest) = std::mem::take(words).split_at_mut(ty.words());
        own[0] = bits as u64;
        if let Some(high) = own.get_mut(1) {
            *high = (bits >> 64) as u64;
        }
        *words = rest;
        Ok(())
    }

    /// The bits of a value that must be of type `ty` and no vector. References among them must be stored before anything allocates.
    pub(crate) fn to_bits(self, vm: &Vm, ty: ValType) -> Result<u64> {
        let mismatch = || {
            Error::usage(format!(
                "a value of type {} where {ty} is expected",
                self.type_name()
            ))
        };
        match (self, ty) {
            (Val::I32(v), ValType::I32) => Ok(v as u32 as u64),
            (Val::I64(v), ValType::I64) => Ok(v as u64),
            (Val::F32(v), ValType::F32) => Ok(v as u64),
            (Val::F64(v), ValType::F64) => Ok(v),
            (Val::FuncRef(f), ValType::Ref(r)) if r.heap.hierarchy() == Hierarchy::Func => {
                let Some(f) = f else {
                    return if r.nullable { Ok(0) } else { Err(mismatch()) };
                };
                super::extern_::same_store(f.store, vm.id)?;
                let data = &vm.funcs[f.id as usize];
                let actual = HeapType::Concrete(data.ty, Kind::Func);
                match vm.engine.types().is_heap_subtype(actual, r.heap) {
                    true => Ok(data.place as u64),
                    false => Err(mismatch()),
                }
            }
            (Val::AnyRef(h) | Val::ExternRef(h) | Val::ExnRef(h), ValType::Ref(r))
                if self.hierarchy() == Some(r.heap.hierarchy()) =>
            {
                let raw = match &h {
                    Some(h) => vm.roots.resolve(h)?,
                    None => 0,
                };
                if is_ref(vm, raw, r) {
                    Ok(raw as u64)
                } else {
                    Err(mismatch())
                }
            }
            _ => Err(mismatch()),
        }
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        match self {
            Val::AnyRef(_) => Some(Hierarchy::Any),
            Val::ExternRef(_) => Some(Hierarchy::Extern),
            Val::ExnRef(_) => Some(Hierarchy::Exn),
            Val::FuncRef(_) => Some(Hierarchy::Func),
            _ => None,
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Val::I32(_) => "i32",
            Val::I64(_) => "i64",
            Val::F32(_) => "f32",
            Val::F64(_) => "f64",
            Val::V128(_) => "v128",
            Val::FuncRef(None) | Val::AnyRef(None) | Val::ExternRef(None) | Val::ExnRef(None) => {
                "null"
            }
            Val::FuncRef(_) => "funcref",
            Val::AnyRef(_) => "anyref",
            Val::ExternRef(_) => "externref",
            Val::ExnRef(_) => "exnref",
        }
    }
}

/// Whether a reference outside of the functions' hierarchy is of a type.
pub(crate) fn is_ref(vm: &Vm, raw: u32, ty: RefType) -> bool {
    if raw == 0 {
        return ty.nullable;
    }
    match ty.heap {
        HeapType::Any | HeapType::Extern | HeapType::Exn => true,
        heap => {
            // Asks for the types too: not while they are held.
            let actual = heap_type_of(vm, raw);
            vm.engine.types().is_heap_subtype(actual, heap)
        }
    }
}

/// The most precise type of what a reference points at.
pub(crate) fn heap_type_of(vm: &Vm, raw: u32) -> HeapType {
    if raw & I31_TAG != 0 {
        return HeapType::I31;
    }
    let ty = vm.type_of(raw);
    let types = vm.engine.types();
    let canonical = types.get(ty);
    match canonical.opaque {
        true => HeapType::Any,
        false => HeapType::Concrete(ty, canonical.ty.kind()),
    }
}
