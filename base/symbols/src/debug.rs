//! Separate debug files, where distributions put them.

use std::path::{Path, PathBuf};

use crate::elf;
use object::Object;

const DEBUG: &str = "/usr/lib/debug";

/// The bytes of the debug file of a program or library, if one is on this machine and of the same build.
pub(super) fn find(path: &Path, file: &object::File) -> Option<Vec<u8>> {
    let id = elf::build_id(file);
    if let Some((first, rest)) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) {
        let by_id = format!("{DEBUG}/.build-id/{first}/{rest}.debug");
        if let Ok(bytes) = elf::read(Path::new(&by_id)) {
            return Some(bytes);
        }
    }
    let (name, checksum) = file.gnu_debuglink().ok().flatten()?;
    let name = std::str::from_utf8(name).ok()?;
    let folder = std::fs::canonicalize(path).ok()?.parent()?.to_path_buf();
    let below: PathBuf = [Path::new(DEBUG), folder.strip_prefix("/").ok()?]
        .iter()
        .collect();
    [folder.clone(), folder.join(".debug"), below]
        .into_iter()
        .map(|folder| folder.join(name))
        .find_map(|candidate| {
            let bytes = elf::read(&candidate).ok()?;
            let is_of_build = match id.is_empty() {
                true => crc32(&bytes) == checksum,
                false => {
                    object::File::parse(&*bytes).is_ok_and(|debug| elf::build_id(&debug) == id)
                }
            };
            is_of_build.then_some(bytes)
        })
}

/// The checksum of `.gnu_debuglink`: CRC-32 (IEEE). Programs have build ids today, so speed does not matter.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
