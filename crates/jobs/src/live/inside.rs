//! A program that is in fast memory in part: started with what places its own memory, and what is told of where that was.
//!
//! Native programs and Java virtual machines are prepared by `varve_live`, as `varve run --live` does it; a WebAssembly program is run by
//! a `varve` of its own, whose table of spaces is read in its log.

use crate::group::Program;
use crate::inside::{Inside, Told};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use varve_live::java::{self, JavaProcess};
use varve_live::nodes::Kinds;
use varve_live::objects::{self, Group, SiteMap, Tier};
use varve_report::fmt;
use varve_run::jvm;
use varve_run::objects::live::{site_map, site_plan};
use varve_sites::AnyProfile;
use varve_sites::native::Profile;

/// What a program in part may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPart {
    /// Most fast memory of its objects, bytes; `None`: what they ask for. Generations are not limited.
    pub fast: Option<u64>,
}

/// A program that will be placed, or is. It is to live until the program has ended.
pub enum Prepared {
    /// Its objects by site.
    Sites(Box<objects::Prepared>, Box<SiteMap>),
    /// Its generations.
    Generations(java::Prepared),
    /// Its objects by whoever runs it, who writes here.
    Heap(PathBuf),
}

/// Adds what places a program to its command.
///
/// # Errors
/// What is in the way, and the remedy: a key of its entry, and two texts.
pub fn prepare(
    command: &mut Command,
    program: &Program,
    inside: &Inside,
    part: InPart,
    kinds: &Kinds,
    log: &Path,
) -> Result<Prepared, (&'static str, String, String)> {
    let key = inside.key();
    let failed = |what: String| (key, what, "take the key out to run it as it is".to_string());
    match inside.told {
        Told::Heap => Ok(Prepared::Heap(log.into())),
        Told::Generations => {
            let (_, by) = jvm::plan(&inside.plan).map_err(|e| failed(e.to_string()))?;
            let placing = by
                .placing()
                .ok_or_else(|| failed(format!("{} is not there on a machine", inside.plan)))?;
            let prepared = java::Prepared::new(command, placing, kinds);
            prepared
                .map(Prepared::Generations)
                .map_err(|e| failed(e.to_string()))
        }
        Told::Sites => {
            let profile = profile(program, inside)?;
            let plan = site_plan(&inside.plan).map_err(failed)?;
            let (map, _) = site_map(&profile, plan, part.fast.unwrap_or(0), kinds.clone());
            let prepared = objects::Prepared::new(command, &map, &[]);
            let prepared = prepared.map_err(|e| failed(e.to_string()))?;
            Ok(Prepared::Sites(prepared.into(), map.into()))
        }
    }
}

/// The profile of a native program.
pub fn profile(
    program: &Program,
    inside: &Inside,
) -> Result<Profile, (&'static str, String, String)> {
    let file = inside.sites.as_deref().unwrap_or(Path::new(""));
    let anew = format!(
        "make one with `varve profile -o {} -- {}`",
        file.display(),
        program.shown()
    );
    let wrong = |what: String, remedy: String| Err(("sites", what, remedy));
    match AnyProfile::read(file) {
        Ok(AnyProfile::Native(profile)) => Ok(profile),
        Ok(AnyProfile::Managed(_)) => wrong(
            format!("{} is a profile of a WebAssembly program", file.display()),
            anew,
        ),
        Ok(AnyProfile::Java(_)) => wrong(
            format!("{} is a profile of a Java program", file.display()),
            "leave `sites` out: generations are placed by plan = \"kg-n\"".into(),
        ),
        Err(e) => wrong(e.to_string(), anew),
    }
}

impl Prepared {
    /// To be called now and then while the program runs.
    pub fn look(&self) {
        if let Prepared::Sites(prepared, _) = self {
            // A budget that cannot be read any more is that of a program that is ending.
            let _ = prepared.look();
        }
    }

    /// Where its memory was, in lines without its name, once it has ended.
    pub fn told(self, inside: &Inside, status: ExitStatus, seconds: f64) -> Vec<String> {
        match self {
            Prepared::Sites(prepared, map) => sites(*prepared, &map, inside, status, seconds),
            Prepared::Generations(prepared) => {
                let report = prepared.report(status, seconds);
                let machines = report.processes.iter().map(|p| generations(p, inside));
                machines.chain(report.notes.iter().cloned()).collect()
            }
            Prepared::Heap(log) => {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                match spaces(&text) {
                    Some(spaces) => vec![format!("{}: {spaces}", inside.words())],
                    None => vec![format!(
                        "where {} were is not told: see {}",
                        inside.words(),
                        log.display()
                    )],
                }
            }
        }
    }
}

