//! Functions of a store.

use super::extern_::same_store;
use super::host::IntoFunc;
use super::typed::{TypedFunc, WasmResults, WasmTypes};
use super::val::Val;
use crate::error::{Error, Result};
use crate::store::{AsContextMut, Caller, HostFunction, Vm};
use crate::types::FuncType;
use std::sync::Arc;

/// A function: of an instance, or of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Func {
    pub(crate) store: u64,
    pub(crate) id: u32,
}

impl Func {
    /// A function of the host, from a closure of Rust types; its first parameter may be a [`Caller`].
    ///
    /// # Errors
    /// If the host gives no memory for code.
    pub fn wrap<C: AsContextMut, P, R>(
        mut store: C,
        f: impl IntoFunc<C::Data, P, R>,
    ) -> Result<Func> {
        let (ty, call) = f.into_func();
        Func::from_host(store.as_context_mut().vm(), ty, call)
    }

    /// A function of the host with a type that is known at run time only.
    ///
    /// # Errors
    /// If the host gives no memory for code.
    pub fn new<C: AsContextMut>(
        mut store: C,
        ty: FuncType,
        f: impl Fn(Caller<'_, C::Data>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Func>
    where
        C::Data: 'static,
    {
        let call = dynamic::<C::Data>(ty.clone(), f);
        Func::from_host(store.as_context_mut().vm(), ty, call)
    }

    fn from_host(vm: &mut Vm, ty: FuncType, call: HostFunction) -> Result<Func> {
        let ty = vm.engine.types().intern_func(ty);
        let id = vm.add_host_function(ty, call, None)?;
        Ok(Func { store: vm.id, id })
    }

    /// Its parameters and results.
    ///
    /// # Errors
    /// If the store is not the function's.
    pub fn ty(&self, mut store: impl AsContextMut) -> Result<FuncType> {
        let mut store = store.as_context_mut();
        same_store(self.store, store.vm().id)?;
        Ok(store.vm().func_type(self.id))
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the arguments do not fit or `results` has another length; else what ended the call early.
    pub fn call(
        &self,
        mut store: impl AsContextMut,
        args: &[Val],
        results: &mut [Val],
    ) -> Result<()> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let ty = vm.func_type(self.id);
        if args.len() != ty.params.len() || results.len() != ty.results.len() {
            return Err(Error::usage(format!(
                "function {} of type {ty} is called with {} arguments for {} results",
                vm.func_name(self.id),
                args.len(),
                results.len()
            )));
        }
        let mut values = vec![0u64; ty.words()];
        let mut words = &mut values[..];
        for (a, &t) in args.iter().zip(&ty.params) {
            a.put(vm, t, &mut words)?;
        }
        // SAFETY: the store is borrowed mutably for the call.
        unsafe { Vm::call(store.vm_ptr(), self.id, &mut values) }?;
        let vm = store.vm();
        let mut words = &values[..];
        for (result, &t) in results.iter_mut().zip(&ty.results) {
            *result = Val::take(vm, t, &mut words);
        }
        Ok(())
    }

    /// The function as one of these Rust types, for quick calls.
    ///
    /// # Errors
    /// If its type is another.
    pub fn typed<P: WasmTypes, R: WasmResults>(
        &self,
        mut store: impl AsContextMut,
    ) -> Result<TypedFunc<P, R>> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let ty = vm.func_type(self.id);
        if !P::fits(&ty.params) || !R::fits(&ty.results) {
            let name = vm.func_name(self.id);
            return Err(Error::usage(format!(
                "function {name} has type {ty}, which is not that of the typed function"
            )));
        }
        Ok(TypedFunc::new(*self))
    }
}

/// A host function over lists of values.
pub(crate) fn dynamic<T: 'static>(
    ty: FuncType,
    f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
) -> HostFunction {
    Arc::new(move |vm, values| {
        // SAFETY: host functions are called with the store that they were made for, while its code waits.
        let args: Vec<Val> = unsafe {
            let (vm, mut words) = (&mut *vm, &values[..]);
            ty.params
                .iter()
                .map(|&t| Val::take(vm, t, &mut words))
                .collect()
        };
        let mut results: Vec<Val> = ty.results.iter().map(|&t| Val::zero(t)).collect();
        // SAFETY: as above.
        f(unsafe { Caller::new(vm) }, &args, &mut results)?;
        let mut words = values;
        for (result, &t) in results.iter().zip(&ty.results) {
            // SAFETY: as above.
            result.put(unsafe { &*vm }, t, &mut words)?;
        }
        Ok(())
    })
}
