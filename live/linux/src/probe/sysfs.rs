//! Small readers for the files of /sys and /proc.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The text of a file without the line end, if it can be read.
pub fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The number in a file, decimal or `0x` hexadecimal.
pub fn number(path: &Path) -> Option<u64> {
    let text = text(path)?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A size such as `32K`, in bytes.
pub fn size(path: &Path) -> Option<u64> {
    parse_size(&text(path)?)
}

/// `48K` -> 49152.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].chars().next() {
        None | Some('B') => 0,
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some(_) => return None,
    };
    digits.parse::<u64>().ok().map(|n| n << shift)
}

/// Bytes of the line of a name, such as `Node 0 MemFree:   1234 kB`; 0 without one.
pub fn bytes_of(text: &str, name: &str) -> u64 {
    let of = |line: &str| {
        let (head, rest) = line.split_once(':')?;
        let kib = rest.split_whitespace().next()?.parse::<u64>().ok()?;
        (head.split_whitespace().last() == Some(name)).then_some(kib << 10)
    };
    text.lines().find_map(of).unwrap_or(0)
}

/// The value after a name and a colon, as in `/proc/PID/status`.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut all = text.lines().filter_map(|line| line.split_once(':'));
    let found = all.find(|(head, _)| head.trim() == name)?;
    Some(found.1.trim())
}

/// A process's number in its innermost namespace, by its `/proc/PID/status`.
pub fn own_number(status: &str) -> Option<u32> {
    field(status, "NSpid")?
        .split_whitespace()
        .last()?
        .parse()
        .ok()
}

/// The number of the line of a name, such as `numa_hit 1234`.
pub fn count_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    number.trim().parse().ok()
}

/// The kernel's account of a node's memory, for [`bytes_of`].
pub fn meminfo(node: u32) -> String {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    text(Path::new(&path)).unwrap_or_default()
}

/// A list such as `0-3,8,10-11`.
pub fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Entries of a directory named `<prefix><number>`, in order of their numbers.
pub fn numbered(dir: &Path, prefix: &str) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            Some((u32::from_str(name.strip_prefix(prefix)?).ok()?, e.path()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Entries of a directory named `<prefix><digits>` in order of their numbers, by digits: `00` stays apart from `0`.
pub fn numbered_with(dir: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let digits = |name: &str| {
        let rest = name.strip_prefix(prefix)?;
        let number: u64 = rest.parse().ok()?;
        Some((number, rest.to_string()))
    };
    let mut found: Vec<_> = names(dir)
        .iter()
        .filter_map(|name| digits(name).map(|(number, rest)| (number, rest, dir.join(name))))
        .collect();
    found.sort();
    found
        .into_iter()
        .map(|(_, rest, path)| (rest, path))
        .collect()
}

/// Names in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

/// Writes a file of a machine that is not there.
#[cfg(test)]
pub fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert!(parse_list("").is_empty());
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("36M"), Some(36 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("many"), None);
        let memory = "Node 1 MemTotal:  32768 kB\nNode 1 MemFree:   1024 kB\n";
        assert_eq!(bytes_of(memory, "MemFree"), 1 << 20);
        assert_eq!(bytes_of(memory, "Free"), 0);
    }
}
