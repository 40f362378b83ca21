//! Values of JavaScript, as far as compilers to WebAssembly need them where there is no JavaScript.

use crate::{AsContextMut, Error, Func, Result, Rooted, Val};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

/// A value behind an `externref`. Null is the null reference.
#[derive(Clone, Debug)]
pub(crate) enum Js {
    Undefined,
    Number(f64),
    Long(i64),
    Bool(bool),
    String(Vec<u16>),
    /// Strings only: the arguments of a program.
    Strings(Vec<Vec<u16>>),
    Function(Func),
    /// The function that returns its argument.
    Identity,
    /// A class without instances.
    Class,
    /// The class of dates.
    DateClass,
    /// Milliseconds since 1970.
    Date(Arc<AtomicI64>),
    /// The stack when an exception was made: addresses in code.
    Stack(Box<[usize]>),
}

impl Js {
    pub fn date(millis: i64) -> Js {
        Js::Date(Arc::new(AtomicI64::new(millis)))
    }

    /// The result of `typeof`.
    pub fn type_of(&self) -> &'static str {
        match self {
            Js::Undefined => "undefined",
            Js::Number(_) => "number",
            Js::Long(_) => "bigint",
            Js::Bool(_) => "boolean",
            Js::String(_) => "string",
            Js::Strings(_) | Js::Stack(_) | Js::Date(_) => "object",
            Js::Function(_) | Js::Identity | Js::Class | Js::DateClass => "function",
        }
    }

    /// The value as an external reference. Strings are objects of the heap.
    pub fn put(self, store: impl AsContextMut) -> Result<Val> {
        let rooted = match self {
            Js::String(units) => Rooted::string(store, &units)?,
            other => Rooted::external(store, other)?,
        };
        Ok(Val::ExternRef(Some(rooted)))
    }

    /// The value behind a reference; none for null.
    pub fn get<C: AsContextMut>(store: &mut C, val: &Val) -> Result<Option<Js>> {
        let Some(r) = val.rooted() else {
            return Ok(None);
        };
        if let Some(units) = r.string_units(&mut *store)? {
            return Ok(Some(Js::String(units)));
        }
        match r.host_value::<Js, C>(store) {
            Some(js) => Ok(Some(js.clone())),
            None => Err(Error::usage(
                "a JavaScript value was expected, and another object was given",
            )),
        }
    }

    /// The text of a string that must be one.
    pub fn string<C: AsContextMut>(store: &mut C, val: &Val) -> Result<Vec<u16>> {
        match Js::get(store, val)? {
            Some(Js::String(s)) => Ok(s),
            other => Err(Error::usage(format!(
                "a JavaScript string was expected, not {other:?}"
            ))),
        }
    }

    /// As [`Js::string`], for names and messages.
    pub fn str<C: AsContextMut>(store: &mut C, val: &Val) -> Result<String> {
        Ok(String::from_utf16_lossy(&Js::string(store, val)?))
    }
}
