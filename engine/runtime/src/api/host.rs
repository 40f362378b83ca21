//! Closures as host functions.

use super::typed::{WasmType, WasmTypes};
use crate::error::Result;
use crate::store::{Caller, HostFunction, Vm};
use crate::types::{FuncType, ValType};
use std::sync::Arc;

/// The result of a host function: values, or a `Result` of values.
pub trait HostResult {
    #[doc(hidden)]
    fn types() -> Vec<ValType>;
    #[doc(hidden)]
    fn put(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()>;
}

impl<R: WasmTypes> HostResult for R {
    fn types() -> Vec<ValType> {
        R::types()
    }
    fn put(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()> {
        self.store(vm, types, values)
    }
}

/// The results of a function that can fail.
impl<R: WasmTypes> HostResult for Result<R> {
    fn types() -> Vec<ValType> {
        R::types()
    }
    fn put(self, vm: &Vm, types: &[ValType], values: &mut [u64]) -> Result<()> {
        self?.store(vm, types, values)
    }
}

/// Closures that can be host functions of stores with data `T`; `P` and `R` tell the kinds of closures apart.
pub trait IntoFunc<T, P, R> {
    #[doc(hidden)]
    fn into_func(self) -> (FuncType, HostFunction);
}

macro_rules! closures {
    ($($name:ident $index:tt),*) => {
        #[allow(non_snake_case, unused_variables)]
        impl<T: 'static, Fun, R: HostResult, $($name: WasmType),*> IntoFunc<T, ($($name,)*), R> for Fun
        where
            Fun: Fn($($name),*) -> R + Send + Sync + 'static,
        {
            fn into_func(self) -> (FuncType, HostFunction) {
                IntoFunc::<T, (Caller<'static, T>, $($name,)*), R>::into_func(move |_: Caller<'_, T>, $($name: $name),*| {
                    self($($name),*)
                })
            }
        }

        #[allow(non_snake_case, unused_variables)]
        impl<T: 'static, Fun, R: HostResult, $($name: WasmType),*> IntoFunc<T, (Caller<'static, T>, $($name,)*), R> for Fun
        where
            Fun: Fn(Caller<'_, T>, $($name),*) -> R + Send + Sync + 'static,
        {
            fn into_func(self) -> (FuncType, HostFunction) {
                let ty = FuncType { params: vec![$($name::ty()),*], results: R::types() };
                let types = ty.clone();
                let call: HostFunction = Arc::new(move |vm, values| {
                    // SAFETY: host functions are called with the store that they were made for, while its code waits;
                    // each borrow ends before the next begins.
                    unsafe {
                        $(let $name = $name::from_bits(&mut *vm, types.params[$index], values[$index]);)*
                        let result = self(Caller::new(vm), $($name),*);
                        result.put(&*vm, &types.results, values)
                    }
                });
                (ty, call)
            }
        }
    };
}

closures!();
closures!(A 0);
closures!(A 0, B 1);
closures!(A 0, B 1, C 2);
closures!(A 0, B 1, C 2, D 3);
closures!(A 0, B 1, C 2, D 3, E 4);
closures!(A 0, B 1, C 2, D 3, E 4, F 5);
closures!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
closures!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
closures!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
