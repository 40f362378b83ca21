//! What lies where in a process: a copy of its `/proc/PID/maps`, or what `damo record` writes beside its records (`.vmas`, the
//! same without offsets). So addresses of samples become static variables, stacks, and the rest.

mod damo;
mod kernel;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::BufRead;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{ImportError, unpacked};
use crate::{Binary, statics};
use varve_sites::native::Key;

/// A process's memory: parts without overlap, each of a key.
#[derive(Debug, Default)]
pub struct AddressMap {
    /// [`Key::Stacks`], [`Key::Rest`], and static variables.
    keys: Vec<Key>,
    /// Variables by address.
    variables: Vec<(Range<u64>, usize)>,
    /// Mappings by address, which variables are parts of.
    mappings: Vec<(Range<u64>, usize)>,
}

const STACKS: usize = 0;
const REST: usize = 1;

#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    /// `rw-p`; empty if it is not known.
    rights: String,
    offset: Option<u64>,
    /// The file's path, or a name in brackets, or nothing.
    name: Vec<u8>,
}

impl Mapping {
    /// Of the program's first thread, of another one in old kernels, or of one whose memory glibc names.
    fn is_stack(&self) -> bool {
        let name = &self.name[..];
        name == b"[stack]"
            || name.starts_with(b"[stack:")
            || name.starts_with(b"[anon: glibc: pthread stack:")
            || name.starts_with(b"[anon: glibc: pthread user stack:")
    }
}

impl AddressMap {
    /// Reads a map. `file` is named in errors. The program's files are read where the map says that they are, for their
    /// variables; those that cannot be read have none.
    ///
    /// # Errors
    /// It cannot be read, or is no map.
    pub fn read(file: &str, input: impl BufRead) -> Result<AddressMap, ImportError> {
        let io = |source| ImportError::Io {
            file: file.into(),
            source,
        };
        let mut text = Vec::new();
        unpacked(input)
            .and_then(|mut input| input.read_to_end(&mut text))
            .map_err(io)?;
        let mappings = match text.trim_ascii_start().starts_with(b"[") {
            true => damo::read(file, &text)?,
            false => kernel::read(file, &text)?,
        };
        Ok(AddressMap::of(&mappings))
    }

    fn of(all: &[Mapping]) -> AddressMap {
        let mut map = AddressMap {
            keys: vec![Key::Stacks, Key::Rest],
            ..AddressMap::default()
        };
        // By file: what is added to its addresses, as its first mapping says.
        let mut bases: HashMap<&[u8], Option<u64>> = HashMap::new();
        for one in all {
            let private =
                one.rights.is_empty() || one.rights.starts_with("rw") && one.rights.ends_with('p');
            if private {
                let key = if one.is_stack() { STACKS } else { REST };
                map.mappings.push((one.range.clone(), key));
            }
            if one.name.starts_with(b"/") {
                bases
                    .entry(&one.name)
                    .or_insert_with(|| map.variables_of(one));
            }
        }
        map.variables.sort_by_key(|(range, _)| range.start);
        map.mappings.sort_by_key(|(range, _)| range.start);
        map
    }

    /// Adds the variables of a file whose first mapping this is.
    fn variables_of(&mut self, first: &Mapping) -> Option<u64> {
        let path = Path::new(OsStr::from_bytes(&first.name));
        let binary = Binary::read(path).ok()?;
        let offset = first.offset.unwrap_or(0);
        // A mapping begins with its page, which may be before its segment.
        let address = [0, 0xfff]
            .iter()
            .find_map(|at| binary.address(offset.checked_add(*at)?)?.checked_sub(*at))?;
        let base = first.range.start.wrapping_sub(address);
        for variable in statics(path).unwrap_or_default() {
            let start = base.wrapping_add(variable.address);
            let key = Key::Static {
                module: path.file_name()?.to_string_lossy().into_owned(),
                build_id: binary.build_id().into(),
                symbol: variable.symbol,
            };
            let end = start.saturating_add(variable.bytes);
            self.variables.push((start..end, self.keys.len()));
            self.keys.push(key);
        }
        Some(base)
    }

    /// What is at an address, if that is a variable or a stack.
    pub fn at(&self, address: u64) -> Option<Key> {
        let parts = self.split(&(address..address.saturating_add(1)));
        parts
            .into_iter()
            .find(|(key, _)| !matches!(key, Key::Rest))
            .map(|(key, _)| key.clone())
    }

    /// What is in a range, and how many bytes of it. What is not mapped, or not the process's own to write, is left out.
    pub fn split(&self, range: &Range<u64>) -> Vec<(&Key, u64)> {
        let mut parts: Vec<(&Key, u64)> = Vec::new();
        let mut add = |key: usize, bytes: u64| {
            if bytes > 0 {
                parts.push((&self.keys[key], bytes));
            }
        };
        for (part, key) in overlapping(&self.variables, range) {
            add(key, part.end - part.start);
        }
        for (part, key) in overlapping(&self.mappings, range) {
            let variables: u64 = overlapping(&self.variables, &part)
                .map(|(part, _)| part.end - part.start)
                .sum();
            add(key, (part.end - part.start).saturating_sub(variables));
        }
        parts
    }
}

fn overlapping<'a>(
    all: &'a [(Range<u64>, usize)],
    range: &Range<u64>,
) -> impl Iterator<Item = (Range<u64>, usize)> + 'a {
    let (start, end) = (range.start, range.end);
    let first = all.partition_point(|(one, _)| one.end <= start);
    all[first..]
        .iter()
        .take_while(move |(one, _)| one.start < end)
        .map(move |(one, key)| (one.start.max(start)..one.end.min(end), *key))
        .filter(|(part, _)| part.start < part.end)
}