fn sites(
    prepared: objects::Prepared,
    map: &SiteMap,
    inside: &Inside,
    status: ExitStatus,
    seconds: f64,
) -> Vec<String> {
    let report = prepared.report(status, seconds);
    let is_fast = |group: &Group| match group {
        Group::Sites(sites) => sites
            .first()
            .is_some_and(|&s| map.sites[s].tier == Tier::Fast),
        Group::Undecided => false,
        Group::Asked(tier) => *tier == Tier::Fast,
    };
    let (mut fast, mut slow, mut spilled) = (0, 0, 0);
    let (mut pages, mut elsewhere) = (0, 0);
    for process in &report.processes {
        for g in &process.groups {
            if report.groups.get(g.group).is_some_and(is_fast) {
                fast += g.bytes - g.spilled.min(g.bytes);
                spilled += g.spilled;
            } else {
                slow += g.bytes;
            }
        }
        fast += process.variables_fast;
        slow += process.variables_slow;
        let (all, wrong) = process.pages_elsewhere(&map.kinds);
        pages += all;
        elsewhere += wrong;
    }
    let size = |bytes: u64| fmt::bytes(bytes as f64);
    let mut lines = Vec::new();
    if !report.processes.is_empty() {
        lines.push(format!(
            "{}: {} asked for went to fast memory, {} to slow memory, {} of them since its {} were full; of {pages} pages looked at {elsewhere} are on a node of the other kind",
            inside.words(),
            size(fast),
            size(slow + spilled),
            size(spilled),
            size(map.budget_bytes)
        ));
    }
    lines.extend(report.notes);
    lines
}

/// One machine's generations, as `young 6.0 MiB on node 0; old 40.0 MiB on node 1`.
fn generations(process: &JavaProcess, inside: &Inside) -> String {
    let part = |what: &&str| {
        let (nodes, _) = process.part(what).unwrap_or_default();
        let nodes: Vec<String> = nodes
            .iter()
            .map(|(node, bytes)| format!("{} on node {node}", fmt::bytes(*bytes as f64)))
            .collect();
        match nodes.is_empty() {
            true => format!("{what} nothing"),
            false => format!("{what} {}", nodes.join(" and ")),
        }
    };
    let parts: Vec<String> = process.uses().iter().map(part).collect();
    format!("{}: {}", inside.words(), parts.join("; "))
}

/// The spaces of a heap from the table that `--gc-stats` writes: `nursery 4.0 MiB on node 0; mature 9.5 MiB on node 1`.
fn spaces(log: &str) -> Option<String> {
    let mut lines = log
        .lines()
        .skip_while(|line| !line.starts_with("memory of the heap: "))
        .skip(1);
    let nodes: Vec<&str> = lines
        .next()?
        .split("node ")
        .skip(1)
        .map(str::trim)
        .collect();
    let space = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Name (which may be of several words), memory, used, held, and a number for each node.
        let (rest, on) = words.split_at_checked(words.len().checked_sub(nodes.len())?)?;
        let name = rest.get(..rest.len().checked_sub(3)?)?.join(" ");
        let there = nodes.iter().zip(on).filter_map(|(node, mib)| {
            let mib: f64 = mib.parse().ok()?;
            (mib > 0.0).then(|| format!("{mib:.1} MiB on node {node}"))
        });
        let there: Vec<String> = there.collect();
        let is_row = !name.is_empty() && on.iter().all(|mib| mib.parse::<f64>().is_ok());
        is_row.then(|| (name, there.join(" and ")))
    };
    let rows = lines
        .map_while(space)
        .filter(|(_, there)| !there.is_empty());
    let rows: Vec<String> = rows
        .map(|(name, there)| format!("{name} {there}"))
        .collect();
    (!rows.is_empty()).then(|| rows.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spaces_of_a_heap_are_read_from_its_log() {
        let log = "hello\nmemory of the heap: fast 0, slow 1, pages by node in MiB\n\
            space       memory  used MiB  held MiB    node 0    node 1\n\
            nursery          0       0.1       4.0       4.0       0.0\n\
            mature           1       9.4       9.5       0.0       9.5\n\
            tables           0         -         -       0.0       0.0\n\
            pool of slow memory, MiB: 0.0 given back\n";
        let said = spaces(log).unwrap();
        assert_eq!(said, "nursery 4.0 MiB on node 0; mature 9.5 MiB on node 1");
        assert_eq!(spaces("it failed\n"), None);
    }
}
