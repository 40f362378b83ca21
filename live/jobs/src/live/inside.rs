//! A program that is in fast memory in part: started with the runtime that places its own memory, and the report of where that memory was.
//!
//! Native programs and Java virtual machines are prepared by `varve_live`, as `varve run --live` does it; a WebAssembly program is run by
//! a `varve` of its own, whose table of spaces is read in its log.

use crate::group::{Live, Program};
use crate::inside::{Inside, Told};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use varve_live::java::{self, JavaProcess};
use varve_live::nodes::Kinds;
use varve_live::objects::{self, Group, SiteMap, Tier};
use varve_observed::ManagedProgram;
use varve_report::fmt;
use varve_run::jvm;
use varve_run::objects::site_plan;
use varve_sites::AnyProfile;
use varve_sites::native::{Module, Profile};
use varve_symbols::Binary;
use varve_tier::native::site_map;

/// The limits of a program in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPart {
    /// Most fast memory of its objects, bytes; `None`: what they ask for. Generations are not limited.
    pub fast: Option<u64>,
    /// Its footprint, bytes.
    pub takes: u64,
}

/// A key of a program's entry, what is wrong there, and the remedy.
pub type Wrong = (&'static str, String, String);

/// A program that will be placed, or is. It is to live until the program has ended.
pub enum Prepared {
    /// Its objects by site.
    Sites(Box<objects::PreparedObjects>, Box<SiteMap>),
    /// Its generations.
    Generations(java::PreparedJava),
    /// Its objects; the runtime that places them writes its report here.
    Heap(PathBuf),
}

/// Adds what places a program to its command.
///
/// # Errors
/// The obstacle, and the remedy.
pub fn prepare(
    command: &mut Command,
    program: &Program,
    inside: &Inside,
    part: InPart,
    kinds: &Kinds,
    log: &Path,
) -> Result<Prepared, Wrong> {
    let key = inside.key();
    let failed = |what: String| (key, what, "take the key out to run it as it is".to_string());
    match inside.told {
        Told::Heap => Ok(Prepared::Heap(log.into())),
        Told::Generations => {
            let plan = jvm::PLANS.find(&inside.plan);
            let plan = plan.map_err(|e| failed(e.to_string()))?;
            let placing = varve_tier::java::placing(&plan.by)
                .ok_or_else(|| failed(format!("{} is not there on a machine", inside.plan)))?;
            let prepared = java::PreparedJava::new(command, placing, kinds);
            prepared
                .map(Prepared::Generations)
                .map_err(|e| failed(e.to_string()))
        }
        Told::Sites => {
            let profile = profile(program, inside)?;
            let plan = site_plan(&inside.plan).map_err(|e| failed(e.to_string()))?;
            let (map, _) = site_map(
                &profile,
                &plan,
                part.fast.unwrap_or(0),
                Some(part.takes),
                kinds.clone(),
            );
            let prepared = objects::PreparedObjects::new(command, &map, &[]);
            let prepared = prepared.map_err(|e| failed(e.to_string()))?;
            Ok(Prepared::Sites(prepared.into(), map.into()))
        }
    }
}

/// Checks a program's placement, as far as that is possible before anything runs.
pub fn check(program: &Program, inside: &Inside) -> Result<(), Wrong> {
    match (inside.told, &program.live) {
        (Told::Sites, Some(Live::Command(words))) => {
            let profile = profile(program, inside)?;
            native(program, inside, &profile, words)
        }
        (Told::Heap, Some(Live::Managed(file, _))) => heap(inside, file).map(drop),
        _ => Ok(()),
    }
}

/// A native program can be placed, and its profile is of the build that is there.
fn native(
    program: &Program,
    inside: &Inside,
    profile: &Profile,
    words: &[String],
) -> Result<(), Wrong> {
    // Placeholders, and programs that are not found, are reported elsewhere.
    let name = words.first().filter(|name| !name.contains('{'));
    let Some(file) = name.and_then(|name| objects::program_file(name.as_ref()).ok()) else {
        return Ok(());
    };
    if let Some(why) = objects::why_not_placeable(&file) {
        let what = format!("{}: {why}", file.display());
        return Err((inside.key(), what, "or take `sites` out".into()));
    }
    let own = file.canonicalize().unwrap_or(file);
    let Ok(binary) = Binary::read(&own) else {
        return Ok(());
    };
    let is_own = |m: &&Module| own.file_name().is_some_and(|n| n == m.name.as_str());
    let same = |m: &Module| m.build_id.is_empty() || m.build_id == binary.build_id();
    match profile.modules.iter().find(is_own) {
        Some(module) if !same(module) => {
            let sites = inside.sites.as_deref().unwrap_or(Path::new(""));
            let what = format!(
                "{} is a profile of another build of {}",
                sites.display(),
                own.display()
            );
            Err(("sites", what, anew(program, sites)))
        }
        _ => Ok(()),
    }
}

/// The profile that a heap plan goes by, if it is given one; refused if there is no such plan, or it needs one, or has one memory.
pub fn heap(inside: &Inside, file: &Path) -> Result<Option<Arc<varve_sites::Profile>>, Wrong> {
    let bytes = std::fs::read(file).map_err(|e| {
        (
            "managed",
            format!("{}: {e}", file.display()),
            "name a WebAssembly module".into(),
        )
    })?;
    let program = ManagedProgram::new(&file.display().to_string(), bytes);
    let sites = inside.sites.as_deref();
    let known = sites.map(|sites| program.known(sites)).transpose();
    let known = known.map_err(|what| {
        let remedy = format!(
            "make one with `varve profile -o FILE.sites {}`",
            file.display()
        );
        ("sites", what, remedy)
    })?;
    let plan = &inside.plan;
    let wrong = |what: String| {
        let remedy = "take one plan for two memories, such as kg-n, and add `sites` for one that uses a profile";
        Err(("plan", what, remedy.into()))
    };
    match varve_observed::request::plans(plan, known.as_ref(), false) {
        Err(e) => wrong(e.to_string()),
        Ok(plans) if plans.len() != 1 => wrong(format!("\"{plan}\" is several plans")),
        Ok(_) if varve_observed::request::memories(plan, known.as_ref()) < 2 => wrong(format!(
            "\"{plan}\" has all in one memory, which is what `memory` is for"
        )),
        Ok(_) => Ok(known.map(Arc::new)),
    }
}

fn anew(program: &Program, sites: &Path) -> String {
    format!(
        "make one with `varve profile -o {} -- {}`",
        sites.display(),
        program.shown()
    )
}

/// The profile of a native program.
pub fn profile(program: &Program, inside: &Inside) -> Result<Profile, Wrong> {
    let file = inside.sites.as_deref().unwrap_or(Path::new(""));
    let anew = anew(program, file);
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
        Err(e) => {
            // The remedy is another one here than on a command line.
            let line = e.to_string();
            wrong(line.split("; ").next().unwrap_or_default().into(), anew)
        }
    }
}

impl Prepared {
    /// To be called now and then while the program runs.
    pub fn look(&self) {
        if let Prepared::Sites(prepared, _) = self {
            prepared.look();
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
                        "the residency of {} was not reported: see {}",
                        inside.words(),
                        log.display()
                    )],
                }
            }
        }
    }
}

fn sites(
    prepared: objects::PreparedObjects,
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
    for process in &report.ran.processes {
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
    if !report.ran.processes.is_empty() {
        let full = match spilled {
            0 => String::new(),
            _ => format!(
                " ({} of them since its {} were full)",
                size(spilled),
                size(map.budget_bytes)
            ),
        };
        lines.push(format!(
            "{}: {} asked for went to fast memory, {} to slow memory{full}; of {pages} pages looked at {elsewhere} are on a node of the other kind",
            inside.words(),
            size(fast),
            size(slow + spilled),
        ));
    }
    lines.extend(report.ran.notes);
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
