//! One run of a sweep: its command line, and what its result is kept by.

use super::spec::{ARGUMENTS, Axis, COMMAND, SET, Sweep, WORK};
use crate::args::{Args, Command, Request};
use clap::{CommandFactory, FromArgMatches};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Mutex;
use varve_machine::load;
use varve_run::digest;

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
    let mut command_line = Args::command();
    let mut stride = sweep.points();
    for axis in 0..sweep.axes.len() {
        let Axis { name, values, .. } = &sweep.axes[axis];
        stride /= values.len();
        let decides = DECIDE.contains(&name.as_str());
        let one_by_one = match !decides && are_values(&command_line, &sweep.axes[axis]) {
            true => 1,
            false => values.len(),
        };
        for value in 0..one_by_one {
            let run = parsed(&mut command_line, &words(sweep, stride * value));
            // The kind of run depends on some axes only.
            let decides = value == 0 || decides;
            let checked = run.and_then(|run| if decides { can_be_swept(&run) } else { Ok(()) });
            checked.map_err(|what| sweep.problem(meant(sweep, &what).unwrap_or(axis), &what))?;
        }
    }
    Ok(())
}

/// Whether an option takes all values of an axis. All are read at once: there may be thousands, and reading a whole command
/// line for each takes most of the time of a list.
fn are_values(command_line: &clap::Command, axis: &Axis) -> bool {
    let name = match axis.name.strip_prefix(SET) {
        Some(_) => "set",
        None => &axis.name,
    };
    let Some(run) = command_line.find_subcommand("run") else {
        return false;
    };
    let mut options = run.get_arguments();
    let option = options.find(|option| option.get_long() == Some(name));
    let Some(option) = option.filter(|option| option.get_action().takes_values()) else {
        return false;
    };
    let word = |value: &Vec<String>| match axis.name.strip_prefix(SET) {
        Some(key) => format!("--set={key}={}", value.join(" ")),
        None => format!("--{name}={}", value.join(" ")),
    };
    let several = |option: clap::Arg| option.action(clap::ArgAction::Append);
    let alone = run.clone().no_binary_name(true);
    let alone = alone.mut_arg(option.get_id(), several);
    let read = alone.try_get_matches_from(axis.values.iter().map(word));
    read.is_ok()
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

/// The keys of kept results: the content of their inputs.
pub struct Keys {
    folder: PathBuf,
    /// Digests of files that were read already; `None` for a value that is not a file.
    files: Mutex<HashMap<String, Option<String>>>,
}

impl Keys {
    pub fn new(sweep: &Sweep) -> Keys {
        Keys {
            folder: sweep.folder.clone(),
            files: Mutex::default(),
        }
    }

    /// A text that differs as soon as a word differs, or the content of a file that a word names.
    pub fn of(&self, words: &[String]) -> String {
        let mut key = String::from("varve");
        let mut files = self.files.lock().expect("no holder panics");
        for word in words {
            key.push('\n');
            key.push_str(word);
            let value = word.split_once('=').map_or(&word[..], |(_, value)| value);
            let file = load::changes(value).0;
            if !files.contains_key(file) {
                files.insert(file.into(), digest(&self.folder.join(file)));
            }
            if let Some(digest) = &files[file] {
                key.push('\t');
                key.push_str(digest);
            }
        }
        key
    }

    /// The files that keys were made of, with their digests.
    pub fn files(&self) -> BTreeMap<String, String> {
        let files = self.files.lock().expect("no holder panics");
        let there = files
            .iter()
            .filter_map(|(file, digest)| Some((file.clone(), digest.clone()?)));
        there.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::spec;
    use std::path::Path;

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
    fn a_key_changes_with_the_words_and_with_the_files_that_they_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.trace"), "one").unwrap();
        let sweep = sweep(folder.path(), "work = 'a.trace'\nseed = [1, 2]");
        let name = |number| Keys::new(&sweep).of(&words(&sweep, number));
        let (first, second) = (name(0), name(1));
        assert_ne!(first, second);
        assert_eq!(name(0), first);
        std::fs::write(folder.path().join("a.trace"), "two").unwrap();
        assert_ne!(name(0), first);
        let keys = Keys::new(&sweep);
        keys.of(&words(&sweep, 0));
        assert_eq!(keys.files().keys().collect::<Vec<_>>(), ["a.trace"]);
    }
}
