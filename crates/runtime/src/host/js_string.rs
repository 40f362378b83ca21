//! The imports of module `wasm:js-string`: strings of 16-bit units.

use super::js::Js;
use crate::{Caller, Error, Linker, Result, TrapKind, Val};

fn index(v: &Val) -> usize {
    v.i32().unwrap_or(0) as u32 as usize
}

fn array(v: &Val) -> Result<crate::Rooted> {
    v.rooted().ok_or_else(|| TrapKind::NullReference.into())
}

/// Defines the functions of the module.
pub(crate) fn link<T: 'static>(linker: &mut Linker<T>) {
    type C<'a, T> = Caller<'a, T>;
    let module = "wasm:js-string";
    linker.func_any(module, "length", (1, 1), |mut c: C<'_, T>, a, r| {
        r[0] = Val::I32(Js::string(&mut c, &a[0])?.len() as i32);
        Ok(())
    });
    linker.func_any(module, "charCodeAt", (2, 1), |mut c: C<'_, T>, a, r| {
        let s = Js::string(&mut c, &a[0])?;
        let unit = s
            .get(index(&a[1]))
            .ok_or_else(|| Error::from(TrapKind::ArrayOutOfBounds))?;
        r[0] = Val::I32(*unit as i32);
        Ok(())
    });
    linker.func_any(module, "fromCharCode", (1, 1), |c: C<'_, T>, a, r| {
        r[0] = Js::String(vec![index(&a[0]) as u16]).put(c)?;
        Ok(())
    });
    linker.func_any(module, "concat", (2, 1), |mut c: C<'_, T>, a, r| {
        let mut s = Js::string(&mut c, &a[0])?;
        s.extend(Js::string(&mut c, &a[1])?);
        r[0] = Js::String(s).put(c)?;
        Ok(())
    });
    linker.func_any(module, "substring", (3, 1), |mut c: C<'_, T>, a, r| {
        let s = Js::string(&mut c, &a[0])?;
        let (start, end) = (index(&a[1]), index(&a[2]).min(s.len()));
        let part = if start < end {
            s[start..end].to_vec()
        } else {
            vec![]
        };
        r[0] = Js::String(part).put(c)?;
        Ok(())
    });
    linker.func_any(module, "equals", (2, 1), |mut c: C<'_, T>, a, r| {
        let (x, y) = (Js::get(&mut c, &a[0])?, Js::get(&mut c, &a[1])?);
        let same = match (x, y) {
            (None, None) => true,
            (Some(Js::String(x)), Some(Js::String(y))) => x == y,
            _ => false,
        };
        r[0] = Val::I32(same as i32);
        Ok(())
    });
    linker.func_any(
        module,
        "fromCharCodeArray",
        (3, 1),
        |mut c: C<'_, T>, a, r| {
            let units = array(&a[0])?.u16_elements(&mut c)?;
            let part = units
                .get(index(&a[1])..index(&a[2]))
                .ok_or_else(|| Error::from(TrapKind::ArrayOutOfBounds))?;
            r[0] = Js::String(part.to_vec()).put(c)?;
            Ok(())
        },
    );
    linker.func_any(
        module,
        "intoCharCodeArray",
        (3, 1),
        |mut c: C<'_, T>, a, r| {
            let s = Js::string(&mut c, &a[0])?;
            let array = array(&a[1])?;
            if index(&a[2]) + s.len() > array.len(&mut c)? as usize {
                return Err(TrapKind::ArrayOutOfBounds.into());
            }
            array.write_u16_elements(&mut c, index(&a[2]) as u32, &s)?;
            r[0] = Val::I32(s.len() as i32);
            Ok(())
        },
    );
}
