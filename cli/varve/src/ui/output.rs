//! Printing, and the destination of a program's own output.
//!
//! With `--json`, standard output is one document and nothing else. So the standard output that this process was given is kept for the
//! document, and a program that it starts or runs finds standard error in its place, or a file that the user names.

use super::{Failure, failed, wrong};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::dup2_stdout;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// The standard output that this process was given, if programs write elsewhere.
static DOCUMENT: OnceLock<Mutex<File>> = OnceLock::new();

/// Why standard output does not have all of what was printed.
static LOST: OnceLock<String> = OnceLock::new();

/// From now on the output of programs goes into a file, or to standard error if what is printed here is a document.
///
/// # Errors
/// The file cannot be made.
pub fn programs_elsewhere(file: Option<&Path>, document: bool) -> Result<(), Failure> {
    if file.is_none() && !document {
        return Ok(());
    }
    let kept = fcntl_dupfd_cloexec(io::stdout(), 3).map_err(failed)?;
    match file {
        Some(path) => {
            let made = File::create(path).map_err(|e| {
                let shown = path.display();
                wrong(format!(
                    "{shown}: cannot write there: {e}; choose another --program-output"
                ))
            })?;
            dup2_stdout(made).map_err(failed)?;
        }
        None => dup2_stdout(io::stderr()).map_err(failed)?,
    }
    let _ = DOCUMENT.set(Mutex::new(kept.into()));
    Ok(())
}

/// Prints to standard output; a reader that went away (a closed pipe) is no failure, any other makes the command fail
/// at its end: see [`lost`].
pub fn print(text: impl Display) {
    let text = format!("{text}\n");
    let text = varve_report::shown(&text);
    written(match DOCUMENT.get() {
        Some(document) => {
            let mut document = document.lock().expect("no holder panics");
            document
                .write_all(text.as_bytes())
                .and_then(|()| document.flush())
        }
        None => write(text.as_bytes()),
    });
}

/// Prints a line to standard error, where names of others in it are no commands to a terminal.
pub fn message_line(line: impl Display) {
    eprintln!("{}", varve_report::shown(&line.to_string()));
}

/// [`message_line`], as `format!`.
macro_rules! message {
    ($($line:tt)*) => { $crate::ui::message_line(format_args!($($line)*)) };
}
pub(crate) use message;

/// Writes the output of a program that runs in this process.
pub fn program_output(bytes: &[u8]) {
    written(write(bytes));
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

fn written(done: io::Result<()>) {
    if let Err(e) = done
        && e.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(format!(
            "writing standard output failed: {e}; make room, or send it elsewhere, and run this again"
        ));
    }
}

/// The failure of a command that is otherwise done, if its output was lost.
pub fn lost() -> Option<Failure> {
    LOST.get().map(failed)
}
