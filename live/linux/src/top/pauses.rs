//! For how long a HotSpot virtual machine stood still, from the file in which it keeps its counters (`jstat` reads it too).
//!
//! ```text
//! 0xcafec0c0 (big-endian), byte order (1: little-endian), version 2, ..., 24: where entries begin, 28: their number
//! entry: its length, where its name is, length of a vector (0: none), type, ..., 16: where its value is
//! ```

use crate::probe::sysfs::own_number;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Pauses since a machine's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// Times that it stood still.
    pub count: u64,
    /// For how long together, seconds.
    pub seconds: f64,
}

/// Those of a process; `None` if it is no such machine, or keeps no counters (`-XX:-UsePerfData`).
pub fn pauses(folder: &Path, pid: u32) -> Option<Pauses> {
    let file = counters(folder, pid)?;
    let value = |name: &str| value(&file, name).and_then(|v| u64::try_from(v).ok());
    let ticks = value("sun.os.hrt.frequency").filter(|ticks| *ticks > 0)?;
    Some(Pauses {
        count: value("sun.rt.safepoints")?,
        seconds: value("sun.rt.safepointTime")? as f64 / ticks as f64,
    })
}

/// The file is in /tmp as the process sees it, named by its user; in a container, by its number there.
fn counters(folder: &Path, pid: u32) -> Option<Vec<u8>> {
    // Most processes are not Java: reading their mappings would cost more than listing this folder.
    let tmp = fs::read_dir(folder.join("root/tmp")).ok()?.flatten();
    let inside = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let inside = own_number(&inside);
    tmp.filter(|e| e.file_name().to_string_lossy().starts_with("hsperfdata_"))
        .find_map(|e| fs::read(e.path().join(inside.unwrap_or(pid).to_string())).ok())
}

fn word(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*file.get(at..)?.first_chunk()?)).ok()
}

/// The counter of a name.
fn value(file: &[u8], name: &str) -> Option<i64> {
    if file.get(..6)? != [0xca, 0xfe, 0xc0, 0xc0, 1, 2] {
        return None;
    }
    let (mut at, entries) = (word(file, 24)?, word(file, 28)?);
    for _ in 0..entries {
        let (length, name_at) = (word(file, at)?, word(file, at + 4)?);
        let named = file.get(at + name_at..)?;
        let is_it = named
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&0));
        if is_it && file.get(at + 12) == Some(&b'J') {
            let value = file.get(at + word(file, at + 16)?..)?.first_chunk()?;
            return Some(i64::from_le_bytes(*value));
        }
        // A length of nothing, and we would be here for good.
        at += length.max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with such counters.
    pub fn file(counters: &[(&str, i64)]) -> Vec<u8> {
        let mut file = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        file.resize(24, 0);
        file.extend(32i32.to_le_bytes());
        file.extend((counters.len() as i32).to_le_bytes());
        for (name, value) in counters {
            let room = (name.len() + 1).next_multiple_of(8);
            for word in [(20 + 4 + room + 8) as i32, 24, 0] {
                file.extend(word.to_le_bytes());
            }
            file.extend([b'J', 0, 0, 0]);
            file.extend(((24 + room) as i32).to_le_bytes());
            file.extend([0; 4]);
            let end = file.len() + room;
            file.extend(name.as_bytes());
            file.resize(end, 0);
            file.extend(value.to_le_bytes());
        }
        file
    }

    #[test]
    fn counters_are_found_by_name_and_a_torn_file_has_none() {
        let whole = file(&[("sun.rt.safepointTime", 17), ("sun.rt.safepoints", 3)]);
        assert_eq!(value(&whole, "sun.rt.safepoints"), Some(3));
        assert_eq!(value(&whole, "sun.rt.safepointTime"), Some(17));
        assert_eq!(value(&whole, "sun.rt.safe"), None);
        for end in 0..whole.len() - 8 {
            assert_eq!(value(&whole[..end], "sun.rt.safepoints"), None);
        }
        let folder = tempfile::tempdir().unwrap();
        let tmp = folder.path().join("root/tmp/hsperfdata_somebody");
        fs::create_dir_all(&tmp).unwrap();
        let counters = [
            ("sun.os.hrt.frequency", 1_000_000_000),
            ("sun.rt.safepointTime", 2_500_000_000),
            ("sun.rt.safepoints", 40),
        ];
        fs::write(tmp.join("17"), file(&counters)).unwrap();
        let found = pauses(folder.path(), 17).unwrap();
        assert_eq!((found.count, found.seconds), (40, 2.5));
        assert_eq!(pauses(folder.path(), 18), None);
    }
}
