//! CPython in a program or library: where its state is, and which version it has.

use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol};

use crate::{SymbolsError, elf};

/// An interpreter of Python programs, by addresses (link-time) in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CPython {
    /// The variable `_PyRuntime`, from which all threads are found.
    pub runtime: u64,
    /// `PY_VERSION_HEX`: `0x030b02f0` is 3.11.2.
    pub version: u32,
}

/// The CPython in a file; none if it is another program, or older than 3.11, which has no version to read.
///
/// # Errors
/// The file cannot be read or is no ELF file.
pub fn cpython(path: &Path) -> Result<Option<CPython>, SymbolsError> {
    let bytes = elf::read(path)?;
    let file = elf::parse(path, &bytes)?;
    let find = |name: &str| {
        let mut symbols = file.dynamic_symbols().chain(file.symbols());
        let found = symbols.find(|s| s.is_definition() && s.name() == Ok(name));
        found.map(|symbol| symbol.address())
    };
    let Some((runtime, version)) = find("_PyRuntime").zip(find("Py_Version")) else {
        return Ok(None);
    };
    let segment = |segment: object::Segment<'_, '_>| {
        let bytes = segment.data_range(version, 4).ok()??;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let version = file.segments().find_map(segment);
    Ok(version.map(|version| CPython { runtime, version }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_interpreter_has_none() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(cpython(&this).unwrap(), None);
        assert!(cpython(Path::new("/dev/null")).is_err());
    }
}
