//! Loading, checking and listing machines: the built-in ones, files, and folders of files.

mod changed;
mod fields;
mod nodes;
mod numbers;
mod power;
mod probed;
mod problem;
mod read;
mod rules;
mod scaled;
mod summary;

pub use changed::{changed, split as changes};
pub use fields::{FIELDS, Field, FieldType, OPTIONAL_SECTIONS};
pub use nodes::{NodeKind, NumaNode};
pub use probed::{ProbedCache, ProbedMachine, ProbedMemory};
pub use problem::{LoadError, Problem};
pub use summary::{CacheLevelSummary, MachineSummary, Tier};

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::describe::Machine;

/// Names and texts of the files in `machines/`, embedded at build time and sorted by name.
const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/machines.rs"));

/// Folders with further machine files, separated as in `PATH`.
pub const MACHINES_VARIABLE: &str = "VARVE_MACHINES";

impl Machine {
    /// Loads a machine by name or from a file. A text with a `/` or ending in `.toml` is a path; a name is looked up
    /// in the folders of [`MACHINES_VARIABLE`] first, then among the built-in machines. Behind a `:`, values for some
    /// of its keys may follow: `cxl-spr:cxl.latency_ns=300,core.ipc=2`.
    pub fn load(name_or_path: &str) -> Result<Machine, LoadError> {
        let folders: Vec<PathBuf> = env::var_os(MACHINES_VARIABLE)
            .map(|paths| {
                env::split_paths(&paths)
                    .filter(|p| !p.as_os_str().is_empty())
                    .collect()
            })
            .unwrap_or_default();
        Machine::load_from(name_or_path, &folders)
    }

    /// Like [`Machine::load`], with the folders to look in before the built-in machines.
    pub fn load_from(name_or_path: &str, folders: &[PathBuf]) -> Result<Machine, LoadError> {
        let (name_or_path, changes) = changed::split(name_or_path);
        let (text, file_name) = file_text(name_or_path, folders)?;
        Machine::parse(&text, &file_name)?.with(&changes)
    }

    /// Reads a machine from the text of a file. `file_name` appears in messages; its stem must be the machine's name.
    ///
    /// # Errors
    /// All problems at once, each with its line, key and remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Machine, LoadError> {
        if !fields::occur_in(text) {
            return Err(LoadError::Invalid(vec![Problem {
                file: file_name.into(),
                line: 1,
                key: String::new(),
                what: "this is not a machine file".into(),
                remedy: "`varve machine show cxl-spr --toml` prints one to begin with".into(),
            }]));
        }
        let mut doc = read::Document::read(text, file_name);
        let Some(tree) = doc.tree() else {
            return Err(LoadError::Invalid(doc.into_problems()));
        };
        // Rules run even on a file with problems, as far as it can be understood, so that all problems are reported at
        // once.
        match Machine::deserialize(tree.clone()) {
            Ok(machine) => {
                doc.add_findings(rules::findings(&machine));
                let stem = Path::new(file_name)
                    .file_stem()
                    .and_then(|s| s.to_str())
                    .unwrap_or(file_name);
                if machine.name != stem {
                    let remedy = format!("write name = \"{stem}\", or rename the file");
                    doc.add(
                        "name",
                        format!("`{}` is not the file's name", machine.name),
                        &remedy,
                    );
                }
                if doc.is_clean() {
                    Ok(machine)
                } else {
                    Err(LoadError::Invalid(doc.into_problems()))
                }
            }
            Err(e) => {
                doc.add_findings(numbers::table_findings(&tree));
                if doc.is_clean() {
                    // The table of fields and the structs disagree: a mistake of ours, but never a panic.
                    doc.add("", e.message().replace('\n', " "), "see docs/machines.md");
                }
                Err(LoadError::Invalid(doc.into_problems()))
            }
        }
    }

    /// This machine with other values for some keys, such as `core.ipc=2`. Its name lists them.
    ///
    /// # Errors
    /// A key that no machine has, or this one has not; a value that cannot be, by itself or beside the others.
    pub fn with(self, changes: &[&str]) -> Result<Machine, LoadError> {
        match changes {
            [] => Ok(self),
            changes => changed::with(&self, changes),
        }
    }

    /// The file's text of this machine; [`Machine::parse`] reads it back.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("every field of a machine has a TOML form")
    }
}

/// Names and file texts of the built-in machines, sorted by name.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}

/// Names of all machines that [`Machine::load_from`] finds, sorted: the folders' and the built-in ones.
pub fn names(folders: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = BUILTIN.iter().map(|(name, _)| name.to_string()).collect();
    for folder in folders {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        let files = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "toml"));
        names.extend(files.filter_map(|p| Some(p.file_stem()?.to_str()?.to_string())));
    }
    names.sort();
    names.dedup();
    names
}

/// The text of a machine's file, comments included, and the file's name: a template for one's own. Searches the same
/// folders as [`Machine::load_from`]; the text is not checked.
pub fn file_text(name_or_path: &str, folders: &[PathBuf]) -> Result<(String, String), LoadError> {
    if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
        return read_file(Path::new(name_or_path));
    }
    let file_name = format!("{name_or_path}.toml");
    if let Some(path) = folders
        .iter()
        .map(|f| f.join(&file_name))
        .find(|p| p.is_file())
    {
        return read_file(&path);
    }
    if let Some((_, text)) = BUILTIN.iter().find(|(name, _)| *name == name_or_path) {
        return Ok((text.to_string(), file_name));
    }
    let known = names(folders);
    let meant =
        varve_spec::nearest(name_or_path, known.iter().map(String::as_str)).map(String::from);
    Err(LoadError::Unknown {
        name: name_or_path.into(),
        known,
        meant,
    })
}

fn read_file(path: &Path) -> Result<(String, String), LoadError> {
    let text = fs::read_to_string(path).map_err(|cause| LoadError::Read {
        path: path.into(),
        cause,
    })?;
    Ok((text, path.to_string_lossy().into_owned()))
}
