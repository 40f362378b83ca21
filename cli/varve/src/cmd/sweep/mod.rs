//! `varve sweep`: runs points, or says and submits what is left.

mod list;
mod merge;

use crate::args::{SweepAction, SweepArgs};
use crate::cmd::cluster::{self, NAMED, Point};
use crate::sweep::emit::{self, Shared, word};
use crate::sweep::point::Keys;
use crate::sweep::share::Share;
use crate::sweep::spec::{self, Sweep};
use crate::sweep::standing::{Standing, store};
use crate::sweep::{point, submission, work};
use crate::ui::{self, Done, Failure, failed, print, wrong};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use varve_run::Keep;

/// A sweep, and where its results are.
struct Opened {
    file: PathBuf,
    sweep: Sweep,
    out: PathBuf,
    keep: Keep,
    keys: Keys,
}

impl Opened {
    /// Reads and checks a sweep.
    fn open(file: &Path, out: Option<&Path>) -> Result<Opened, Failure> {
        let sweep = spec::load(file).map_err(wrong)?;
        point::check(&sweep).map_err(wrong)?;
        let out = out.map_or_else(|| PathBuf::from(&sweep.stem), PathBuf::from);
        Ok(Opened {
            file: file.into(),
            keep: store(&out),
            keys: Keys::new(&sweep),
            sweep,
            out,
        })
    }

    fn standing(&self) -> Standing {
        Standing::of(&self.sweep, &self.keep, &self.keys)
    }
}

impl cluster::ClusterWork for Opened {
    fn name(&self) -> &str {
        &self.sweep.stem
    }

    fn out(&self) -> &Path {
        &self.out
    }

    fn keep(&self) -> &Keep {
        &self.keep
    }

    fn points(&self) -> Result<Vec<Point>, Failure> {
        let points = self.standing().points.into_iter().enumerate();
        let point = |(number, known)| Point {
            known,
            shown: shown(&self.sweep, number),
            command: Some(command_of(&self.sweep, number)),
        };
        Ok(points.map(point).collect())
    }

    fn files(&self) -> BTreeMap<String, String> {
        self.keys.files()
    }

    fn command(&self) -> Result<String, Failure> {
        let whole = |path: &Path| std::path::absolute(path).map_err(failed);
        let (file, out) = (whole(&self.file)?, whole(&self.out)?);
        Ok(format!("sweep {} --out {}", word(&file), word(&out)))
    }
}

pub fn sweep(a: &SweepArgs) -> Done {
    match (&a.action, &a.file) {
        (Some(SweepAction::Submit(a)), _) => {
            let opened = Opened::open(&a.file, a.out.as_deref())?;
            ui::can_hold_results(&opened.out, "--out")?;
            cluster::submit::submit(&opened, &a.how)
        }
        (Some(SweepAction::Status(a)), _) => {
            let opened = Opened::open(&a.file, a.out.as_deref())?;
            cluster::status::status(&opened, a.json)
        }
        (None, Some(file)) => of_file(a, file),
        (None, None) => Err(wrong(
            "give the file of a sweep, such as examples/budget.toml",
        )),
    }
}

fn of_file(a: &SweepArgs, file: &Path) -> Done {
    let opened = Opened::open(file, a.out.as_deref())?;
    if let (Some(target), Some(shards)) = (a.shares.emit, a.shares.shards) {
        let shared = Shared {
            name: opened.sweep.stem.clone(),
            folder: &opened.out,
            words: &|out| {
                let paths = [file, out].map(|path| path.to_string_lossy().into_owned());
                let [file, out] = paths;
                vec!["sweep".into(), file, "--out".into(), out]
            },
            rounds: 1,
        };
        print(emit::script(target, &shared, shards as usize).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let shard = a.shares.own().map_err(wrong)?;
    ui::can_hold_results(&opened.out, "--out")?;
    if let (Some(shard), Some(file)) = (shard, &a.shares.submission) {
        let submitted = submission::load(file).map_err(failed)?;
        let checked = submitted.check(&opened.keep, &opened.sweep.folder);
        checked.map_err(failed)?;
        let standing = opened.standing();
        let names = standing.points.iter().enumerate();
        let names: BTreeMap<&str, usize> = names.map(|(n, point)| (&point.name[..], n)).collect();
        let own = submitted.points_of(shard, &names).map_err(failed)?;
        let missing = standing.missing();
        let left: Vec<usize> = own
            .into_iter()
            .filter(|n| missing.binary_search(n).is_ok())
            .collect();
        return run(a, &opened, &left, true);
    }
    let standing = opened.standing();
    if a.list {
        return list::list(a.json, &opened, &standing);
    }
    if a.shares.merge {
        return merge::merge(a, &opened, standing);
    }
    let mut missing = standing.missing();
    if let Some(shard) = shard {
        missing = of_share(shard, missing);
    }
    if standing.others() > 0 {
        let others = standing.others();
        crate::ui::message!(
            "varve: note: {others} results are of another build of Varve: their points run again"
        );
    }
    run(a, &opened, &missing, shard.is_some())
}

/// By their numbers: shares that begin at other times have other points all the same.
fn of_share(shard: Share, mut missing: Vec<usize>) -> Vec<usize> {
    missing.retain(|number| number % shard.of == shard.own);
    missing
}

/// Runs these points, and merges all if it is not a share.
fn run(a: &SweepArgs, opened: &Opened, missing: &[usize], shared: bool) -> Done {
    let Opened {
        sweep, keep, keys, ..
    } = opened;
    let outcome = work::run(sweep, keep, keys, missing, ui::workers(a.shares.jobs));
    if let Some(why) = outcome.lost {
        return Err(failed(why));
    }
    if outcome.stopped {
        let left = opened.standing().missing().len();
        return Err(Failure::Line {
            code: 130,
            line: format!(
                "interrupted; {left} of {} points are left, and the same command goes on",
                sweep.points()
            ),
        });
    }
    if !outcome.failed.is_empty() {
        return Err(failed(failures(sweep, &outcome.failed, missing.len())));
    }
    if shared {
        crate::ui::message!("{} points of this share are done", missing.len());
        return Ok(ExitCode::SUCCESS);
    }
    merge::merge(a, opened, opened.standing())
}

/// A point's command, as a shell understands it.
fn command_of(sweep: &Sweep, number: usize) -> String {
    let words = point::words(sweep, number);
    let words: Vec<String> = words.iter().map(|word| ui::quoted(word)).collect();
    format!("varve {}", words.join(" "))
}

/// The values of a point that others have not, and its command.
fn shown(sweep: &Sweep, number: usize) -> String {
    let at = sweep.at(number);
    let words = sweep.varying().map(|axis| {
        let name = &sweep.axes[axis].name;
        format!("{name}={}", sweep.shown(axis, at[axis]))
    });
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "the only point".into(),
        false => words.join(" "),
    }
}

fn failures(sweep: &Sweep, failed: &[(usize, String)], of: usize) -> String {
    let mut lines = vec![format!(
        "{} of {of} points failed; the others are kept, and the same command tries these again",
        failed.len()
    )];
    for (number, why) in failed.iter().take(NAMED) {
        lines.push(format!("{}: {why}", shown(sweep, *number)));
    }
    if failed.len() > NAMED {
        lines.push(format!("and {} more", failed.len() - NAMED));
    }
    lines.join("\nvarve: ")
}
