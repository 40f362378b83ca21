//! Addresses in a piece of code that are known only where it runs: of the runtime's functions, and of the piece itself.

use crate::arch::{self, varve_count_target};
use crate::error::{Error, Result};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{self, UserExternalName};
use cranelift_codegen::{FinalizedMachReloc, FinalizedRelocTarget};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A function that compiled code calls as it is: it knows nothing of the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Native {
    Memmove,
    CountTarget,
    /// A function of this program that computes a number, by its address.
    Leaf(usize),
}

/// Namespaces of names in code that is being generated. Of distances, the namespace has the upper half, and this bit.
const HELPERS: u32 = 0;
const MEMMOVE: u32 = 1;
const DISTANT: u32 = 1 << 31;

/// Where functions of this program are counted from.
fn anchor() -> usize {
    varve_count_target as *const () as usize
}

/// The name of a helper, by its number.
pub(crate) fn helper_name(number: u32) -> UserExternalName {
    UserExternalName::new(HELPERS, number)
}

impl Native {
    /// The name under which code asks for it.
    pub fn name(self) -> UserExternalName {
        match self {
            Native::Memmove => UserExternalName::new(MEMMOVE, 0),
            Native::CountTarget => distant(0),
            Native::Leaf(at) => distant(at.wrapping_sub(anchor()) as i64),
        }
    }

    /// Its distance, if it is in the same file as this code, so that the distance is always the same: no file's calls reach further than
    /// 2 GiB.
    pub fn distance_in_file(self) -> Option<i32> {
        match self {
            Native::Memmove => None,
            Native::CountTarget => Some(0),
            Native::Leaf(at) => i32::try_from(at.wrapping_sub(anchor()) as i64).ok(),
        }
    }
}

/// The name of a target `bytes` bytes away. Addresses have 57 bits at most, and distances 58.
fn distant(bytes: i64) -> UserExternalName {
    UserExternalName::new(DISTANT | (bytes >> 32) as u32, bytes as u32)
}

fn distance_of(name: &UserExternalName) -> i64 {
    let upper = i64::from((name.namespace << 1) as i32 >> 1);
    upper << 32 | i64::from(name.index)
}

/// The target of a field. Its meaning is the same in all processes of one build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Target {
    /// A helper, by its number.
    Helper(u32),
    /// The C library's `memmove`.
    Memmove,
    /// A function of this process, by its distance from one of the runtime's.
    Distant(i64),
    /// An offset in the piece itself.
    Own(u32),
}

/// A field in a piece of code that leads elsewhere.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Relocation {
    /// The field's offset in the piece.
    at: u32,
    /// Its kind, in [`arch::RELOCATIONS`].
    kind: u8,
    target: Target,
    addend: i64,
}

fn failed(what: String) -> Error {
    Error::Internal(format!("code generation: {what}"))
}

fn target_of(
    name: &ir::ExternalName,
    names: impl Fn(ir::UserExternalNameRef) -> UserExternalName,
) -> Result<Target> {
    let ir::ExternalName::User(name) = name else {
        return Err(failed(format!("relocation against {name:?}")));
    };
    let name = names(*name);
    match name.namespace {
        HELPERS => Ok(Target::Helper(name.index)),
        MEMMOVE => Ok(Target::Memmove),
        namespace if namespace & DISTANT != 0 => Ok(Target::Distant(distance_of(&name))),
        _ => Err(failed(format!("relocation against {name:?}"))),
    }
}

impl Relocation {
    /// A field as the code generator has it; `names` are those that the code asks for.
    pub fn new(
        reloc: &FinalizedMachReloc,
        names: impl Fn(ir::UserExternalNameRef) -> UserExternalName,
    ) -> Result<Relocation> {
        let target = match &reloc.target {
            FinalizedRelocTarget::ExternalName(name) => target_of(name, names)?,
            FinalizedRelocTarget::Func(offset) => Target::Own(*offset),
        };
        Relocation::with(reloc.offset, reloc.kind, target, reloc.addend)
    }

    /// A field that leads to what has a name.
    pub fn to_name(
        at: u32,
        kind: Reloc,
        name: &ir::ExternalName,
        names: impl Fn(ir::UserExternalNameRef) -> UserExternalName,
        addend: i64,
    ) -> Result<Relocation> {
        Relocation::with(at, kind, target_of(name, names)?, addend)
    }

