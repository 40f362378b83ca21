//! Arguments and results of the imports of Java programs, as numbers.

use super::State;
use crate::{Caller, Error, Val};

pub(super) type C<'a> = Caller<'a, State>;

pub(super) fn unsupported(what: String) -> Error {
    Error::Usage(format!(
        "the program uses JavaScript, which is not there: {what}"
    ))
}

pub(super) fn number(v: &Val) -> f64 {
    match v {
        Val::I32(v) => *v as f64,
        Val::I64(v) => *v as f64,
        Val::F32(b) => f32::from_bits(*b) as f64,
        Val::F64(b) => f64::from_bits(*b),
        _ => 0.0,
    }
}

/// A number as a value of the type that `slot` has been given.
pub(super) fn result(slot: &mut Val, n: f64) {
    *slot = match slot {
        Val::I32(_) => Val::I32(n as i64 as i32),
        Val::I64(_) => Val::I64(n as i64),
        Val::F32(_) => Val::f32(n as f32),
        _ => Val::f64(n),
    };
}
