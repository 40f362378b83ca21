//! Finds imports by name.

use super::extern_::Extern;
use super::func::{Func, dynamic};
use super::host::IntoFunc;
use super::instance::Instance;
use super::val::Val;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::host::js_string::Builtin;
use crate::module::{ExternType, Import, Module};
use crate::store::{AsContextMut, Caller, HostFunction, Vm};
use crate::store::{Inline, Leaf};
use crate::types::FuncType;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

type Maker = Arc<dyn Fn(&FuncType) -> HostFunction + Send + Sync>;

/// Numbers of parameters and results, at least.
type Arity = (usize, usize);

enum Definition {
    Extern(Extern),
    /// A function of the host, with its type.
    Host(FuncType, HostFunction),
    /// A function of the host that is as good as an instruction.
    Leaf(Leaf),
    /// The programmer's mark at an allocation site.
    Mark,
    /// A function on strings.
    Builtin(&'static Builtin),
    /// A function of the host that takes the type given by the importing module, if that has this number of parameters and results.
    Any(Arity, Maker),
}

/// Definitions for imports, by their two names.
pub struct Linker<T> {
    engine: Engine,
    definitions: HashMap<(String, String), Definition>,
    data: PhantomData<fn() -> T>,
}

impl<T: 'static> Linker<T> {
    /// A linker without definitions.
    pub fn new(engine: &Engine) -> Linker<T> {
        Linker {
            engine: engine.clone(),
            definitions: HashMap::new(),
            data: PhantomData,
        }
    }

