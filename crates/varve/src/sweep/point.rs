//! One run of a sweep: its command line, and the name of its result.

use super::spec::{ARGUMENTS, Axis, COMMAND, SET, Sweep, WORK};
use crate::args::{Args, Command, Request};
use clap::{CommandFactory, FromArgMatches};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use varve_machine::load;

/// The words behind `varve` that make a point's result.
pub fn words(sweep: &Sweep, number: usize) -> Vec<String> {
    let mut words: Vec<String> = vec!["run".into()];
    let (mut changes, mut behind) = (Vec::new(), Vec::new());
    let mut jobs = false;
    for (axis, value) in sweep.axes.iter().zip(sweep.at(number)) {
        let value = &axis.values[value];
        match axis.name.as_str() {
            WORK => words.extend(value.iter().cloned()),
            ARGUMENTS | COMMAND => behind.extend(value.iter().cloned()),
            name if name.starts_with(SET) => {
                changes.push(format!("{}={}", &name[SET.len()..], value.join(" ")));
            }
            name => {
                jobs |= name == "jobs";
                // A switch has no value.
                words.push(match value.first() {
                    Some(value) => format!("--{name}={value}"),
                    None => format!("--{name}"),
                });
            }
        }
    }
    words.extend(changes.iter().map(|change| format!("--set={change}")));
    if !jobs {
        // Points run beside each other already.
        words.push("--jobs=1".into());
    }
    words.push("--json".into());
    if !behind.is_empty() {
        words.push("--".into());
        words.extend(behind);
    }
    words
}

/// Whether each value of each axis can be run, with the first ones of the others.
///
/// # Errors
/// The first value that cannot, with its line.
pub fn check(sweep: &Sweep) -> Result<(), String> {
    // Made once: there may be thousands of values.
    let mut command_line = Args::command();
    let mut stride = sweep.points();
    for axis in 0..sweep.axes.len() {
        let Axis { name, values, .. } = &sweep.axes[axis];
        stride /= values.len();
        for value in 0..values.len() {
            let run = parsed(&mut command_line, &words(sweep, stride * value));
            // What kind of run it is depends on these alone.
            let decides = value == 0 || DECIDE.contains(&name.as_str());
            let checked = run.and_then(|run| if decides { can_be_swept(&run) } else { Ok(()) });
            checked.map_err(|what| sweep.problem(meant(sweep, &what).unwrap_or(axis), &what))?;
        }
    }
    Ok(())
}

/// Keys whose values decide what kind of run it is.
const DECIDE: [&str; 5] = [WORK, COMMAND, "machine", "plan", "policy"];

/// The axis whose option a message names.
fn meant(sweep: &Sweep, what: &str) -> Option<usize> {
    let named = |name: &str| {
        let mut words = what.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.any(|word| word.strip_prefix("--") == Some(name))
    };
    sweep.axes.iter().position(|axis| named(&axis.name))
}

fn parsed(command_line: &mut clap::Command, words: &[String]) -> Result<Request, String> {
    let line = std::iter::once("varve").chain(words.iter().map(String::as_str));
    let args = command_line
        .try_get_matches_from_mut(line)
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = args.map_err(|e| {
        let said = e.to_string();
        let first = said.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_string()
    })?;
    match args.command {
        Some(Command::Run(request)) => Ok(request),
        _ => Err("is nothing that `varve run` runs".into()),
    }
}

/// Whether it is a run on a model, and takes all the options that it has.
fn can_be_swept(request: &Request) -> Result<(), String> {
    let kind = request.kind()?;
    if !kind.is_modelled() {
        return Err(format!(
            "runs {}: name a machine (machine = \"cxl-spr\")",
            kind.how()
        ));
    }
    request.job().map(drop)
}

/// What names results: the content of what makes them.
pub struct Names {
    folder: PathBuf,
    /// Digests of files that were read already.
    files: RefCell<HashMap<String, Option<String>>>,
}

impl Names {
    pub fn new(sweep: &Sweep) -> Names {
        Names {
            folder: sweep.folder.clone(),
            files: RefCell::default(),
        }
    }

    /// A name that differs as soon as a word differs, or the content of a file that a word names.
    pub fn of(&self, words: &[String]) -> String {
        let mut text = String::new();
        for word in words {
            text.push_str(word);
            text.push('\0');
            let value = word
                .split_once('=')
                .map_or(word.as_str(), |(_, value)| value);
            let file = load::changes(value).0;
            if let Some(digest) = self.digest(file) {
                text.push_str(&digest);
            }
            text.push('\0');
        }
        format!("{:032x}", fnv(text.as_bytes()))
    }

    /// Length and checksum of a file's content, if the word names one.
    fn digest(&self, word: &str) -> Option<String> {
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(word) {
            return known.clone();
        }
        let digest = digest(&self.folder.join(word));
        files.insert(word.into(), digest.clone());
        digest
    }
}

/// Length and checksum of a file's content; none if it is no file.
pub fn digest(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = 0;
    let mut part = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut part).ok()? {
            0 => return Some(format!("{bytes} {:08x}", hasher.finalize())),
            n => {
                hasher.update(&part[..n]);
                bytes += n;
            }
        }
    }
}

/// FNV-1a with 128 bits (the constants are the authors': isthe.com/chongo/tech/comp/fnv): the same on every machine.
fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62272e07bb014262b821756295c58d;
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    bytes.iter().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::spec;

    fn sweep(folder: &Path, text: &str) -> Sweep {
        let path = folder.join("s.toml");
        std::fs::write(&path, text).unwrap();
        spec::load(&path).unwrap()
    }

    #[test]
    fn a_point_is_a_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = "work = 'x.wasm'\narguments = 'pagerank --scale 3'\nmachine = 'cxl-spr'\nplan = ['slow', 'kg-n']\nmarked = true\n[set]\n'core.ipc' = 2\n";
        let sweep = sweep(folder.path(), text);
        let words = words(&sweep, 1).join(" ");
        assert_eq!(
            words,
            "run x.wasm --machine=cxl-spr --plan=kg-n --marked --set=core.ipc=2 --jobs=1 --json -- pagerank --scale 3"
        );
    }

    #[test]
    fn values_that_cannot_be_run_are_refused_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        for (text, said) in [
            (
                "work = 'gups'\nseed = ['x']",
                "s.toml:2: seed: invalid value 'x'",
            ),
            ("work = 'gups'\nplan = 'kg-n'", "--plan is for"),
            ("work = 'x.wasm'", "s.toml:1: work: runs on this machine"),
            (
                "work = ['gups', 'x.wasm']",
                "s.toml:1: work: runs on this machine",
            ),
        ] {
            let error = check(&sweep(folder.path(), text)).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(
            check(&sweep(folder.path(), "work = 'gups'\nseed = [1, 2]")),
            Ok(())
        );
    }

    #[test]
    fn a_name_changes_with_the_words_and_with_the_files_that_they_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.trace"), "one").unwrap();
        let sweep = sweep(folder.path(), "work = 'a.trace'\nseed = [1, 2]");
        let name = |number| Names::new(&sweep).of(&words(&sweep, number));
        let (first, second) = (name(0), name(1));
        assert_ne!(first, second);
        assert_eq!(name(0), first);
        std::fs::write(folder.path().join("a.trace"), "two").unwrap();
        assert_ne!(name(0), first);
        assert_eq!(
            format!("{:032x}", fnv(b"a")),
            "d228cb696f1a8caf78912b704e4a8964"
        );
    }
}
