//! The module `varve`: the interface between a program and the runtime that places its objects.
//!
//! | import | type | meaning |
//! |---|---|---|
//! | `critical` | `(ref null T) ->` | the object was just allocated, at a site that is critical for the program's speed |
//! | `sampling` | `-> i32` | asks whether the runtime needs reports of intervals |
//! | `interval` | `i64 i64 i64 ->` | an interval of the program's work has ended: its number, and the nanoseconds that loading and updating took |

use crate::{AsContextMut, Caller, Error, Linker, Result};
use std::time::Duration;

const MODULE: &str = "varve";

/// Defines the functions of the module `varve`, those for [durable objects](super::durable) too.
pub fn link<T: 'static>(linker: &mut Linker<T>) {
    super::durable::link(linker);
    linker.func_mark(MODULE, "critical");
    linker.func_wrap(MODULE, "sampling", |mut c: Caller<'_, T>| {
        i32::from(c.as_context_mut().vm().wants_intervals())
    });
    linker.func_wrap(
        MODULE,
        "interval",
        |mut c: Caller<'_, T>, id: i64, load: i64, update: i64| -> Result<()> {
            let number = |what, n: i64| {
                let negative = |_| {
                    Error::usage(format!(
                        "interval {id} was reported with {what} of {n}: it cannot be negative"
                    ))
                };
                u64::try_from(n).map_err(negative)
            };
            let load = Duration::from_nanos(number("a load time", load)?);
            let update = Duration::from_nanos(number("an update time", update)?);
            let id = number("an id", id)?;
            c.as_context_mut().vm().interval(id, load, update)
        },
    );
}
