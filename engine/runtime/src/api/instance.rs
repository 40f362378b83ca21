//! Instances as embedders see them.

use super::extern_::{Extern, Global, Memory, Table, same_store};
use super::func::Func;
use super::typed::{TypedFunc, WasmResults, WasmTypes};
use crate::error::{Error, Result};
use crate::module::Module;
use crate::store::{AsContextMut, Vm};

/// A module with its imports, ready to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instance {
    pub(crate) store: u64,
    pub(crate) id: u32,
}

impl Instance {
    /// Makes an instance from imports in the order in which the module declares them, and runs its start function.
    ///
    /// # Errors
    /// If an import does not fit, or initialisation traps.
    pub fn new(
        mut store: impl AsContextMut,
        module: &Module,
        imports: &[Extern],
    ) -> Result<Instance> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        let id = vm.instantiate(module, imports)?;
        let instance = Instance { store: vm.id, id };
        if let Some(start) = module.inner.start {
            let func = vm.func_at(vm.instances[id as usize].funcs[start as usize]);
            // SAFETY: the store is borrowed mutably for the call.
            unsafe { Vm::call(store.vm_ptr(), func, &mut [0]) }?;
        }
        Ok(instance)
    }

    /// Compiles now every function that would be compiled at its first call.
    ///
    /// # Errors
    /// If the host gives no memory for the code.
    pub fn compile(&self, mut store: impl AsContextMut) -> Result<()> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        same_store(self.store, vm.id)?;
        let instance = &vm.instances[self.id as usize];
        let own = instance.funcs[instance.module.imported_funcs as usize..].to_vec();
        for place in own {
            vm.compile(vm.func_at(place))?;
        }
        Ok(())
    }

    /// Its export of a name.
    pub fn get_export(&self, mut store: impl AsContextMut, name: &str) -> Option<Extern> {
        let mut store = store.as_context_mut();
        same_store(self.store, store.vm().id).ok()?;
        store.vm().export(self.id, name)
    }

    /// All that it exports.
    pub fn exports(&self, mut store: impl AsContextMut) -> Vec<(String, Extern)> {
        let mut store = store.as_context_mut();
        let vm = store.vm();
        if same_store(self.store, vm.id).is_err() {
            return Vec::new();
        }
        let module = vm.instances[self.id as usize].module.clone();
        module
            .exports
            .iter()
            .filter_map(|e| Some((e.name.clone(), vm.export(self.id, &e.name)?)))
            .collect()
    }

    /// The exported function of a name.
    pub fn get_func(&self, store: impl AsContextMut, name: &str) -> Option<Func> {
        self.get_export(store, name)?.into_func()
    }

    /// The exported memory of a name.
    pub fn get_memory(&self, store: impl AsContextMut, name: &str) -> Option<Memory> {
        self.get_export(store, name)?.into_memory()
    }

    /// The exported global of a name.
    pub fn get_global(&self, store: impl AsContextMut, name: &str) -> Option<Global> {
        self.get_export(store, name)?.into_global()
    }

    /// The exported table of a name.
    pub fn get_table(&self, store: impl AsContextMut, name: &str) -> Option<Table> {
        self.get_export(store, name)?.into_table()
    }

    /// The exported function of a name, with Rust types.
    ///
    /// # Errors
    /// If there is no such function, or its type is another.
    pub fn get_typed_func<P: WasmTypes, R: WasmResults>(
        &self,
        mut store: impl AsContextMut,
        name: &str,
    ) -> Result<TypedFunc<P, R>> {
        let func = self
            .get_func(&mut store, name)
            .ok_or_else(|| Error::usage(format!("the module exports no function `{name}`")))?;
        func.typed(store)
    }
}
