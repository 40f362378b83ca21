//! The functions of modules `wasm:js-string`, `wasm:text-encoder` and `wasm:text-decoder`, and strings as imported globals: compilers use them in
//! place of strings of their own. See the proposal "JS String Builtins".
//!
//! A string is an object of the heap (`store/strings.rs`), which modules have as an `externref`. Positions and lengths count 16-bit units.

use crate::error::{Error, Result, TrapKind};
use crate::extern_::Global;
use crate::module::{ExternType, GlobalType, Import, Module};
use crate::store::{HostFunction, Vm};
use crate::types::{FuncType, HeapType, Kind, Registry, Storage, TypeIndex, ValType};
use crate::{Linker, Rooted, Store, Val};
use std::fmt;
use std::sync::Arc;
use varve_access::Kind as Access;

/// The kind of a parameter or result: 32 bits each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    I32,
    /// An external reference, to a string except for values that are tested.
    Extern,
    /// A reference to an array of these.
    Array(Storage),
}

use Slot::{Extern, I32};
const UNITS: Slot = Slot::Array(Storage::I16);
const BYTES: Slot = Slot::Array(Storage::I8);

impl Slot {
    fn fits(self, ty: ValType, types: &Registry) -> bool {
        match (self, ty) {
            (Slot::I32, ValType::I32) => true,
            (Slot::Extern, ValType::Ref(r)) => r.heap == HeapType::Extern,
            (Slot::Array(storage), ValType::Ref(r)) => match r.heap {
                HeapType::Concrete(i, Kind::Array) => types.element(i).storage == storage,
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Slot::I32 => "i32",
            Slot::Extern => "externref",
            Slot::Array(Storage::I8) => "(ref null (array (mut i8)))",
            Slot::Array(_) => "(ref null (array (mut i16)))",
        })
    }
}

/// A call's arguments, and the type of the array that it returns, if it returns one.
struct Given {
    args: [u32; 3],
    array: Option<TypeIndex>,
}

type Call = fn(&mut Vm, &Given) -> Result<u32>;

/// A function: its result and parameters, and its implementation.
pub(crate) struct Builtin {
    module: &'static str,
    name: &'static str,
    result: Slot,
    params: &'static [Slot],
    call: Call,
}

const JS: &str = "wasm:js-string";
const ENCODER: &str = "wasm:text-encoder";
const DECODER: &str = "wasm:text-decoder";

macro_rules! builtins {
    ($($module:ident $name:ident ($($param:expr),*) $result:expr => $call:ident;)*) => {
        &[$(Builtin { module: $module, name: stringify!($name), result: $result, params: &[$($param),*], call: $call }),*]
    };
}

static BUILTINS: &[Builtin] = builtins! {
    JS cast(Extern) Extern => cast;
    JS test(Extern) I32 => test;
    JS fromCharCodeArray(UNITS, I32, I32) Extern => from_char_code_array;
    JS intoCharCodeArray(Extern, UNITS, I32) I32 => into_char_code_array;
    JS fromCharCode(I32) Extern => from_char_code;
    JS fromCodePoint(I32) Extern => from_code_point;
    JS charCodeAt(Extern, I32) I32 => char_code_at;
    JS codePointAt(Extern, I32) I32 => code_point_at;
    JS length(Extern) I32 => length;
    JS concat(Extern, Extern) Extern => concat;
    JS substring(Extern, I32, I32) Extern => substring;
    JS equals(Extern, Extern) I32 => equals;
    JS compare(Extern, Extern) I32 => compare;
    ENCODER measureStringAsUTF8(Extern) I32 => measure_utf8;
    ENCODER encodeStringIntoUTF8Array(Extern, BYTES, I32) I32 => encode_into;
    ENCODER encodeStringToUTF8Array(Extern) BYTES => encode;
    DECODER decodeStringFromUTF8Array(BYTES, I32, I32) Extern => decode;
};

