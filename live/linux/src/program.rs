//! Finding the program of a command, and whether it can load the shim.

use crate::error::LiveError;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use varve_spec::shown_name;

/// Name of the process with this folder of `/proc`, as it may be printed; `None` if it has ended.
pub fn name_in(folder: &Path) -> Option<String> {
    let name = std::fs::read(folder.join("comm")).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(shown_name(name.trim_end_matches('\n')).into_owned())
}

/// The program file of `name`, looked up in PATH when it names no directory.
pub fn find(name: &OsStr) -> Result<PathBuf, LiveError> {
    let given = Path::new(name);
    if given.components().count() > 1 {
        return if given.is_file() {
            Ok(given.into())
        } else {
            Err(LiveError::NotFound(given.into()))
        };
    }
    let runnable = |p: &PathBuf| {
        p.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::var_os("PATH")
        .and_then(|path| {
            std::env::split_paths(&path)
                .map(|dir| dir.join(name))
                .find(runnable)
        })
        .ok_or_else(|| LiveError::NotFound(given.into()))
}

/// Why the program in this file cannot load the shim; `None` when it can, or is a script.
pub fn why_not_loadable(path: &Path) -> Option<String> {
    let mode = path.metadata().ok()?.permissions().mode();
    why_not(&head(path)?, mode)
}

/// The dynamic linker that the program in this file asks for.
pub fn interpreter_of(path: &Path) -> Option<PathBuf> {
    interpreter(&head(path)?).map(PathBuf::from)
}

/// The first page of a file: program headers lie in it in every program that a linker makes.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(4096)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

fn why_not(head: &[u8], mode: u32) -> Option<String> {
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let interpreter = interpreter(head);
    let why = match interpreter.as_deref() {
        None => "it is linked statically, so nothing can be preloaded; link it dynamically",
        Some(i) if i.contains("musl") => {
            "it uses the musl C library, and preloading needs the GNU C library"
        }
        // Set-user-ID and set-group-ID programs ignore LD_PRELOAD.
        Some(_) if mode & 0o6000 != 0 => {
            "it is a set-user-ID program, which ignores preloaded libraries"
        }
        Some(_) if head.get(4) != Some(&2) => "it is a 32-bit program; 64 bits are needed",
        Some(_) => return None,
    };
    Some(why.into())
}

/// The dynamic linker named in an ELF file, from its first bytes.
fn interpreter(head: &[u8]) -> Option<String> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize, wide: bool| -> Option<usize> {
        if wide {
            usize::try_from(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?)).ok()
        } else {
            Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize)
        }
    };
    // Offsets from the ELF specification: 64-bit and 32-bit headers.
    let wide = head.get(4) == Some(&2);
    let (phoff, sizes, p_offset, p_filesz) = if wide {
        (32, 54, 8, 32)
    } else {
        (28, 42, 4, 16)
    };
    let (table, each, count) = (word(phoff, wide)?, u16_at(sizes)?, u16_at(sizes + 2)?);
    for i in 0..usize::from(count) {
        let at = table.checked_add(i * usize::from(each))?;
        let kind = u32::from_le_bytes(head.get(at..at.checked_add(4)?)?.try_into().ok()?);
        const PT_INTERP: u32 = 3;
        if kind == PT_INTERP {
            let (from, len) = (word(at + p_offset, wide)?, word(at + p_filesz, wide)?);
            let name = head.get(from..from.checked_add(len)?)?;
            return Some(String::from_utf8_lossy(name).trim_end_matches('\0').into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_can_load_the_shim() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(why_not_loadable(&own), None);
    }

    #[test]
    fn a_script_is_left_to_its_interpreter() {
        assert_eq!(why_not(b"#!/bin/sh\n", 0o755), None);
    }

    #[test]
    fn static_programs_are_refused_with_the_reason() {
        let mut elf = vec![0u8; 64];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        assert!(why_not(&elf, 0o755).unwrap().contains("statically"));
    }

    #[test]
    fn damaged_headers_are_no_interpreter() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for cut in 0..256 {
            let _ = interpreter(&own[..cut]);
        }
        let mut wild = own[..4096].to_vec();
        wild[32..40].fill(0xff);
        assert_eq!(interpreter(&wild), None);
    }
}