    /// The engine that it was made for.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn put(&mut self, module: &str, name: &str, definition: Definition) -> &mut Self {
        self.definitions
            .insert((module.into(), name.into()), definition);
        self
    }

    /// Defines an import as something of a store. A later definition of the same name takes its place, here and below.
    pub fn define(&mut self, module: &str, name: &str, item: impl Into<Extern>) -> &mut Self {
        let item = item.into();
        self.put(module, name, Definition::Extern(item))
    }

    /// Defines all exports of an instance as imports from `module`.
    pub fn instance(
        &mut self,
        store: impl AsContextMut<Data = T>,
        module: &str,
        instance: Instance,
    ) -> &mut Self {
        for (name, item) in instance.exports(store) {
            self.define(module, &name, item);
        }
        self
    }

    /// Defines a function of the host, from a closure of Rust types; its first parameter may be a [`Caller`].
    pub fn func_wrap<P, R>(
        &mut self,
        module: &str,
        name: &str,
        f: impl IntoFunc<T, P, R>,
    ) -> &mut Self {
        let (ty, call) = f.into_func();
        self.put(module, name, Definition::Host(ty, call))
    }

    /// Defines a function of the host with a type that is known at run time only.
    pub fn func_new(
        &mut self,
        module: &str,
        name: &str,
        ty: FuncType,
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> &mut Self {
        let call = dynamic(ty.clone(), f);
        self.put(module, name, Definition::Host(ty, call))
    }

    /// Defines a function of the host that takes whatever type the importing module declares for it, as is needed where
    /// that type names types of the module itself. `arity` is how many parameters and results it has at least; a module that
    /// declares fewer is not linked.
    pub fn func_any(
        &mut self,
        module: &str,
        name: &str,
        arity: (usize, usize),
        f: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> &mut Self {
        let f = Arc::new(f);
        let maker: Maker = Arc::new(move |ty| {
            let f = f.clone();
            dynamic(ty.clone(), move |caller, args, results| {
                f(caller, args, results)
            })
        });
        self.put(module, name, Definition::Any(arity, maker))
    }

    /// Defines a function of numbers that compiled code has inline.
    pub fn func_leaf(&mut self, module: &str, name: &str, leaf: Leaf) -> &mut Self {
        self.put(module, name, Definition::Leaf(leaf))
    }

    /// Makes an instance, with imports by their names, and runs its start function.
    ///
    /// # Errors
    /// [`Error::MissingImport`] or [`Error::ImportType`] with the import's names; or if initialisation traps.
    pub fn instantiate(
        &self,
        mut store: impl AsContextMut<Data = T>,
        module: &Module,
    ) -> Result<Instance> {
        let mut imports = Vec::with_capacity(module.inner.imports.len());
        for import in &module.inner.imports {
            imports.push(self.resolve(store.as_context_mut().vm(), import)?);
        }
        Instance::new(store, module, &imports)
    }

    /// The imports of a module that nothing here defines, by both names.
    pub fn undefined<'m>(&self, module: &'m Module) -> Vec<(&'m str, &'m str)> {
        let imports = module.imports().map(|(module, name, _)| (module, name));
        let defined = |(module, name): &(&str, &str)| {
            self.definitions
                .contains_key(&(module.to_string(), name.to_string()))
        };
        imports.filter(|names| !defined(names)).collect()
    }

    /// Defines the function that marks its argument, a fresh object of any type, as critical.
    pub(crate) fn func_mark(&mut self, module: &str, name: &str) -> &mut Self {
        self.put(module, name, Definition::Mark)
    }

    /// Defines a function on strings.
    pub(crate) fn func_builtin(
        &mut self,
        module: &str,
        name: &str,
        builtin: &'static Builtin,
    ) -> &mut Self {
        self.put(module, name, Definition::Builtin(builtin))
    }

    /// Whether anything of `module` is defined.
    pub(crate) fn defines(&self, module: &str) -> bool {
        self.definitions.keys().any(|(m, _)| m == module)
    }

    fn resolve(&self, vm: &mut Vm, import: &Import) -> Result<Extern> {
        let missing = || Error::MissingImport {
            module: import.module.clone(),
            name: import.name.clone(),
            kind: import.ty.kind(),
        };
        let mismatch = |expected, (params, results): Arity| Error::ImportType {
            module: import.module.clone(),
            name: import.name.clone(),
            expected,
            given: format!("function of {params} parameters and {results} results or more"),
        };
        let key = (import.module.clone(), import.name.clone());
        let add = |vm: &mut Vm, ty, call, inline| {
            let id = vm.add_host_function(ty, call, inline)?;
            Ok(Func { store: vm.id, id }.into())
        };
        let host = |vm: &mut Vm, ty, call| add(vm, ty, call, None);
        // The import's own type, if it means the same: a module may have declared it in a recursion group.
        let own = |vm: &mut Vm, ty: &FuncType| match &import.ty {
            ExternType::Func(wanted) if vm.engine.types().func(*wanted) == ty => *wanted,
            _ => vm.engine.types().intern_func(ty.clone()),
        };
        match (self.definitions.get(&key).ok_or_else(missing)?, &import.ty) {
            (Definition::Extern(e), _) => Ok(*e),
            (Definition::Any(arity, maker), ExternType::Func(wanted)) => {
                let ty = vm.engine.types().func(*wanted).clone();
                if ty.params.len() < arity.0 || ty.results.len() < arity.1 {
                    return Err(mismatch(format!("function {ty}"), *arity));
                }
                host(vm, *wanted, maker(&ty))
            }
            (Definition::Any(arity, _), other) => Err(mismatch(other.kind().into(), *arity)),
            (Definition::Host(ty, call), _) => {
                let ty = own(vm, ty);
                host(vm, ty, call.clone())
            }
            (Definition::Leaf(leaf), _) => {
                let ty = own(vm, &leaf.ty());
                add(vm, ty, leaf.host(), Some(Inline::Leaf(*leaf)))
            }
            (Definition::Mark, ExternType::Func(wanted)) => {
                let ty = vm.engine.types().func(*wanted).clone();
                let fits = matches!(&ty.params[..], [one] if one.is_managed());
                if !fits || !ty.results.is_empty() {
                    return Err(Error::ImportType {
                        module: import.module.clone(),
                        name: import.name.clone(),
                        expected: format!("function {ty}"),
                        given: "function of one object without results".into(),
                    });
                }
                let call: HostFunction = Arc::new(|vm, values| {
                    // SAFETY: host functions are called with the store that they were made for, while its code waits.
                    unsafe { (*vm).mark(values[0] as u32) };
                    Ok(())
                });
                add(vm, *wanted, call, Some(Inline::Mark))
            }
            (Definition::Builtin(builtin), ExternType::Func(wanted)) => {
                let call = {
                    let types = vm.engine.types();
                    let ty = types.func(*wanted);
                    let mismatch = |given| Error::ImportType {
                        module: import.module.clone(),
                        name: import.name.clone(),
                        expected: format!("function {ty}"),
                        given,
                    };
                    builtin.of_type(ty, &types).map_err(mismatch)?
                };
                host(vm, *wanted, call)
            }
            (Definition::Builtin(_), other) => Err(mismatch(other.kind().into(), (1, 1))),
            (Definition::Mark, other) => Err(mismatch(other.kind().into(), (1, 0))),
        }
    }
}
