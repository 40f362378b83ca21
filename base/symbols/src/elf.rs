//! A file of a program or library, read and taken apart.

use object::Object;
use std::path::Path;

/// Why a file's symbols cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// The system refuses.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is something else, or damaged.
    #[error("{file}: no ELF program or library: {what}")]
    NotElf {
        /// The file.
        file: String,
        /// The problem.
        what: String,
    },
}

/// Reads an ordinary file: devices and the like have no bytes to wait for.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, SymbolsError> {
    let io = |source| SymbolsError::Io {
        file: path.display().to_string(),
        source,
    };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("no ordinary file")));
    }
    std::fs::read(path).map_err(io)
}

pub(crate) fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<object::File<'a>, SymbolsError> {
    object::File::parse(bytes).map_err(|error| SymbolsError::NotElf {
        file: path.display().to_string(),
        what: error.to_string(),
    })
}

/// Two hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The build id in hexadecimal digits; empty if there is none.
pub(crate) fn build_id(file: &object::File) -> String {
    file.build_id().ok().flatten().map(hex).unwrap_or_default()
}

/// The name of a file without its folder.
pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
