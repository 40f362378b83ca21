//! Instructions that a program retires, counted by an emulator: `valgrind --tool=callgrind`. A count is the same every time, whatever else the
//! machine does, and says nothing of caches and branches; so it stands beside times, not for them.
//!
//! What is counted are whole runs of this very binary, of two lengths, on one processor, where nothing is compiled in the background. Their
//! difference is the program's in its later rounds, as starting costs the same in both. The compiler may still find something to do in the longer
//! run, and is no part of the program: so what the generated code retires stands for itself, which is where checks are.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Who counts.
pub struct Counter {
    varve: PathBuf,
    /// A processor that this process may run on.
    processor: String,
}

impl Counter {
    /// The counter, or why there is none.
    pub fn find() -> Result<Counter, &'static str> {
        let varve = std::env::current_exe().unwrap_or_default();
        if varve.file_name().is_none_or(|name| name != "varve") {
            return Err("this is not the command line's binary");
        }
        let is_there = |tool: &str| {
            let mut ask = Command::new(tool);
            ask.arg("--version")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            ask.status().is_ok_and(|status| status.success())
        };
        if !is_there("valgrind") {
            return Err("valgrind is not installed");
        }
        if !is_there("taskset") {
            return Err("taskset is not installed");
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status
            .lines()
            .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        let first: String = allowed
            .unwrap_or("0")
            .trim()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        Ok(Counter {
            varve,
            processor: first,
        })
    }

    /// Instructions of a run of `varve`.
    fn count(&self, words: &[String]) -> Result<Count, String> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("varve-study-{}-{number}.callgrind", std::process::id());
        let file = Gone(std::env::temp_dir().join(name));
        let mut command = Command::new("taskset");
        command
            .args(["-c", &self.processor, "valgrind", "--tool=callgrind"])
            .arg(format!("--callgrind-out-file={}", file.0.display()))
            .arg(&self.varve)
            .args(words)
            .stdin(Stdio::null());
        let out = command.output().map_err(|e| e.to_string())?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let last = said.lines().rev().find(|l| !l.starts_with("=="));
            return Err(last.unwrap_or("valgrind ended it").to_string());
        }
        let costs = std::fs::read(&file.0).map_err(|e| e.to_string())?;
        Ok(counted(&String::from_utf8_lossy(&costs)))
    }

    /// What a longer run has more than a shorter one.
    pub fn difference(&self, shorter: &[String], longer: &[String]) -> Result<Count, String> {
        let (less, more) = (self.count(shorter)?, self.count(longer)?);
        match more.generated > less.generated && more.all > less.all {
            true => Ok(Count {
                generated: more.generated - less.generated,
                all: more.all - less.all,
            }),
            false => Err("the longer run was not the longer one".into()),
        }
    }
}

/// A file that is gone afterwards.
pub struct Gone(pub PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Of the code that the engine generated: code of no file.
    pub generated: u64,
    /// Of all code.
    pub all: u64,
}

/// What a file of callgrind's says. Functions stand below their object (`ob=(3) name`, later `ob=(3)`); a line of costs begins with a position; the
/// one after `calls=` is what a callee took, which stands at the callee, too.
fn counted(text: &str) -> Count {
    let mut count = Count::default();
    let mut nameless = HashSet::new();
    let (mut generated, mut call) = (false, false);
    for line in text.lines() {
        let object = line.strip_prefix("ob=").or(line.strip_prefix("cob="));
        if let Some(object) = object {
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if name == "???" {
                nameless.insert(number.to_string());
            }
            if line.starts_with("ob=") {
                generated = nameless.contains(number);
            }
        } else if line.starts_with("calls=") {
            call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c))
            && !std::mem::take(&mut call)
        {
            let cost = line.split_whitespace().nth(1);
            let cost = cost.and_then(|c| c.parse::<u64>().ok()).unwrap_or(0);
            count.all += cost;
            count.generated += if generated { cost } else { 0 };
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_object_that_they_stand_below() {
        let text = "# callgrind format\nevents: Ir\n\nob=(1) /usr/bin/varve\nfl=(1) main.rs\nfn=(1) main\n12 100\n+3 20\ncob=(2) ???\n\
                    cfn=(2) 0x1\ncalls=1 0\n15 700\n\nob=(2)\nfn=(2)\n0 650\n* 50\n\nob=(1)\nfn=(3) end\n-2 5\n\ntotals: 825\n";
        let expected = Count {
            generated: 700,
            all: 825,
        };
        assert_eq!(counted(text), expected);
    }
}
