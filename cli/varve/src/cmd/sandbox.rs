//! A WebAssembly program's access to the system, and a note on access that it lacked.

use crate::args::Sandbox;
use crate::ui::{Failure, quoted, wrong};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use varve_observed::{Access, Folder, ManagedProgram};
use varve_runtime::host::wasi::Refused;

/// The access that the options grant.
pub fn access(a: &Sandbox) -> Result<Access, Failure> {
    let mut access = Access::default();
    if a.no_dir || !a.dir.is_empty() {
        access.folders.clone_from(&a.dir);
    }
    check(&access.folders)?;
    access.environment = environment(a)?;
    Ok(access)
}

/// Folders that are there, each with a name of its own.
fn check(folders: &[Folder]) -> Result<(), Failure> {
    let mut names = HashMap::new();
    for folder in folders {
        let shown = folder.host.display();
        match std::fs::metadata(&folder.host) {
            Ok(m) if m.is_dir() => {}
            Ok(_) => {
                return Err(wrong(format!(
                    "--dir {shown}: a file, and no folder; give the folder that it is in"
                )));
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(wrong(format!(
                    "--dir {shown}: there is no such folder; make it, or name another one"
                )));
            }
            Err(e) => return Err(wrong(format!("--dir {shown}: {e}; name another folder"))),
        }
        if let Some(other) = names.insert(folder.compared(), folder) {
            return Err(wrong(format!(
                "--dir {shown}: the program would know it by the same name as {}, `{}`; give it another one: --dir {shown}::NAME",
                other.host.display(),
                folder.guest,
            )));
        }
    }
    Ok(())
}

/// A variable of the environment: its name and its value.
type Variable = (Vec<u8>, Vec<u8>);

fn environment(a: &Sandbox) -> Result<Vec<Variable>, Failure> {
    let mut variables = Vec::new();
    if a.inherit_env {
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        variables.extend(std::env::vars_os().map(|(name, value)| (bytes(&name), bytes(&value))));
    }
    for given in &a.env {
        let shown = given.to_string_lossy();
        let mut parts = given.as_bytes().splitn(2, |&b| b == b'=');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next());
        if name.is_empty() {
            return Err(wrong(format!(
                "--env {shown}: names no variable; write NAME=VALUE, or NAME for the value that it has here"
            )));
        }
        let value = match value {
            Some(value) => value.to_vec(),
            None => std::env::var_os(OsStr::from_bytes(name))
                .map(|value| value.as_bytes().to_vec())
                .ok_or_else(|| {
                    wrong(format!(
                        "--env {shown}: there is no such variable here; give it a value: --env {shown}=VALUE"
                    ))
                })?,
        };
        variables.push((name.to_vec(), value));
    }
    Ok(variables)
}

/// Notes that are printed at most.
const MOST_NOTES: usize = 5;

/// For a program that failed: paths that it wanted and that are outside of its folders, each with the option that gives it.
pub fn notes(program: &ManagedProgram, refused: &[Refused]) -> Vec<String> {
    let folders = &program.access.folders;
    let mut outside: Vec<PathBuf> = Vec::new();
    let mut links: Vec<PathBuf> = Vec::new();
    let words = program.arguments.iter().map(|word| path(word));
    outside.extend(words.filter(|p| p.is_absolute() && p.exists()));
    for refused in refused {
        let asked = path(&refused.path);
        let climbs = asked.components().any(|c| c == Component::ParentDir);
        if refused.missing {
            // Perhaps the program said it with a slash before it.
            let absolute = Path::new("/").join(&asked);
            outside.extend(absolute.exists().then_some(absolute));
        } else if climbs || asked.is_absolute() {
            outside.push(asked);
        } else {
            links.push(asked);
        }
    }
    outside.retain(|p| !folders.iter().any(|f| f.holds(p)));
    // One that replaces what is given without any is to keep that.
    let kept = match folders == &Access::default().folders {
        true => "--dir . ",
        false => "",
    };
    let outside = outside.iter().map(|p| {
        let folder = match p.is_dir() {
            true => p.as_path(),
            false => p.parent().unwrap_or(p),
        };
        format!(
            "note: {} is outside of the folders that the program was given; this gives it: {kept}--dir {}",
            shown(p),
            quoted(&shown(folder)),
        )
    });
    let links = links.iter().map(|p| {
        format!(
            "note: {}: a link leads out of the folder that the program was given",
            shown(p)
        )
    });
    let mut lines: Vec<String> = Vec::new();
    for line in outside.chain(links) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.len() > MOST_NOTES {
        let more = lines.len() - MOST_NOTES;
        lines.truncate(MOST_NOTES);
        lines.push(format!("note: and {more} more"));
    }
    lines
}

/// Prints them.
pub fn tell(program: &ManagedProgram, refused: &[Refused]) {
    for line in notes(program, refused) {
        crate::ui::message!("{line}");
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// A path as a line of text: the program has made it up, and the terminal is to take no orders from it.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
