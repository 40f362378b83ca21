//! A process's address map: a copy of its `/proc/PID/maps`, or what `damo record` writes beside its records (`.vmas`, the
//! same without offsets). So addresses of samples become static variables, stacks, and the rest.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

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

struct Mapping {
    range: Range<u64>,
    /// `rw-p`; empty if it is not known.
    rights: String,
    offset: Option<u64>,
    path: String,
}

#[derive(Deserialize)]
struct Snapshot {
    procvmas: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    vmas: Vec<Vma>,
}

#[derive(Deserialize)]
struct Vma {
    start: u64,
    end: u64,
    name: Option<String>,
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
        let mut text = String::new();
        unpacked(input)
            .and_then(|mut input| input.read_to_string(&mut text))
            .map_err(io)?;
        let mappings = match text.trim_start().starts_with('[') {
            true => of_damo(file, &text)?,
            false => of_kernel(file, &text)?,
        };
        Ok(AddressMap::of(&mappings))
    }

    fn of(all: &[Mapping]) -> AddressMap {
        let mut map = AddressMap {
            keys: vec![Key::Stacks, Key::Rest],
            ..AddressMap::default()
        };
        // By file: what is added to its addresses, as its first mapping says.
        let mut bases: HashMap<&str, Option<u64>> = HashMap::new();
        for one in all {
            let private =
                one.rights.is_empty() || one.rights.starts_with("rw") && one.rights.ends_with('p');
            if private {
                let key = if one.path == "[stack]" { STACKS } else { REST };
                map.mappings.push((one.range.clone(), key));
            }
            if one.path.starts_with('/') {
                bases
                    .entry(&one.path)
                    .or_insert_with(|| map.variables_of(one));
            }
        }
        map.variables.sort_by_key(|(range, _)| range.start);
        map.mappings.sort_by_key(|(range, _)| range.start);
        map
    }

    /// Adds the variables of a file whose first mapping this is.
    fn variables_of(&mut self, first: &Mapping) -> Option<u64> {
        let path = Path::new(&first.path);
        let binary = Binary::read(path).ok()?;
        let offset = first.offset.unwrap_or(0);
        // A mapping begins with its page, which may be before its segment.
        let address = [0, 0xfff]
            .iter()
            .find_map(|at| Some(binary.address(offset + at)? - at))?;
        let base = first.range.start.wrapping_sub(address);
        for variable in statics(path).unwrap_or_default() {
            let start = base.wrapping_add(variable.address);
            let key = Key::Static {
                module: path.file_name()?.to_string_lossy().into_owned(),
                build_id: binary.build_id().into(),
                symbol: variable.symbol,
            };
            self.variables
                .push((start..start + variable.bytes, self.keys.len()));
            self.keys.push(key);
        }
        Some(base)
    }

    /// The variable or stack at an address, if there is one.
    pub fn at(&self, address: u64) -> Option<Key> {
        let parts = self.split(&(address..address + 1));
        parts
            .into_iter()
            .find(|(key, _)| !matches!(key, Key::Rest))
            .map(|(key, _)| key.clone())
    }

    /// The parts of a range, and their bytes. Memory that is not mapped, or not the process's own to write, is left out.
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

/// The last of damo's snapshots of the maps that has a process.
fn of_damo(file: &str, text: &str) -> Result<Vec<Mapping>, ImportError> {
    let not_one = |e: serde_json::Error| ImportError::Line {
        file: file.into(),
        line: e.line() as u64,
        what: format!("no record of mappings as `damo record` writes it: {e}"),
    };
    let snapshots: Vec<Snapshot> = serde_json::from_str(text).map_err(not_one)?;
    let last = snapshots
        .into_iter()
        .rev()
        .map(|look| look.procvmas)
        .find(|all| all.iter().any(|process| !process.vmas.is_empty()));
    let vmas = last.into_iter().flatten().flat_map(|process| process.vmas);
    let mapping = |vma: Vma| Mapping {
        range: vma.start..vma.end.max(vma.start),
        rights: String::new(),
        offset: None,
        path: vma.name.unwrap_or_default(),
    };
    Ok(vmas.map(mapping).collect())
}