impl Builtin {
    /// The function, for an import of this type.
    ///
    /// # Errors
    /// If the type is another than the function's, which is the text then.
    pub fn of_type(&'static self, ty: &FuncType, types: &Registry) -> Result<HostFunction, String> {
        let fit = |slots: &[Slot], of: &[ValType]| {
            slots.len() == of.len() && slots.iter().zip(of).all(|(s, &t)| s.fits(t, types))
        };
        if !fit(self.params, &ty.params) || !fit(&[self.result], &ty.results) {
            let params: Vec<_> = self.params.iter().map(Slot::to_string).collect();
            return Err(format!(
                "function ({}) -> ({})",
                params.join(" "),
                self.result
            ));
        }
        let array = match ty.results[0] {
            ValType::Ref(r) => match r.heap {
                HeapType::Concrete(i, _) => Some(i),
                _ => None,
            },
            _ => None,
        };
        Ok(Arc::new(move |vm, values| {
            let mut args = [0; 3];
            for (arg, value) in args.iter_mut().zip(&*values) {
                *arg = *value as u32;
            }
            // SAFETY: host functions are called with the store that they were made for, while its code waits.
            let result = (self.call)(unsafe { &mut *vm }, &Given { args, array })?;
            values[0] = result.into();
            Ok(())
        }))
    }
}

/// Defines the functions, and as strings by their own names the constants that `module` imports: from a module of which it imports nothing but
/// immutable globals of external references, and of which nothing is defined yet.
///
/// # Errors
/// If the heap is full.
pub fn link<T: 'static>(
    linker: &mut Linker<T>,
    store: &mut Store<T>,
    module: &Module,
) -> Result<()> {
    for builtin in BUILTINS {
        linker.func_builtin(builtin.module, builtin.name, builtin);
    }
    let imports = &module.inner.imports;
    let foreign = |import: &Import| !is_constant(import) || linker.defines(&import.module);
    let others: std::collections::HashSet<&str> = imports
        .iter()
        .filter(|i| foreign(i))
        .map(|i| i.module.as_str())
        .collect();
    let constants = imports
        .iter()
        .filter(|i| !others.contains(i.module.as_str()));
    for import in constants.collect::<Vec<_>>() {
        let ExternType::Global(GlobalType { ty, .. }) = import.ty else {
            unreachable!("constants are globals")
        };
        let mut scope = crate::RootScope::new(&mut *store);
        let units: Vec<u16> = import.name.encode_utf16().collect();
        let string = Rooted::string(&mut scope, &units)?;
        let global = Global::new(&mut scope, ty, false, Val::ExternRef(Some(string)))?;
        linker.define(&import.module, &import.name, global);
    }
    Ok(())
}

fn is_constant(import: &Import) -> bool {
    match &import.ty {
        ExternType::Global(g) => {
            !g.mutable && matches!(g.ty, ValType::Ref(r) if r.heap == HeapType::Extern)
        }
        _ => false,
    }
}

/// The units of a string, which are read.
fn read(vm: &Vm, string: u32) -> Result<&[u16]> {
    let units = vm.string(string)?;
    vm.observe(Access::Read, units.as_ptr().cast(), 2 * units.len());
    Ok(units)
}

/// Elements `start..end` of an array, as their bytes.
fn elements(vm: &Vm, array: u32, start: u32, end: u32) -> Result<(*const u8, usize)> {
    if array == 0 {
        return Err(TrapKind::NullReference.into());
    }
    let a = vm.array(array);
    if start > end || end > a.len {
        return Err(TrapKind::ArrayOutOfBounds.into());
    }
    let bytes = (end - start) as usize * a.storage.bytes() as usize;
    vm.observe(Access::Read, a.address(start), bytes);
    Ok((a.address(start), bytes))
}

fn cast(vm: &mut Vm, g: &Given) -> Result<u32> {
    vm.string(g.args[0]).map(|_| g.args[0])
}

fn test(vm: &mut Vm, g: &Given) -> Result<u32> {
    Ok(vm.is_string(g.args[0]).into())
}

fn from_char_code_array(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [array, start, end] = g.args;
    elements(vm, array, start, end)?;
    vm.string_with(u64::from(end - start), [array], |vm, [array], to| {
        // SAFETY: the array has these elements, wherever it is now.
        unsafe {
            let from = vm.array(array).address(start).cast::<u16>();
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        }
    })
}

fn into_char_code_array(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [string, array, start] = g.args;
    let units = read(vm, string)?;
    let (from, len) = (units.as_ptr(), units.len() as u32);
    // SAFETY: the string is no array of a module, and nothing moves it here.
    unsafe { vm.write_elements(array, start, from.cast(), len) }?;
    Ok(len)
}

fn from_char_code(vm: &mut Vm, g: &Given) -> Result<u32> {
    vm.new_string(&[g.args[0] as u16])
}

fn from_code_point(vm: &mut Vm, g: &Given) -> Result<u32> {
    match g.args[0] {
        // Lone surrogates too, which are no characters.
        unit @ 0..=0xffff => vm.new_string(&[unit as u16]),
        point => {
            let c = char::from_u32(point).ok_or_else(|| Error::from(TrapKind::CodePoint))?;
            vm.new_string(c.encode_utf16(&mut [0; 2]))
        }
    }
}

