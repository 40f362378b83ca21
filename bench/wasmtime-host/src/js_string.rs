//! The imports of module `wasm:js-string`: strings of 16-bit units.

use crate::State;
use crate::js::Js;
use wasmtime::{ArrayRef, Caller, Error, FuncType, Linker, Result, Rooted, Val};

type C<'a> = Caller<'a, State>;

/// Defines the function of this name; `ty` is the type that the module imports it by.
pub fn link(linker: &mut Linker<State>, name: &str, ty: FuncType) -> Result<()> {
    let f: fn(C<'_>, &[Val], &mut [Val]) -> Result<()> = match name {
        "length" => |c, a, r| {
            r[0] = Val::I32(Js::string(&c, &a[0])?.len() as i32);
            Ok(())
        },
        "charCodeAt" => |c, a, r| {
            let s = Js::string(&c, &a[0])?;
            r[0] = Val::I32((*s.get(index(&a[1])).ok_or_else(outside)?).into());
            Ok(())
        },
        "fromCharCode" => |c, a, r| {
            r[0] = Js::String([index(&a[0]) as u16].into()).put(c)?;
            Ok(())
        },
        "concat" => |c, a, r| {
            let (x, y) = (Js::string(&c, &a[0])?, Js::string(&c, &a[1])?);
            r[0] = Js::String([&x[..], &y[..]].concat().into()).put(c)?;
            Ok(())
        },
        "substring" => |c, a, r| {
            let s = Js::string(&c, &a[0])?;
            let end = index(&a[2]).min(s.len());
            r[0] = Js::String(s.get(index(&a[1])..end).unwrap_or_default().into()).put(c)?;
            Ok(())
        },
        "fromCharCodeArray" => |mut c, a, r| {
            let array = array(&mut c, &a[0])?;
            let units = (index(&a[1])..index(&a[2]))
                .map(|i| Ok(index(&array.get(&mut c, i as u32)?) as u16));
            let units: Vec<u16> = units.collect::<Result<_>>()?;
            r[0] = Js::String(units.into()).put(c)?;
            Ok(())
        },
        "intoCharCodeArray" => |mut c, a, r| {
            let s = Js::string(&c, &a[0])?;
            let array = array(&mut c, &a[1])?;
            for (i, unit) in s.iter().enumerate() {
                array.set(&mut c, (index(&a[2]) + i) as u32, Val::I32((*unit).into()))?;
            }
            r[0] = Val::I32(s.len() as i32);
            Ok(())
        },
        // Left undefined: a call says so.
        _ => return Ok(()),
    };
    linker.func_new("wasm:js-string", name, ty, f)?;
    Ok(())
}

fn index(v: &Val) -> usize {
    v.i32().unwrap_or(0) as u32 as usize
}

fn outside() -> Error {
    Error::msg("an index outside of a string")
}

fn array(c: &mut C<'_>, v: &Val) -> Result<Rooted<ArrayRef>> {
    let Val::AnyRef(Some(any)) = v else {
        return Err(Error::msg("an array was expected"));
    };
    any.as_array(&*c)?
        .ok_or_else(|| Error::msg("an array was expected"))
}
