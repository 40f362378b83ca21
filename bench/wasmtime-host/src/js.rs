//! Values of JavaScript, as far as TeaVM's library needs them where there is no JavaScript.

use std::sync::Arc;
use wasmtime::{AsContext, AsContextMut, Error, ExternRef, Func, Result, Val};

/// A value behind an `externref`. Null is the null reference.
#[derive(Clone)]
pub enum Js {
    Undefined,
    Number(f64),
    String(Arc<[u16]>),
    /// Strings only: the arguments of a program.
    Strings(Arc<[Arc<[u16]>]>),
    Function(Func),
    /// The function that gives back its argument.
    Identity,
    /// A class that nobody makes instances of, or the stack of an exception, that nobody looks into.
    Opaque,
}

impl Js {
    /// What `typeof` says.
    pub fn type_of(&self) -> &'static str {
        match self {
            Js::Undefined => "undefined",
            Js::Number(_) => "number",
            Js::String(_) => "string",
            Js::Strings(_) | Js::Opaque => "object",
            Js::Function(_) | Js::Identity => "function",
        }
    }

    /// The value as an external reference.
    pub fn put(self, store: impl AsContextMut) -> Result<Val> {
        Ok(Val::ExternRef(Some(ExternRef::new(store, self)?)))
    }

    /// The value behind a reference; none for null.
    pub fn get(store: impl AsContext, val: &Val) -> Result<Option<Js>> {
        let Val::ExternRef(reference) = val else {
            return Err(Error::msg("a reference of JavaScript was expected"));
        };
        let Some(reference) = reference else {
            return Ok(None);
        };
        let context = store.as_context();
        let js = reference
            .data(&context)?
            .and_then(|data| data.downcast_ref::<Js>());
        js.cloned()
            .map(Some)
            .ok_or_else(|| Error::msg("a value of JavaScript was expected"))
    }

    /// The text of a string that must be one.
    pub fn string(store: impl AsContext, val: &Val) -> Result<Arc<[u16]>> {
        match Js::get(store, val)? {
            Some(Js::String(s)) => Ok(s),
            _ => Err(Error::msg("a string of JavaScript was expected")),
        }
    }
}
