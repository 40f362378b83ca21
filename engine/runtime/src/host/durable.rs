//! The module `varve`, its part for objects that survive. Names are spelled a UTF-16 unit at a time, so that no string of any language has to
//! be understood here.
//!
//! | import | type | function |
//! |---|---|---|
//! | `durable` | `-> i32` | asks whether a region file is open |
//! | `class_lives` | `i32 -> i32` | asks whether the region may have objects of a class, by its number in the section `varve.classes` |
//! | `root_unit` | `i32 ->` | adds a unit to the name that the next call is about |
//! | `root` | `-> (ref null T)` | the root that the name stands for |
//! | `set_root` | `(ref null T) ->` | has the name stand for an object |
//! | `region_begin`, `region_end`, `region_rollback` | `->` | failure-atomic regions: the last two are for the one that was begun last |

use crate::{AsContextMut, Caller, Linker, Result, Val};

const MODULE: &str = "varve";

type C<'a, T> = Caller<'a, T>;

/// Defines these functions.
pub fn link<T: 'static>(linker: &mut Linker<T>) {
    linker.func_wrap(MODULE, "durable", |mut c: C<'_, T>| {
        i32::from(c.as_context_mut().vm().is_durable())
    });
    linker.func_wrap(MODULE, "class_lives", |mut c: C<'_, T>, number: i32| {
        i32::from(c.as_context_mut().vm().class_lives(number as u32))
    });
    linker.func_wrap(MODULE, "root_unit", |mut c: C<'_, T>, unit: i32| {
        c.as_context_mut().vm().spell_root(unit as u32)
    });
    linker.func_any(MODULE, "root", (0, 1), |mut c: C<'_, T>, _, r| {
        let mut context = c.as_context_mut();
        let vm = context.vm();
        let object = vm.find_root()?;
        r[0] = Val::AnyRef((object != 0).then(|| vm.roots.push(object)));
        Ok(())
    });
    linker.func_any(MODULE, "set_root", (1, 0), |mut c: C<'_, T>, a, _| {
        let mut context = c.as_context_mut();
        let vm = context.vm();
        let object = match a[0].rooted() {
            Some(r) => vm.roots.resolve(&r)?,
            None => 0,
        };
        vm.publish_root(object)
    });
    linker.func_wrap(MODULE, "region_begin", |mut c: C<'_, T>| {
        c.as_context_mut().vm().begin_region()
    });
    linker.func_wrap(MODULE, "region_end", |mut c: C<'_, T>| -> Result<()> {
        c.as_context_mut().vm().end_region()
    });
    linker.func_wrap(MODULE, "region_rollback", |mut c: C<'_, T>| -> Result<()> {
        c.as_context_mut().vm().roll_back_region()
    });
}
