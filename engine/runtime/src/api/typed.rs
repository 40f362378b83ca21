//! Functions with Rust types.

use super::extern_::same_store;
use super::func::Func;
use super::val::Val;
use crate::error::Result;
use crate::store::root::Rooted;
use crate::store::{AsContextMut, Vm};
use crate::types::{Hierarchy, ValType};
use std::marker::PhantomData;

/// A Rust type that stands for a WebAssembly type.
pub trait WasmType: Sized {
    /// Whether values of `ty` can be this.
    fn fits(ty: ValType) -> bool;
    /// The type of a host function's parameter or result of this Rust type.
    fn ty() -> ValType;
    #[doc(hidden)]
    fn to_bits(self, vm: &Vm, ty: ValType) -> Result<u64>;
    #[doc(hidden)]
    fn from_bits(vm: &mut Vm, ty: ValType, bits: u64) -> Self;
}

macro_rules! number {
    ($rust:ty, $wasm:ident, $to:expr, $from:expr) => {
        impl WasmType for $rust {
            fn fits(ty: ValType) -> bool {
                ty == ValType::$wasm
            }
            fn ty() -> ValType {
                ValType::$wasm
            }
            fn to_bits(self, _: &Vm, _: ValType) -> Result<u64> {
                Ok($to(self))
            }
            fn from_bits(_: &mut Vm, _: ValType, bits: u64) -> Self {
                $from(bits)
            }
        }
    };
}

number!(i32, I32, |v| v as u32 as u64, |b| b as i32);
number!(u32, I32, |v| v as u64, |b| b as u32);
number!(i64, I64, |v| v as u64, |b| b as i64);
number!(u64, I64, |v| v, |b| b);
number!(f32, F32, |v: f32| v.to_bits() as u64, |b| f32::from_bits(
    b as u32
));
number!(f64, F64, |v: f64| v.to_bits(), f64::from_bits);

impl WasmType for Option<Func> {
    fn fits(ty: ValType) -> bool {
        matches!(ty, ValType::Ref(r) if r.heap.hierarchy() == Hierarchy::Func)
    }
    fn ty() -> ValType {
        ValType::FUNCREF
    }
    fn to_bits(self, vm: &Vm, ty: ValType) -> Result<u64> {
        Val::FuncRef(self).to_bits(vm, ty)
    }
    fn from_bits(vm: &mut Vm, ty: ValType, bits: u64) -> Self {
        match Val::from_bits(vm, ty, bits) {
            Val::FuncRef(f) => f,
            _ => None,
        }
    }
}

/// Any reference that is not a function; as a host function's parameter or result it is an `externref`.
impl WasmType for Option<Rooted> {
    fn fits(ty: ValType) -> bool {
        matches!(ty, ValType::Ref(r) if r.heap.hierarchy() != Hierarchy::Func)
    }
    fn ty() -> ValType {
        ValType::EXTERNREF
    }
    fn to_bits(self, vm: &Vm, ty: ValType) -> Result<u64> {
        let ValType::Ref(r) = ty else {
            unreachable!("`fits` was asked")
        };
        let val = match r.heap.hierarchy() {
            Hierarchy::Any => Val::AnyRef(self),
            Hierarchy::Exn => Val::ExnRef(self),
            _ => Val::ExternRef(self),
        };
        val.to_bits(vm, ty)
    }
    fn from_bits(vm: &mut Vm, ty: ValType, bits: u64) -> Self {
        Val::from_bits(vm, ty, bits).rooted()
    }
}

/// Lists of parameters: tuples of [`WasmType`]s, or one alone.
pub trait WasmTypes {
    #[doc(hidden)]
    fn fits(types: &[ValType]) -> bool;
    #[doc(hidden)]
    fn types() -> Vec<ValType>;
    #[doc(hidden)]
    fn store(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()>;
    #[doc(hidden)]
    fn load(vm: &mut Vm, types: &[ValType], values: &[u64]) -> Self;
}

/// Most values in a list.
const MOST: usize = 8;

/// Lists of results.
pub trait WasmResults: WasmTypes {}
impl<T: WasmTypes> WasmResults for T {}

impl<A: WasmType> WasmTypes for A {
    fn fits(types: &[ValType]) -> bool {
        types.len() == 1 && A::fits(types[0])
    }
    fn types() -> Vec<ValType> {
        vec![A::ty()]
    }
    fn store(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()> {
        values[0] = self.to_bits(vm, types[0])?;
        Ok(())
    }
    fn load(vm: &mut Vm, types: &[ValType], values: &[u64]) -> Self {
        A::from_bits(vm, types[0], values[0])
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($name: WasmType),*> WasmTypes for ($($name,)*) {
            fn fits(types: &[ValType]) -> bool {
                let count = 0usize $(+ { let _ = $index; 1 })*;
                types.len() == count $(&& $name::fits(types[$index]))*
            }
            fn types() -> Vec<ValType> {
                vec![$($name::ty()),*]
            }
            fn store(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()> {
                $(values[$index] = self.$index.to_bits(vm, types[$index])?;)*
                Ok(())
            }
            fn load(vm: &mut Vm, types: &[ValType], values: &[u64]) -> Self {
                ($($name::from_bits(vm, types[$index], values[$index]),)*)
            }
        }
    };
}

tuples!();
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// A function whose type was checked once.
#[derive(Debug)]
pub struct TypedFunc<P, R> {
    func: Func,
    types: PhantomData<fn(P) -> R>,
}

impl<P, R> Clone for TypedFunc<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for TypedFunc<P, R> {}

impl<P: WasmTypes, R: WasmResults> TypedFunc<P, R> {
    pub(crate) fn new(func: Func) -> Self {
        TypedFunc {
            func,
            types: PhantomData,
        }
    }

    /// The function without Rust types.
    pub fn func(&self) -> Func {
        self.func
    }

    /// Calls it.
    ///
    /// # Errors
    /// The error or trap that ended the call.
    pub fn call(&self, mut store: impl AsContextMut, args: P) -> Result<R> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.func.store, vm.id)?;
        // Calls are many and small: nothing is allocated for one.
        let mut params = [ValType::I32; MOST];
        let mut results = params;
        let counts = vm.with_func_type(self.func.id, |ty| {
            params[..ty.params.len()].copy_from_slice(&ty.params);
            results[..ty.results.len()].copy_from_slice(&ty.results);
            (ty.params.len(), ty.results.len())
        });
        let mut values = [0u64; MOST];
        let values = &mut values[..counts.0.max(counts.1).max(1)];
        args.store(vm, &params[..counts.0], values)?;
        // SAFETY: the store is borrowed mutably for the call.
        unsafe { Vm::call(store.vm_ptr(), self.func.id, values) }?;
        Ok(R::load(store.vm(), &results[..counts.1], values))
    }
}
