//! Static variables.

use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::elf::{parse, read};
use crate::{SymbolsError, debug, demangle};

/// Variables smaller than this are not told: they share their pages with others.
pub const LEAST_STATIC_BYTES: u64 = 4096;

/// A static variable of a program or library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Static {
    /// Where it is, as the file counts addresses (link-time).
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Its name, demangled.
    pub symbol: String,
}

/// The static variables of a file of at least [`LEAST_STATIC_BYTES`], by address; of several names for one the first.
///
/// # Errors
/// It cannot be read or is no ELF file.
pub fn statics(path: &Path) -> Result<Vec<Static>, SymbolsError> {
    let bytes = read(path)?;
    let file = parse(path, &bytes)?;
    let mut all = data(&file);
    if file.symbols().next().is_none()
        && let Some(bytes) = debug::find(path, &file)
        && let Ok(debug) = object::File::parse(&*bytes)
    {
        all.extend(data(&debug));
    }
    all.sort_unstable();
    all.dedup_by_key(|one| (one.address, one.bytes));
    Ok(all)
}

fn data(file: &object::File) -> Vec<Static> {
    let all = file.symbols().chain(file.dynamic_symbols());
    all.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.is_definition())
        .filter(|symbol| symbol.size() >= LEAST_STATIC_BYTES)
        .filter_map(|symbol| {
            Some(Static {
                address: symbol.address(),
                bytes: symbol.size(),
                symbol: demangle(symbol.name().ok()?),
            })
        })
        .collect()
}
