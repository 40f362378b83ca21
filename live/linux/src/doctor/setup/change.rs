//! Carries steps out, and takes them back.

use super::{NOTHING, Record, Step};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// Files of a kernel, by paths relative to its root.
pub trait Files {
    /// The content of a file, or the last part of a link's target.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Writes into a file that is there.
    ///
    /// # Errors
    /// It cannot be written, or the kernel refuses what is written.
    fn write(&self, path: &str, value: &str) -> io::Result<()>;
}

/// The files below a folder.
pub struct Root(
    /// The folder.
    pub PathBuf,
);

impl Files for Root {
    fn read(&self, path: &str) -> io::Result<String> {
        let path = self.0.join(path);
        match fs::read_link(&path) {
            Ok(target) => {
                let last = target.file_name().unwrap_or_default();
                Ok(last.to_string_lossy().into_owned())
            }
            Err(_) => Ok(fs::read_to_string(path)?.trim().to_string()),
        }
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.0.join(path))?;
        // In one call, as the kernel wants it.
        file.write_all(format!("{value}\n").as_bytes())
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was done, or reverted.
    Done,
    /// It showed already what it was to show.
    Already,
    /// Another program has changed it since, to this: it stays.
    Others(String),
}

/// The remedy for an error.
pub(super) fn remedy(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => ": be root",
        Some(libc::EROFS) => {
            ": it is mounted read-only, as in a container: do it on the host, or remount it"
        }
        Some(libc::EBUSY) => ": the memory is in use; end what uses it, or try again later",
        Some(libc::ENOENT) => ": this kernel does not have it",
        _ => "",
    }
}

fn refused(path: &str, e: &io::Error) -> String {
    format!("/{path}: {e}{}", remedy(e))
}

/// The value that shows; [`NOTHING`] if there is no link.
fn shown(files: &dyn Files, path: &str) -> Result<String, String> {
    match files.read(path) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == io::ErrorKind::NotFound && path.ends_with("/driver") => {
            Ok(NOTHING.into())
        }
        Err(e) => Err(refused(path, &e)),
    }
}

/// Does a step, after it was noted in the record.
///
/// # Errors
/// A line that says what was refused. Nothing is changed then.
pub fn change(files: &dyn Files, record: &mut Record, step: &Step) -> Result<Changed, String> {
    let now = shown(files, &step.shows)?;
    if now == step.then {
        return Ok(Changed::Already);
    }
    if now != step.was {
        return Ok(Changed::Others(now));
    }
    record.add(step)?;
    let written = files.write(&step.file, &step.value);
    let then = shown(files, &step.shows);
    match (written, then) {
        (Ok(()), Ok(then)) if then == step.then => Ok(Changed::Done),
        (Ok(()), Ok(then)) => {
            // The kernel did something else than we know of. What was before is written again, as far as it is taken.
            for back in &step.back {
                let _ = files.write(&back.file, &back.value);
            }
            let is_back = shown(files, &step.shows).is_ok_and(|now| now == step.was);
            let left = match is_back {
                true => "it is as before again".into(),
                false => format!("it was `{}`, which it did not take again", step.was),
            };
            record.take_out(record.steps().len() - 1)?;
            Err(format!(
                "/{}: the kernel took `{}`, and /{} reads `{then}`: {left}",
                step.file, step.value, step.shows
            ))
        }
        (Err(e), _) => {
            record.take_out(record.steps().len() - 1)?;
            Err(refused(&step.file, &e))
        }
        (Ok(()), Err(why)) => Err(why),
    }
}

/// Takes all steps of a record back, the last one first, and tells `said` what became of each. A step that is refused stays in the
/// record, with those before it on the same file, so that it can be tried again.
///
/// # Errors
/// The record cannot be written.
pub fn undo(
    files: &dyn Files,
    record: &mut Record,
    said: &mut dyn FnMut(&Step, Result<Changed, String>),
) -> Result<(), String> {
    let mut stuck: Vec<String> = Vec::new();
    for at in (0..record.steps().len()).rev() {
        let step = record.steps()[at].clone();
        if stuck.contains(&step.shows) {
            continue;
        }
        let changed = take_back(files, &step);
        match &changed {
            Ok(_) => record.take_out(at)?,
            Err(_) => stuck.push(step.shows.clone()),
        }
        said(&step, changed);
    }
    Ok(())
}

fn take_back(files: &dyn Files, step: &Step) -> Result<Changed, String> {
    let now = shown(files, &step.shows)?;
    if now == step.was {
        return Ok(Changed::Already);
    }
    if now != step.then {
        return Ok(Changed::Others(now));
    }
    for back in &step.back {
        match files.write(&back.file, &back.value) {
            Ok(()) => {}
            Err(e) if back.may_be_missing && e.kind() == io::ErrorKind::NotFound => {}
            // A block that is offline already is refused as well.
            Err(e) if back.may_be_missing => match files.read(&back.file) {
                Ok(state) if state == back.value => {}
                _ => return Err(refused(&back.file, &e)),
            },
            Err(e) => return Err(refused(&back.file, &e)),
        }
    }
    let now = shown(files, &step.shows)?;
    match now == step.was {
        true => Ok(Changed::Done),
        false => Err(format!(
            "/{}: it reads `{now}` after `{}` was written",
            step.shows,
            step.back.last().map_or("", |back| &back.value)
        )),
    }
}
