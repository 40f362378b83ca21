//! From the user's command line to the file that runs: PATH, scripts, and the kind of program.

use super::error::RecordError;
use crate::arch;
use crate::schedule::Extent;
use object::{Object, ObjectSection};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How a program is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Compiled when the program was compiled with `varve cc`, else QEMU.
    #[default]
    Auto,
    /// Under QEMU, any program.
    Qemu,
    /// By the probe that `varve cc` compiled into it.
    Compiled,
}

/// How a program is recorded; the default records any program with its allocation sites.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// Under QEMU or by the compiled probe.
    pub mode: Mode,
    /// Record allocations with their call sites.
    pub allocations: bool,
    /// Threads that a live program has on the model; more are not seen.
    pub max_threads: usize,
    /// Record accesses only from the program's check for the file `/varve/record/begin` to its check for
    /// `/varve/record/end`. Mappings and allocations are recorded everywhere. Under QEMU only.
    pub marked: bool,
    /// Part of the run that is recorded. Mappings and allocations are recorded everywhere.
    pub extent: Extent,
    /// Have QEMU report the address of every access, rather than only of those that do not follow from others. Slow;
    /// the result is the same, which tests check.
    pub ask_all: bool,
}

impl Default for RecorderOptions {
    fn default() -> RecorderOptions {
        RecorderOptions {
            mode: Mode::Auto,
            allocations: true,
            max_threads: 16,
            marked: false,
            extent: Extent::Whole,
            ask_all: false,
        }
    }
}

/// A program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The file of machine code: the program, or the interpreter of a script.
    pub program: PathBuf,
    /// Its arguments, without the name.
    pub args: Vec<OsString>,
    /// The probe was compiled in.
    pub compiled: bool,
    /// It has no dynamic loader, so nothing can be preloaded.
    pub is_static: bool,
}

/// The section that `varve cc` leaves in programs.
pub(super) const MARK: &str = ".note.varve";

/// A script may name a script; more levels are refused by the kernel as well.
const MAX_SCRIPTS: usize = 4;

/// Finds the program that a command line runs.
///
/// # Errors
/// The command does not exist, is not executable, or is no program that can be recorded.
pub fn resolve(command: &[OsString]) -> Result<Target, RecordError> {
    let (name, args) = command.split_first().ok_or(RecordError::Empty)?;
    let mut path = find(name)?;
    let mut args = args.to_vec();
    for _ in 0..=MAX_SCRIPTS {
        let io = |source| RecordError::Io {
            path: path.clone(),
            source,
        };
        let meta = std::fs::metadata(&path).map_err(io)?;
        if meta.permissions().mode() & 0o111 == 0 || meta.is_dir() {
            return Err(RecordError::NotRunnable {
                path,
                what: "is not executable (chmod +x)".into(),
            });
        }
        if meta.permissions().mode() & 0o6000 != 0 {
            let what = "is set-user-id or set-group-id, which does not work under a recorder; record a copy without the bit".into();
            return Err(RecordError::NotRunnable { path, what });
        }
        let bytes = std::fs::read(&path).map_err(io)?;
        if !bytes.starts_with(b"#!") {
            return program(path, &bytes, args);
        }
        (path, args) = interpreter(&path, &bytes, args)?;
    }
    Err(RecordError::NotRunnable {
        path,
        what: "scripts name each other as interpreters; name the program itself".into(),
    })
}

