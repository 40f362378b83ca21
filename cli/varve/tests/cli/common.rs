//! Common parts of all stories: calling the binary, and capabilities that this host lacks.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command's output and exit code.
pub struct Said {
    /// Exit code; 128 and the signal's number when a signal ended it, as shells have it.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: Output) -> Said {
        use std::os::unix::process::ExitStatusExt;
        Said {
            code: output
                .status
                .code()
                .unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
            out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }

    /// It ended well.
    #[track_caller]
    pub fn well(self) -> Said {
        assert_eq!(self.code, 0, "stderr: {}\nstdout: {}", self.err, self.out);
        self
    }

    /// It ended with `code`, said nothing on standard output, and one line on standard error that has all `words`.
    #[track_caller]
    pub fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "stderr: {}", self.err);
        assert_eq!(self.out, "", "nothing was done, so nothing is printed");
        assert_eq!(
            self.err.trim_end().lines().count(),
            1,
            "one line: {}",
            self.err
        );
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e} in {}", self.out))
    }
}

/// The folder of the sources, where `traces/` and `docs/` are.
pub fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the sources are there")
}

/// A command line: its words, or all of it as one types it, parted by spaces.
pub trait Words {
    fn words(&self) -> Vec<&OsStr>;
}

impl Words for str {
    fn words(&self) -> Vec<&OsStr> {
        typed(self).into_iter().map(OsStr::new).collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&OsStr> {
        self.as_str().words()
    }
}

impl<S: AsRef<OsStr>> Words for [S] {
    fn words(&self) -> Vec<&OsStr> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<S: AsRef<OsStr>, const N: usize> Words for [S; N] {
    fn words(&self) -> Vec<&OsStr> {
        self.as_slice().words()
    }
}

impl<S: AsRef<OsStr>> Words for Vec<S> {
    fn words(&self) -> Vec<&OsStr> {
        self.as_slice().words()
    }
}

/// The words of a command line, parted by spaces.
pub fn typed(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Whether this process ignores the signal of a lost terminal, as under `nohup`.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set & 1 != 0)
}

/// The binary, run among the sources, with nothing of the caller's surroundings that could change what it prints.
pub fn command(words: &(impl Words + ?Sized)) -> Command {
    // Tests may run where a lost terminal is ignored, and what they start would ignore it too.
    let mut c = match ignores_hangup() {
        false => Command::new(env!("CARGO_BIN_EXE_varve")),
        true => {
            let mut env = Command::new("/usr/bin/env");
            env.arg("--default-signal=HUP");
            env.arg(env!("CARGO_BIN_EXE_varve"));
            env
        }
    };
    c.args(words.words())
        .current_dir(home())
        .stdin(Stdio::null());
    for variable in [
        "COLUMNS",
        "CLICOLOR_FORCE",
        "FORCE_COLOR",
        "NO_COLOR",
        "VARVE_MACHINES",
    ] {
        c.env_remove(variable);
    }
    // What is kept from run to run is no business of the user's own runs.
    c.env(
        "XDG_CACHE_HOME",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
    );
    c
}

pub fn varve(words: &(impl Words + ?Sized)) -> Said {
    Said::of(command(words).output().expect("varve starts"))
}

/// The same, started in another folder.
pub fn varve_in(folder: &Path, words: &(impl Words + ?Sized)) -> Said {
    let mut c = command(words);
    Said::of(c.current_dir(folder).output().expect("varve starts"))
}

/// Runs a program on a region as persistent memory would be.
pub fn on_region(region: &Path, program: &str, arguments: &[&str]) -> Said {
    let region = region.to_str().expect("a path of ours");
    let begin = format!("run {program} --durable {region} --domain memory --");
    varve(&[&typed(&begin), arguments].concat())
}

/// A workload so small that a run takes a moment.
pub const TINY: &str = "gups:bytes=1GiB,updates=20k,threads=2";

/// The names in a list that a command prints as JSON.
pub fn names(list: &Value) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    all.map(|item| item["name"].as_str().expect("a name").to_string())
        .collect()
}

/// Is a program on PATH? Otherwise says that the test is skipped, and why.
pub fn has(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        varve_skip::skip!("needs {program} (Debian: apt install {package})");
    }
    found
}

/// Can unmodified programs be traced here? Otherwise says so.
pub fn can_trace() -> bool {
    cfg!(all(target_arch = "x86_64", target_os = "linux")) && has("qemu-x86_64", "qemu-user")
}

/// Does the test run as root? Otherwise says so.
pub fn is_root() -> bool {
    let id = Command::new("id")
        .arg("-u")
        .output()
        .map(|o| o.stdout == b"0\n");
    let root = id.unwrap_or(false);
    if !root {
        varve_skip::skip!("needs root");
    }
    root
}
