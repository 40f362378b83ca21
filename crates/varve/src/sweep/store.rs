//! Results that are there: a file for each point, written whole or not at all.

use super::point::{Names, digest, words};
use super::spec::Sweep;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use varve_report::{RunReport, write_atomically};

/// A point's result as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The program that made it: another build may give other numbers.
    pub maker: String,
    /// The words behind `varve`.
    pub words: Vec<String>,
    pub report: RunReport,
}

/// What is known of a point without running it.
pub enum State {
    Missing,
    /// Another build of Varve made it.
    Other,
    Done(Box<RunReport>),
}

/// A folder of results.
pub struct Store {
    folder: PathBuf,
    maker: String,
}

impl Store {
    pub fn new(folder: &Path) -> Store {
        Store {
            folder: folder.join("points"),
            maker: maker(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Whether a point's result is there. One that cannot be read is not.
    pub fn state(&self, name: &str, words: &[String]) -> State {
        let kept = std::fs::read(self.file(name)).ok();
        let kept = kept.and_then(|text| serde_json::from_slice::<Kept>(&text).ok());
        match kept.filter(|kept| kept.words == words) {
            None => State::Missing,
            Some(kept) if kept.maker != self.maker => State::Other,
            Some(kept) => State::Done(Box::new(kept.report)),
        }
    }

    /// Keeps a point's result, without its own charts and tables: the merged ones are made from the runs.
    ///
    /// # Errors
    /// What the system says, with the file.
    pub fn keep(
        &self,
        name: &str,
        words: Vec<String>,
        mut report: RunReport,
    ) -> Result<(), String> {
        report.charts.clear();
        report.details.clear();
        let kept = Kept {
            maker: self.maker.clone(),
            words,
            report,
        };
        let path = self.file(name);
        let text = serde_json::to_vec(&kept).map_err(|e| e.to_string())?;
        let made = std::fs::create_dir_all(&self.folder);
        made.map_err(|e: io::Error| format!("{}: {e}", self.folder.display()))?;
        write_atomically(&path, &text).map_err(|e| e.to_string())
    }
}

/// All points of a sweep, and which of them are there.
pub struct Standing {
    /// By number.
    pub points: Vec<State>,
    pub names: Vec<String>,
}

impl Standing {
    pub fn of(sweep: &Sweep, store: &Store) -> Standing {
        let names_of = Names::new(sweep);
        let (mut points, mut names) = (Vec::new(), Vec::new());
        for number in 0..sweep.points() {
            let words = words(sweep, number);
            let name = names_of.of(&words);
            points.push(store.state(&name, &words));
            names.push(name);
        }
        Standing { points, names }
    }

    /// Numbers of the points that have to be run.
    pub fn missing(&self) -> Vec<usize> {
        let missing = |number: &usize| !matches!(self.points[*number], State::Done(_));
        (0..self.points.len()).filter(missing).collect()
    }

    /// How many results of another build there are.
    pub fn others(&self) -> usize {
        let other = |state: &&State| matches!(state, State::Other);
        self.points.iter().filter(other).count()
    }
}

/// The running program: its version and the content of its file.
fn maker() -> String {
    let own = std::env::current_exe().ok().and_then(|path| digest(&path));
    format!("{} {}", varve_run::VERSION, own.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_again_and_others_are_not_taken_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::new(folder.path());
        let words = vec!["run".to_string()];
        assert!(matches!(store.state("a", &words), State::Missing));
        store
            .keep("a", words.clone(), RunReport::default())
            .unwrap();
        assert!(matches!(store.state("a", &words), State::Done(_)));
        assert!(matches!(store.state("a", &["x".into()]), State::Missing));
        store.maker = "another".into();
        assert!(matches!(store.state("a", &words), State::Other));
        // Half a file, as a full disk leaves one that was not written by us.
        let file = folder.path().join("points/a.json");
        let text = std::fs::read(&file).unwrap();
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert!(matches!(store.state("a", &words), State::Missing));
        assert_eq!(
            std::fs::read_dir(folder.path().join("points"))
                .unwrap()
                .count(),
            1
        );
    }
}
