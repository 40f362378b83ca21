//! Tests that did not run are counted, with their reasons.
//!
//! A test that lacks something on this machine notes why with [`skip!`], and returns. The test harness counts it as passed. So the
//! reason also goes to the file that the environment variable `VARVE_SKIPS` names, one line for each, if it is set.

use std::io::Write;

/// The environment variable that names the file.
pub const FILE: &str = "VARVE_SKIPS";

/// Notes why a test does not run: `skip!("needs {program}")`. The reason is the same on all machines, without paths.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {
        $crate::note(&format!($($reason)*))
    };
}

/// See [`skip!`].
///
/// # Panics
/// The file cannot be written: a skip that is not counted would pass for a test that ran.
pub fn note(reason: &str) {
    let reason = reason.trim().replace(['\n', '\t'], " ");
    eprintln!("skipped: {reason}");
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let thread = std::thread::current();
    let line = format!("{reason}\t{}\n", thread.name().unwrap_or("?"));
    // A line is one write at the end of the file, so that processes do not mix theirs.
    let mut options = std::fs::OpenOptions::new();
    let written = options
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(e) = written {
        panic!("{}: {e}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Run by the test below in a process of its own, where the variable is set.
    #[test]
    fn notes_when_it_is_asked_to() {
        if std::env::var_os("VARVE_SKIP_TEST").is_some() {
            crate::skip!("needs {}", "a moon");
        }
    }

    #[test]
    fn a_reason_is_a_line_of_the_file_with_the_test_that_gave_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for _ in 0..2 {
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "tests::notes_when_it_is_asked_to"])
                .env("VARVE_SKIP_TEST", "1")
                .env(super::FILE, file.path())
                .output()
                .unwrap();
            assert!(status.status.success());
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        let line = "needs a moon\ttests::notes_when_it_is_asked_to\n";
        assert_eq!(text, [line, line].concat());
    }
}
