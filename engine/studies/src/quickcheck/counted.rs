//! Instructions that a program retires, counted by an emulator: `valgrind --tool=callgrind`. A count is the same every time, whatever else the
//! machine does, and says nothing of caches and branches; so it stands beside times, not for them.
//!
//! The command line's program is run under the emulator, and there does all work of one program or store (`work.rs`): one that has been started and
//! warmed up is not started again for each kind of checks. It calls [`mark`](super::mark::mark) where a count begins and where it ends, and the emulator writes down what
//! it counted since the last mark. The compiler may find something to do between two marks, and is no part of the program: so what the generated code
//! retires stands for itself, which is where checks are.

use super::mark::MARK;
use super::scratch::Scratch;
use super::work::Work;
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The tool that counts.
pub struct Counter {
    varve: PathBuf,
}

impl Counter {
    /// The counter, which runs this program, or why there is none.
    pub fn find(varve: Option<&PathBuf>) -> Result<Counter, &'static str> {
        let Some(varve) = varve.cloned() else {
            return Err("valgrind runs the command `varve` for that, and this is another program");
        };
        let mut ask = Command::new("valgrind");
        ask.arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match ask.status().is_ok_and(|status| status.success()) {
            true => Ok(Counter { varve }),
            false => Err("valgrind is not installed"),
        }
    }

    /// The counts of a piece of work.
    pub fn counts(&self, work: Work, seed: u64) -> Result<Vec<Count>, String> {
        let scratch = Scratch::new()?;
        let file = scratch.file("costs");
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--combine-dumps=yes"])
            .arg(format!("--dump-before={MARK}"))
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(&self.varve)
            .args(["study", "count", &work.word(), &seed.to_string()])
            .stdin(Stdio::null());
        let out = command.output().map_err(|e| e.to_string())?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let last = said.lines().rev().find(|l| !l.starts_with("=="));
            return Err(last.unwrap_or("valgrind ended it").to_string());
        }
        let costs = std::fs::read(&file).map_err(|e| e.to_string())?;
        between(&parts(&String::from_utf8_lossy(&costs)), work.counts())
    }
}

/// The counts from each second mark to the next one.
fn between(parts: &[Count], number: usize) -> Result<Vec<Count>, String> {
    match parts.len() == 2 * number + 1 {
        true => Ok(parts.iter().skip(1).step_by(2).copied().collect()),
        false => Err(format!(
            "{} counts for {number} pieces of work",
            parts.len()
        )),
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

/// The parts of a callgrind file. Functions stand below their object (`ob=(3) name`, later `ob=(3)`); a line of costs begins with a position; the one
/// after `calls=` is the cost of a callee, which is listed at the callee, too.
fn parts(text: &str) -> Vec<Count> {
    let mut parts = Vec::new();
    let mut nameless = HashSet::new();
    let (mut generated, mut call) = (false, false);
    for line in text.lines() {
        let object = line.strip_prefix("ob=").or(line.strip_prefix("cob="));
        if line.starts_with("part:") {
            parts.push(Count::default());
            generated = false;
        } else if let Some(object) = object {
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if name == "???" {
                nameless.insert(number.to_string());
            } else if !name.is_empty() {
                nameless.remove(number);
            }
            if line.starts_with("ob=") {
                generated = nameless.contains(number);
            }
        } else if line.starts_with("calls=") {
            call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c))
            && !std::mem::take(&mut call)
            && let Some(count) = parts.last_mut()
        {
            let cost = line.split_whitespace().nth(1);
            let cost = cost.and_then(|c| c.parse::<u64>().ok()).unwrap_or(0);
            count.all += cost;
            count.generated += if generated { cost } else { 0 };
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_part_and_object_that_they_stand_below() {
        let text = "# callgrind format\npid: 1\npart: 1\nevents: Ir\n\nob=(1) /usr/bin/varve\nfl=(1) main.rs\nfn=(1) main\n12 100\n+3 20\n\
                    cob=(2) ???\ncfn=(2) 0x1\ncalls=1 0\n15 700\n\nob=(2)\nfn=(2)\n0 650\n* 50\n\nob=(1)\nfn=(3) end\n-2 5\n\ntotals: 825\n\
                    part: 2\nevents: Ir\n\nob=(2)\nfn=(2)\n0 6\n\npart: 3\nob=(1)\nfn=(1)\n1 2\n";
        let count = |generated, all| Count { generated, all };
        let found = parts(text);
        assert_eq!(found, [count(700, 825), count(6, 6), count(0, 2)]);
        assert_eq!(between(&found, 1), Ok(vec![count(6, 6)]));
        assert!(between(&found, 2).is_err(), "a mark was missed");
    }
}
