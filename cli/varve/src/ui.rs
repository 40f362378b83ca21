//! Common parts of all commands: failures with their exit codes, Ctrl-C, output folders; progress is in a file of its own.

mod output;
mod progress;

pub(crate) use output::message;
pub use output::{lost, message_line, print, program_output, programs_elsewhere};
pub use varve_spec::quoted;

pub use progress::{Lines, WorkDone, bar, bar_of, spinner, spinner_with};

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a command ends when it does not end well.
pub enum Failure {
    /// One line for the user, and the exit code.
    Line { code: u8, line: String },
    /// Everything was said already.
    Quiet(u8),
}

/// The result of a command.
pub type Done = Result<ExitCode, Failure>;

/// Wrong usage or input: exit code 2.
pub fn wrong(line: impl Display) -> Failure {
    Failure::Line {
        code: 2,
        line: line.to_string(),
    }
}

/// Ends the process after words that are no command line, or that ask for help.
pub fn usage(e: &clap::Error) -> ! {
    let _ = e.print();
    // `varve run` has a help of its own, which clap does not know of.
    if e.use_stderr() && !e.to_string().contains("--help") {
        eprintln!("\nFor more information, try '--help'.");
    }
    std::process::exit(e.exit_code())
}

/// The work failed: exit code 1.
pub fn failed(line: impl Display) -> Failure {
    Failure::Line {
        code: 1,
        line: line.to_string(),
    }
}

/// Ctrl-C: exit code 130, as shells have it.
pub fn interrupted() -> Failure {
    Failure::Line {
        code: 130,
        line: "interrupted; nothing was left behind".into(),
    }
}

/// A run's error with its exit code.
pub fn of_run(e: &varve_run::Error) -> Failure {
    if e.is_interrupt() {
        interrupted()
    } else {
        wrong(e)
    }
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set; a second one ends the process at once.
pub fn stop_flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let mut signals = vec![signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
        // A terminal that is gone ends the work as well, unless it was started with `nohup`.
        if !ignores(signal_hook::consts::SIGHUP) {
            signals.push(signal_hook::consts::SIGHUP);
        }
        for signal in signals {
            // Registering fails only for signals that may not be caught.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone());
            let _ = signal_hook::flag::register(signal, flag.clone());
        }
        flag
    })
    .clone()
}

/// Flags of a daemon: Ctrl-C and SIGTERM set the first, and SIGHUP sets the second. A second Ctrl-C ends the process at once.
pub fn stop_and_reload() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::default());
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Registering fails only for signals that may not be caught.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone());
        let _ = signal_hook::flag::register(signal, stop.clone());
    }
    let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&reload));
    (stop, reload)
}

/// Whether the process ignores a signal, as the kernel tells.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set & 1 << (signal - 1) != 0)
}

/// Was the process asked to stop?
pub fn stopped() -> bool {
    stop_flag().load(Ordering::Relaxed)
}

/// Host threads for work: what was asked for, or one per core.
pub fn workers(asked: usize) -> usize {
    if asked > 0 {
        return asked;
    }
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Whether results can be written into a folder that need not exist yet: found out before the work is done, and nothing is left
/// there.
///
/// `option` is what the user named it with.
pub fn can_hold_results(path: &Path, option: &str) -> Result<(), Failure> {
    let there = path.ancestors().find(|p| p.symlink_metadata().is_ok());
    let there = there.unwrap_or(Path::new("."));
    let shown = path.display();
    if !there.is_dir() {
        let what = match there == path {
            true => "a file, and no folder".into(),
            false => format!("{} is a file, and no folder", there.display()),
        };
        return Err(wrong(format!("{shown}: {what}; choose another {option}")));
    }
    let probe = there.join(format!(".varve-{}", std::process::id()));
    let made = fs::File::create(&probe);
    let _ = fs::remove_file(&probe);
    made.map(drop).map_err(|e| {
        wrong(format!(
            "{shown}: cannot write there: {e}; choose another {option}"
        ))
    })
}

/// Makes a folder for results.
pub fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|e| {
        let shown = path.display();
        wrong(format!(
            "{shown}: cannot make the folder: {e}; choose another --out"
        ))
    })
}

/// Writes a comparison's page and data into a folder, and says where the page is.
pub fn save(report: &varve_report::RunReport, path: &Path) -> Result<(), Failure> {
    folder(path)?;
    let files = report.save(path).map_err(failed)?;
    let pages = files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "html"));
    for page in pages {
        message!("wrote {} and its data", page.display());
    }
    Ok(())
}

/// The command as the user gave it, to stand in reports: a shell understands it again.
pub fn command_line() -> String {
    let given = std::env::args_os().skip(1);
    let words = given.map(|word| quoted(&word.to_string_lossy()));
    let all: Vec<String> = std::iter::once("varve".into()).chain(words).collect();
    all.join(" ")
}
