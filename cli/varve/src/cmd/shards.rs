//! The region files of a server of several shards: which there are, and what is written beside them.

use crate::ui::{Failure, failed, wrong};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use varve_serve::HASH;

const TITLE: &str = "shards of varve serve, version 1";

/// Where the values of a server survive: `FILE` itself for one shard, else `FILE.0`, `FILE.1` and so on, with `FILE.shards` beside them.
#[derive(Debug, PartialEq, Eq)]
pub struct Regions {
    file: PathBuf,
    pub shards: usize,
    /// The file beside them does not record yet that all exist.
    new: bool,
}

/// The content of the file beside them.
#[derive(Debug, PartialEq, Eq)]
struct Beside {
    shards: usize,
    /// All files were made: none may be missing.
    complete: bool,
}

impl Regions {
    /// The regions that are there, or those that are asked for; one if nothing is said.
    ///
    /// # Errors
    /// Files that are for another number of shards; what is missing.
    pub fn find(file: &Path, asked: Option<usize>) -> Result<Regions, Failure> {
        let shown = file.display();
        let regions = |shards, new| Regions {
            file: file.to_path_buf(),
            shards,
            new,
        };
        let there = match fs::read_to_string(beside(file)) {
            Ok(text) => {
                parse(&text).map_err(|what| wrong(format!("{}: {what}", beside(file).display())))?
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let (one, first) = (file.exists(), numbered(file, 0).exists());
                return match asked.unwrap_or(1) {
                    1 if one || !first => Ok(regions(1, false)),
                    n if one => Err(wrong(format!(
                        "{shown}: its values are in one shard: leave out --shards {n}"
                    ))),
                    _ if first => Err(wrong(format!(
                        "{shown}.shards is missing: it has the number of files {shown}.0 and so on: restore it"
                    ))),
                    n => Ok(regions(n, true)),
                };
            }
            Err(e) => return Err(wrong(format!("{}: {e}", beside(file).display()))),
        };
        let shards = there.shards;
        if asked.is_some_and(|asked| asked != shards) {
            return Err(wrong(format!(
                "{shown}: its values are in {shards} shards: --shards {shards}"
            )));
        }
        let found = regions(shards, !there.complete);
        let missing = found.files().into_iter().find(|file| !file.exists());
        match missing.filter(|_| there.complete) {
            Some(missing) => Err(wrong(format!(
                "{}: not there, and has a part of the values of {shown}: put it back",
                missing.display()
            ))),
            None => Ok(found),
        }
    }

    /// The files, by shard.
    pub fn files(&self) -> Vec<PathBuf> {
        match self.shards {
            1 => vec![self.file.clone()],
            n => (0..n).map(|shard| numbered(&self.file, shard)).collect(),
        }
    }

    /// Writes down how many there are: before the first of them is made, and when all were opened.
    ///
    /// # Errors
    /// The system's error.
    pub fn note(&self, complete: bool) -> Result<(), Failure> {
        if !self.new || self.shards == 1 {
            return Ok(());
        }
        let path = beside(&self.file);
        let shards = self.shards;
        let text = text(&Beside { shards, complete });
        replace(&path, &text).map_err(|e| failed(format!("{}: {e}", path.display())))
    }
}

fn with(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn beside(file: &Path) -> PathBuf {
    with(file, ".shards")
}

fn numbered(file: &Path, shard: usize) -> PathBuf {
    with(file, &format!(".{shard}"))
}

fn text(beside: &Beside) -> String {
    let state = if beside.complete { "complete" } else { "begun" };
    format!("{TITLE}\ncount {}\nhash {HASH}\n{state}\n", beside.shards)
}

fn parse(text: &str) -> Result<Beside, String> {
    let lines: Vec<&str> = text.lines().collect();
    let [TITLE, count, hash, state @ ("begun" | "complete")] = lines[..] else {
        return Err("is not a file that varve serve writes beside its shards".into());
    };
    let count = count.strip_prefix("count ").and_then(|n| n.parse().ok());
    let Some(shards @ 2..) = count else {
        return Err("has no number of shards".into());
    };
    match hash.strip_prefix("hash ") {
        Some(HASH) => Ok(Beside {
            shards,
            complete: state == "complete",
        }),
        other => Err(format!(
            "its keys are dealt by {}, and here by {HASH}: open it with the version that made it",
            other.unwrap_or("nothing")
        )),
    }
}

/// Writes a file so that after a crash there is either the old one or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = with(path, ".new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(failure: Failure) -> String {
        match failure {
            Failure::Line { line, .. } => line,
            Failure::Quiet(_) => String::new(),
        }
    }

    fn make(regions: &Regions) {
        for file in regions.files() {
            fs::write(file, "").unwrap();
        }
    }

    #[test]
    fn one_shard_is_the_file_itself_with_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v");
        for asked in [None, Some(1)] {
            let regions = Regions::find(&file, asked).ok().unwrap();
            assert_eq!(regions.files(), std::slice::from_ref(&file));
            regions.note(false).ok().unwrap();
            make(&regions);
            regions.note(true).ok().unwrap();
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        }
        let refused = line(Regions::find(&file, Some(3)).err().unwrap());
        assert!(refused.contains("one shard"), "{refused}");
    }

    #[test]
    fn files_of_several_shards_are_found_again_and_only_as_many() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v");
        let regions = Regions::find(&file, Some(3)).ok().unwrap();
        regions.note(false).ok().unwrap();
        // Killed here, nothing is missing yet.
        assert_eq!(Regions::find(&file, None).ok().unwrap(), regions);
        make(&regions);
        regions.note(true).ok().unwrap();
        for asked in [None, Some(3)] {
            let again = Regions::find(&file, asked).ok().unwrap();
            assert_eq!((again.shards, again.new), (3, false));
            assert_eq!(again.files(), regions.files());
        }
        for asked in [1, 2, 4] {
            let refused = line(Regions::find(&file, Some(asked)).err().unwrap());
            assert!(refused.ends_with("--shards 3"), "{refused}");
        }
        fs::remove_file(folder.path().join("v.1")).unwrap();
        let refused = line(Regions::find(&file, None).err().unwrap());
        assert!(refused.contains("v.1: not there"), "{refused}");
    }

    #[test]
    fn what_is_written_beside_them_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("v");
        let regions = Regions::find(&file, Some(2)).ok().unwrap();
        make(&regions);
        let refused = line(Regions::find(&file, Some(2)).err().unwrap());
        assert!(refused.contains("restore it"), "{refused}");
        regions.note(true).ok().unwrap();
        let path = folder.path().join("v.shards");
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, says) in [
            ("fnv", "crc", "open it with the version"),
            ("count 2", "count x", "no number of shards"),
            (
                "version 1",
                "version 2",
                "is not a file that varve serve writes",
            ),
        ] {
            fs::write(&path, text.replace(from, to)).unwrap();
            let refused = line(Regions::find(&file, None).err().unwrap());
            assert!(refused.contains(says), "{refused}");
        }
    }
}