    fn with(at: u32, kind: Reloc, target: Target, addend: i64) -> Result<Relocation> {
        let known = arch::RELOCATIONS.iter().position(|&k| k == kind);
        let kind = known.ok_or_else(|| failed(format!("relocation {kind:?}")))?;
        Ok(Relocation {
            at,
            kind: kind as u8,
            target,
            addend,
        })
    }
}

/// Fills the fields of code that will run at `base`.
///
/// # Errors
/// Fields that lead out of reach, and those of a damaged piece, which are not in its code.
pub(crate) fn link(
    code: &mut [u8],
    base: usize,
    relocations: &[Relocation],
    helpers: &[*const u8],
) -> Result<()> {
    let damaged = || failed("a relocation leads nowhere".into());
    for r in relocations {
        let target = match r.target {
            Target::Helper(number) => *helpers.get(number as usize).ok_or_else(damaged)? as i64,
            Target::Memmove => libc::memmove as *const () as i64,
            Target::Distant(bytes) => (anchor() as i64).wrapping_add(bytes),
            Target::Own(offset) => base as i64 + i64::from(offset),
        };
        let kind = *arch::RELOCATIONS.get(r.kind as usize).ok_or_else(damaged)?;
        if r.at as usize + arch::width(kind) > code.len() {
            return Err(damaged());
        }
        arch::relocate(code, base, r.at as usize, kind, target + r.addend).map_err(failed)?;
    }
    Ok(())
}

/// The file that this program's code is in, as one that no other build has been: none if it was removed or replaced.
pub(crate) fn build() -> Option<&'static str> {
    static BUILD: OnceLock<Option<String>> = OnceLock::new();
    BUILD.get_or_init(find_build).as_deref()
}

fn find_build() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    // 55d0a4e00000-55d0a5e00000 r-xp 00a00000 fd:01 1234567    /usr/bin/varve
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|r| r.split_once('-'));
        range.is_some_and(|(from, to)| {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            (number(from)..number(to)).contains(&anchor())
        })
    })?;
    let path = line.splitn(6, ' ').nth(5)?.trim_start();
    // The inode in the line is no help: file systems that are made of others may say another one here.
    let file = std::fs::metadata(path).ok()?;
    (!path.ends_with(" (deleted)")).then(|| {
        format!(
            "{} {} {} {} {}.{:09}",
            env!("CARGO_PKG_VERSION"),
            file.dev(),
            file.ino(),
            file.len(),
            file.mtime(),
            file.mtime_nsec()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_distances_of_both_signs() {
        for bytes in [0, 1, -1, 1 << 31, -(1 << 31), 1 << 46, -(1 << 57) + 5] {
            assert_eq!(distance_of(&distant(bytes)), bytes);
        }
    }

    #[test]
    fn what_is_in_another_file_has_no_distance_that_lasts() {
        let near = anchor() + 1000;
        assert_eq!(Native::Leaf(near).distance_in_file(), Some(1000));
        assert_eq!(Native::Leaf(near + (1 << 40)).distance_in_file(), None);
    }

    #[test]
    fn fields_that_lead_nowhere_are_errors() {
        let field = |at, kind, target| Relocation {
            at,
            kind,
            target,
            addend: 0,
        };
        let mut code = [0; 16];
        let helper: *const u8 = std::ptr::without_provenance(0x1000);
        let mut fill = |r| link(&mut code, 0x2000, &[r], &[helper]);
        // Kind 2 is an address of 8 bytes.
        fill(field(8, 2, Target::Helper(0))).unwrap();
        assert!(fill(field(9, 2, Target::Helper(0))).is_err());
        assert!(fill(field(8, 2, Target::Helper(1))).is_err());
        assert!(fill(field(8, 3, Target::Helper(0))).is_err());
        assert_eq!(code[8..], 0x1000u64.to_le_bytes());
    }

    #[test]
    fn this_build_is_known() {
        assert!(build().is_some_and(|build| build.starts_with(env!("CARGO_PKG_VERSION"))));
    }
}