/// `7f5c00000000-7f5c00021000 rw-p 00000000 00:00 0   [heap]`
fn of_kernel(file: &str, text: &str) -> Result<Vec<Mapping>, ImportError> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let line = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (hex(start)?, hex(end)?);
        let rights = words.next()?.to_owned();
        let offset = Some(hex(words.next()?)?);
        let path = words.nth(2).unwrap_or_default().trim().to_owned();
        (start < end).then_some(Mapping {
            range: start..end,
            rights,
            offset,
            path,
        })
    };
    let lines = text.lines().zip(1..);
    let mappings = lines.map(|(text, number)| {
        line(text).ok_or_else(|| ImportError::Line {
            file: file.into(),
            line: number,
            what: "no mapping as in /proc/PID/maps".into(),
        })
    });
    mappings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AddressMap {
        AddressMap::read("p.maps", text.as_bytes()).unwrap()
    }

    fn shown(map: &AddressMap, range: Range<u64>) -> Vec<(String, u64)> {
        let parts = map.split(&range);
        parts
            .iter()
            .map(|(key, bytes)| (format!("{key:?}"), *bytes))
            .collect()
    }

    #[test]
    fn stacks_and_the_rest_are_told_and_code_is_left_out() {
        let map = read(
            "00001000-00002000 r-xp 00000000 fe:00 12   /no/such/file
00004000-00006000 rw-p 00000000 00:00 0    [heap]
00006000-00007000 rw-s 00000000 00:00 0    /dev/shm/x
00009000-0000a000 rw-p 00000000 00:00 0    [stack]
",
        );
        assert_eq!(
            shown(&map, 0..0x10000),
            [("Rest".to_string(), 0x2000), ("Stacks".into(), 0x1000)]
        );
        assert_eq!(shown(&map, 0x5000..0x9800)[1], ("Stacks".into(), 0x800));
        assert!(matches!(map.at(0x9000), Some(Key::Stacks)));
        assert!(map.at(0x4000).is_none() && map.at(0).is_none());
        let damo = r#"[{"time": 1.5, "procvmas": [{"pid": 7, "vmas": [
            {"start": 16384, "end": 24576, "name": "[heap]"}, {"start": 36864, "end": 40960, "name": "[stack]"}]}]},
            {"time": 2.5, "procvmas": [{"pid": 7, "vmas": []}]}]"#;
        assert_eq!(shown(&read(damo), 0..0x10000), shown(&map, 0..0x10000));
    }

    /// Of this very test: its own variables are where its own map says that its file is.
    #[test]
    fn static_variables_are_found_where_the_file_is() {
        use std::sync::atomic::{AtomicU64, Ordering};
        static TABLE: [AtomicU64; 4096] = [const { AtomicU64::new(7) }; 4096];
        TABLE[1].fetch_add(1, Ordering::Relaxed);
        let at = TABLE.as_ptr() as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let map = read(&maps);
        for at in [at, at + 8 * 4095] {
            match map.at(at) {
                Some(Key::Static { symbol, .. }) => assert!(symbol.contains("TABLE"), "{symbol}"),
                other => panic!("{other:?}"),
            }
        }
        let there: u64 = map
            .split(&(at - 4096..at + 8 * 4096 + 4096))
            .iter()
            .map(|(_, bytes)| bytes)
            .sum();
        assert!((32768..=32768 + 8192).contains(&there), "{there}");
    }

    #[test]
    fn what_is_no_map_is_named_with_its_line() {
        let says = |text: &str| {
            AddressMap::read("p.maps", text.as_bytes())
                .unwrap_err()
                .to_string()
        };
        let good = "00001000-00002000 r-xp 00000000 fe:00 12\n";
        assert_eq!(
            says(&format!("{good}hello\n")),
            "p.maps:2: no mapping as in /proc/PID/maps"
        );
        assert!(says("2000-1000 r-xp 0 fe:00 12").starts_with("p.maps:1: no mapping"));
        assert!(says("[\n{\"procvmas\": 3}]").starts_with("p.maps:2: no record of mappings"));
    }
}