/// A unit, which is read, and the one after it if it is there.
fn units_at(vm: &Vm, string: u32, index: u32) -> Result<(u16, Option<u16>)> {
    let units = vm.string(string)?;
    let Some(unit) = units.get(index as usize) else {
        return Err(TrapKind::StringOutOfBounds.into());
    };
    vm.observe(Access::Read, std::ptr::from_ref(unit).cast(), 2);
    Ok((*unit, units.get(index as usize + 1).copied()))
}

fn char_code_at(vm: &mut Vm, g: &Given) -> Result<u32> {
    units_at(vm, g.args[0], g.args[1]).map(|(unit, _)| unit.into())
}

fn code_point_at(vm: &mut Vm, g: &Given) -> Result<u32> {
    let (unit, next) = units_at(vm, g.args[0], g.args[1])?;
    let pair = char::decode_utf16([unit].into_iter().chain(next)).next();
    Ok(match pair {
        Some(Ok(c)) => c.into(),
        _ => unit.into(),
    })
}

fn length(vm: &mut Vm, g: &Given) -> Result<u32> {
    vm.string(g.args[0]).map(|units| units.len() as u32)
}

fn concat(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [a, b, _] = g.args;
    let (first, second) = (read(vm, a)?.len(), read(vm, b)?.len());
    vm.string_with((first + second) as u64, [a, b], |vm, from, to| {
        let (left, right) = to.split_at_mut(first);
        for (string, part) in from.into_iter().zip([left, right]) {
            part.copy_from_slice(vm.string(string).expect("it was one before it moved"));
        }
    })
}

fn substring(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [string, start, end] = g.args;
    let end = end.min(vm.string(string)?.len() as u32);
    if start >= end {
        return vm.new_string(&[]);
    }
    let range = start as usize..end as usize;
    let part = &vm.string(string)?[range.clone()];
    vm.observe(Access::Read, part.as_ptr().cast(), 2 * part.len());
    vm.string_with(u64::from(end - start), [string], |vm, [string], to| {
        let units = vm.string(string).expect("it was one before it moved");
        to.copy_from_slice(&units[range]);
    })
}

fn equals(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [a, b, _] = g.args;
    // Null is no string, but may be asked about.
    for string in [a, b] {
        if string != 0 {
            vm.string(string)?;
        }
    }
    if a == b || a == 0 || b == 0 {
        return Ok((a == b).into());
    }
    Ok((read(vm, a)? == read(vm, b)?).into())
}

fn compare(vm: &mut Vm, g: &Given) -> Result<u32> {
    let (a, b) = (read(vm, g.args[0])?, read(vm, g.args[1])?);
    Ok(a.cmp(b) as i32 as u32)
}

/// A string in UTF-8; invalid characters become U+FFFD.
fn utf8(vm: &Vm, string: u32) -> Result<String> {
    Ok(String::from_utf16_lossy(read(vm, string)?))
}

/// A count of elements, if an array can have that many.
fn count(bytes: &str) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| TrapKind::OutOfMemory.into())
}

fn measure_utf8(vm: &mut Vm, g: &Given) -> Result<u32> {
    count(&utf8(vm, g.args[0])?)
}

fn encode_into(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [string, array, start] = g.args;
    let text = utf8(vm, string)?;
    let len = count(&text)?;
    // SAFETY: the bytes are the host's.
    unsafe { vm.write_elements(array, start, text.as_ptr(), len) }?;
    Ok(len)
}

fn encode(vm: &mut Vm, g: &Given) -> Result<u32> {
    let text = utf8(vm, g.args[0])?;
    let len = count(&text)?;
    let ty = g.array.expect("it gives an array");
    let array = vm.alloc_array(ty, len, 0)?;
    vm.observe_birth(array);
    // SAFETY: the bytes are the host's.
    unsafe { vm.write_elements(array, 0, text.as_ptr(), len) }?;
    Ok(array)
}

fn decode(vm: &mut Vm, g: &Given) -> Result<u32> {
    let [array, start, end] = g.args;
    let (from, len) = elements(vm, array, start, end)?;
    // SAFETY: the array has these bytes, and nothing moves it here.
    let bytes = unsafe { std::slice::from_raw_parts(from, len) };
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let units: Vec<u16> = text.encode_utf16().collect();
    drop(text);
    vm.new_string(&units)
}
