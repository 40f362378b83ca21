//! Addresses in a piece of code that are known only where it runs: of the runtime's functions, and of the piece itself.

use crate::arch::{self, varve_count_target};
use crate::error::{Error, Result};
use cranelift_codegen::ir::{self, UserExternalName};
use cranelift_codegen::{FinalizedMachReloc, FinalizedRelocTarget};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A function that compiled code calls as it is: it knows nothing of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Native {
    Memmove,
    CountTarget,
    /// A function of this program that computes a number, by its address.
    Leaf(usize),
}

/// Namespaces of names in code that is being generated.
const HELPERS: u32 = 0;
const NATIVES: u32 = 1;
const PROGRAM: u32 = 2;

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
            Native::Memmove => UserExternalName::new(NATIVES, 0),
            Native::CountTarget => UserExternalName::new(PROGRAM, 0),
            // A program is smaller than 2 GiB, as its own calls reach.
            Native::Leaf(at) => {
                UserExternalName::new(PROGRAM, at.wrapping_sub(anchor()) as i32 as u32)
            }
        }
    }
}

/// What a field leads to. Says the same in all processes of one build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Target {
    /// A helper, by its number.
    Helper(u32),
    /// The C library's `memmove`.
    Memmove,
    /// A function of this program, by its distance from one of the runtime's.
    Program(i32),
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

impl Relocation {
    /// A field as the code generator has it; `names` are those that the code asks for.
    pub fn new(
        reloc: &FinalizedMachReloc,
        names: impl Fn(ir::UserExternalNameRef) -> UserExternalName,
    ) -> Result<Relocation> {
        let target = match &reloc.target {
            FinalizedRelocTarget::ExternalName(ir::ExternalName::User(name)) => {
                let name = names(*name);
                match name.namespace {
                    HELPERS => Target::Helper(name.index),
                    PROGRAM => Target::Program(name.index as i32),
                    _ => Target::Memmove,
                }
            }
            FinalizedRelocTarget::Func(offset) => Target::Own(*offset),
            other => return Err(failed(format!("relocation against {other:?}"))),
        };
        let kind = arch::RELOCATIONS.iter().position(|&k| k == reloc.kind);
        let kind = kind.ok_or_else(|| failed(format!("relocation {:?}", reloc.kind)))?;
        Ok(Relocation {
            at: reloc.offset,
            kind: kind as u8,
            target,
            addend: reloc.addend,
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
            Target::Program(distance) => anchor() as i64 + i64::from(distance),
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
    let words: Vec<_> = line.splitn(6, ' ').collect();
    let path = words.get(5)?.trim_start();
    let file = std::fs::metadata(path).ok()?;
    let same = words.get(4)?.parse() == Ok(file.ino());
    same.then(|| {
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
