//! Submissions to a scheduler: for each, a file in the folder `jobs` beside the results of a sweep, or among those of a
//! study, with its script and its tasks' logs.

use super::share::Share;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use varve_report::write_atomically;
use varve_run::{Keep, digest};

/// Points that one job array runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Submission {
    /// The scheduler's number of the job; none as long as it has not taken it.
    pub job: Option<String>,
    /// The build of Varve that submitted it.
    pub maker: String,
    pub tasks: usize,
    /// Names of results. Task t has the t-th of them, and every `tasks`-th after it.
    pub points: Vec<String>,
    /// Files that the points are made of, with their digests.
    pub files: BTreeMap<String, String>,
}

/// Where submissions are.
pub fn folder(out: &Path) -> PathBuf {
    out.join("jobs")
}

/// The file of one of them, by its number and its end.
pub fn file(out: &Path, number: usize, end: &str) -> PathBuf {
    folder(out).join(format!("{number}{end}"))
}

/// All of a folder, by number.
///
/// # Errors
/// One that cannot be read.
pub fn all(out: &Path) -> Result<BTreeMap<usize, Submission>, String> {
    let Ok(entries) = fs::read_dir(folder(out)) else {
        return Ok(BTreeMap::new());
    };
    let number = |path: &Path| -> Option<usize> {
        let is_one = path.extension().is_some_and(|end| end == "json");
        path.file_stem()?.to_str()?.parse().ok().filter(|_| is_one)
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let numbered = paths.filter_map(|path| Some((number(&path)?, path)));
    numbered
        .map(|(number, path)| Ok((number, load(&path)?)))
        .collect()
}

/// Reads one.
///
/// # Errors
/// It is not there, or is none.
pub fn load(path: &Path) -> Result<Submission, String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|e| format!("{shown}: {e}; all nodes must see the folder of the results"))?;
    serde_json::from_str(&text).map_err(|e| {
        format!(
            "{shown}: is not what was written when it was submitted ({e}); remove it, and submit again"
        )
    })
}

/// Holds off others that submit to the same folder, as long as the file lives.
///
/// # Errors
/// Another process does it now; the folder cannot be written.
pub fn alone(out: &Path) -> Result<File, String> {
    let folder = folder(out);
    let path = folder.join("lock");
    let io = |e: std::io::Error| format!("{}: {e}; choose another --out", path.display());
    fs::create_dir_all(&folder).map_err(io)?;
    let file = File::create(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!(
            "{}: another process submits its points now; wait for it",
            out.display()
        )),
        Err(TryLockError::Error(e)) => Err(io(e)),
    }
}

impl Submission {
    /// Writes it whole or not at all.
    ///
    /// # Errors
    /// The system's error, with the file.
    pub fn save(&self, out: &Path, number: usize) -> Result<(), String> {
        let text = serde_json::to_vec_pretty(self).map_err(|e| e.to_string())?;
        write_atomically(&file(out, number, ".json"), &text).map_err(|e| e.to_string())
    }

    /// Whether a task here would make what was submitted: the same program, from the same files.
    ///
    /// # Errors
    /// The difference on this node, in one line.
    pub fn check(&self, keep: &Keep, folder: &Path) -> Result<(), String> {
        let host = host();
        if self.maker != keep.maker() {
            return Err(format!(
                "varve on {host} is another build than the one that submitted this job; install the same on all nodes, or submit again"
            ));
        }
        for (name, content) in &self.files {
            let path = folder.join(name);
            let shown = path.display();
            match digest(&path) {
                None => {
                    return Err(format!(
                        "{shown}: is not there on {host}; put it where all nodes see it"
                    ));
                }
                Some(here) if here != *content => {
                    return Err(format!(
                        "{shown}: has other content on {host} than when it was submitted; submit again"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Names of a task's points.
    pub fn names_of(&self, share: Share) -> Vec<&String> {
        let mut own: Vec<&String> = self.points.iter().collect();
        share.retain(&mut own);
        own
    }

    /// Numbers of a task's points, of all points of a sweep as they are called now.
    ///
    /// # Errors
    /// Points that the sweep does not have any more.
    pub fn points_of(
        &self,
        share: Share,
        names: &BTreeMap<&str, usize>,
    ) -> Result<Vec<usize>, String> {
        let own = self.names_of(share);
        let known: Vec<usize> = own
            .iter()
            .filter_map(|name| names.get(&name[..]).copied())
            .collect();
        match own.len() - known.len() {
            0 => Ok(known),
            gone => Err(format!(
                "{gone} of {} points are no longer those of the sweep: its file has changed since it was submitted; submit again",
                own.len()
            )),
        }
    }
}

/// This node, as the scheduler calls it.
fn host() -> String {
    let own = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = std::env::var("SLURMD_NODENAME").ok().or_else(own);
    name.map_or("this node".into(), |name| name.trim().to_string())
}

/// A submission of these points, which depend on these files.
pub fn new(
    keep: &Keep,
    files: BTreeMap<String, String>,
    points: Vec<String>,
    tasks: usize,
) -> Submission {
    Submission {
        job: None,
        maker: keep.maker().into(),
        tasks,
        points,
        files,
    }
}