/// Looks a command up as a shell does.
fn find(name: &OsStr) -> Result<PathBuf, RecordError> {
    let missing = || RecordError::NotFound(name.to_string_lossy().into_owned());
    if name.as_bytes().contains(&b'/') {
        return if Path::new(name).exists() {
            Ok(name.into())
        } else {
            Err(missing())
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(is_program)
        .ok_or_else(missing)
}

/// The interpreter that a script's first line names, with the arguments as the kernel passes them.
fn interpreter(
    script: &Path,
    bytes: &[u8],
    args: Vec<OsString>,
) -> Result<(PathBuf, Vec<OsString>), RecordError> {
    let line = bytes[2..]
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let mut words = line.splitn(2, |byte| byte.is_ascii_whitespace());
    let file = OsString::from_vec(words.next().unwrap_or_default().to_vec());
    let option = words
        .next()
        .map(|word| OsString::from_vec(word.trim_ascii().to_vec()))
        .filter(|word| !word.is_empty());
    let mut all: Vec<OsString> = Vec::new();
    // `env` would start the interpreter as a new program, out of the recorder's sight: do its work here
    let (found, option) = match option {
        Some(option) if Path::new(&file).file_name() == Some(OsStr::new("env")) => {
            let text = option.to_string_lossy().into_owned();
            let mut words = text.strip_prefix("-S").unwrap_or(&text).split_whitespace();
            let name = words.next().unwrap_or_default();
            all.extend(words.map(OsString::from));
            (find(OsStr::new(name))?, None)
        }
        option => (
            find(&file).map_err(|_| RecordError::NotRunnable {
                path: script.into(),
                what: format!("its interpreter {} does not exist", file.to_string_lossy()),
            })?,
            option,
        ),
    };
    all.extend(option);
    all.push(script.into());
    all.extend(args);
    Ok((found, all))
}

fn program(path: PathBuf, bytes: &[u8], args: Vec<OsString>) -> Result<Target, RecordError> {
    let refuse = |what: &str| {
        Err(RecordError::NotRunnable {
            path: path.clone(),
            what: what.into(),
        })
    };
    if !bytes.starts_with(b"\x7fELF") {
        return refuse("is neither an ELF program nor a script with an interpreter line (#!)");
    }
    let Ok(file) = object::File::parse(bytes) else {
        return refuse("is a damaged ELF file");
    };
    if file.architecture() != arch::PROGRAMS || !file.is_64() {
        return refuse(&format!(
            "is a program for {:?}; only 64-bit x86 programs can be recorded",
            file.architecture()
        ));
    }
    let is_static = file.section_by_name(".interp").is_none();
    let compiled = file
        .section_by_name(MARK)
        .is_some_and(|section| section.size() > 0);
    Ok(Target {
        program: path,
        args,
        compiled,
        is_static,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(0o755))
            .unwrap();
        path
    }

    #[test]
    fn a_script_runs_as_its_interpreter_with_the_script_as_argument() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "greet", "#!/bin/sh -e\necho hello\n");
        let target = resolve(&words(&[path.to_str().unwrap(), "you"])).unwrap();
        assert_eq!(target.program, Path::new("/bin/sh"));
        assert_eq!(target.args, words(&["-e", path.to_str().unwrap(), "you"]));
    }

    #[test]
    fn env_in_a_script_is_looked_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "greet", "#!/usr/bin/env sh\necho hello\n");
        let target = resolve(&words(&[path.to_str().unwrap()])).unwrap();
        assert!(target.program.ends_with("sh"), "{target:?}");
        assert_eq!(target.args, words(&[path.to_str().unwrap()]));
    }

    #[test]
    fn what_cannot_run_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let plain = script(folder.path(), "plain", "echo hello\n");
        let turning = folder.path().join("turning");
        script(
            folder.path(),
            "turning",
            &format!("#!{}\n", turning.display()),
        );
        let closed = folder.path().join("closed");
        std::fs::write(&closed, "x").unwrap();
        for (path, say) in [(&plain, "#!"), (&turning, "each other"), (&closed, "chmod")] {
            let error = resolve(&words(&[path.to_str().unwrap()]))
                .unwrap_err()
                .to_string();
            assert!(error.contains(say) && !error.contains('\n'), "{error}");
        }
        let error = resolve(&words(&["no-such-command-here"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no-such-command-here"), "{error}");
        assert!(resolve(&[]).unwrap_err().to_string().contains("--"));
    }
}
