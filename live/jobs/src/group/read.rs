//! A group from its file.

use super::check;
use super::inside::inside;
use super::keys::{File, Keys};
use super::{Group, Live, Modelled, OnFailure, Program, Published};
use crate::error::Error;
use crate::kinds::{Class, Memory};
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use varve_machine::Problem;

/// Threads of a program that does not say how many: as in Wang et al.
const THREADS: u32 = 8;

/// Most threads of a program.
const MOST_THREADS: u64 = 1024;

/// Strategies that `[published]` may have numbers of.
const STRATEGIES: [&str; 4] = ["placement", "threads", "order", "all"];

/// Reads a group from a file. Paths in it are as seen from the file's folder.
///
/// # Errors
/// A file that cannot be read, and all problems of one that can.
pub fn load(path: &Path) -> Result<Group, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Read {
        path: path.into(),
        error,
    })?;
    let mut group = parse(&text, &path.display().to_string()).map_err(Error::Group)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    for program in &mut group.programs {
        let modelled = match &mut program.modelled {
            Some(Modelled::Trace(file) | Modelled::Managed(file, _)) => Some(file),
            _ => None,
        };
        let live = match &mut program.live {
            Some(Live::Managed(file, _)) => Some(file),
            _ => None,
        };
        let sites = program.inside.as_mut().and_then(|i| i.sites.as_mut());
        for file in [modelled, live, sites].into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }
    Ok(group)
}

/// Reads a group from text; `name` is that of its file, for messages.
///
/// # Errors
/// All problems at once, each with its line, key and remedy.
pub fn parse(text: &str, name: &str) -> Result<Group, Vec<Problem>> {
    let file = File::new(name, text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for e in &errors {
        let line = file.line(e.span().map_or(0, |s| s.start));
        let what = format!("not TOML: {}", e.message().replace('\n', " "));
        file.wrong(line, "", what, "write it as `key = value`");
    }
    if !errors.is_empty() {
        return Err(file.problems());
    }
    let keys = Keys::new(&file, root.get_ref(), "", 0..0);
    let group = group(&keys, name);
    keys.leftover();
    let mut problems = file.problems();
    problems.extend(check::check(&group));
    problems.sort_by_key(|p| p.line);
    match problems.is_empty() {
        true => Ok(group),
        false => Err(problems),
    }
}

fn group(keys: &Keys, name: &str) -> Group {
    let stem = Path::new(name).file_stem().map(|s| s.to_string_lossy());
    let stem = stem.map_or_else(|| name.to_string(), |s| s.into_owned());
    let limit = |n: Option<u64>| n.map(|n| n as u32);
    let mut group = Group {
        name: keys.text("name").unwrap_or(stem),
        about: keys.text("about").unwrap_or_default(),
        fast: keys.bytes("fast"),
        slow: keys.bytes("slow"),
        cores: limit(keys.number("cores", 1, MOST_THREADS)),
        at_once: limit(keys.number("at_once", 0, MOST_THREADS)).unwrap_or(0),
        on_failure: keys
            .word(
                "on_failure",
                &[("go-on", OnFailure::GoOn), ("stop", OnFailure::Stop)],
            )
            .unwrap_or_default(),
        programs: Vec::new(),
        published: published(keys),
        file: name.into(),
    };
    let remedy = "begin each program with `[[program]]`";
    let Some(programs) = keys.value("program") else {
        keys.file.wrong(1, "program", "there is none", remedy);
        return group;
    };
    let DeValue::Array(programs) = programs.get_ref() else {
        keys.wrong("program", "is not a list of programs", remedy);
        return group;
    };
    let mut afters = Vec::new();
    for entry in programs {
        let DeValue::Table(table) = entry.get_ref() else {
            keys.wrong("program", "is not a list of programs", remedy);
            continue;
        };
        let keys = Keys::new(keys.file, table, "program", entry.span());
        let number = group.programs.len();
        afters.push(keys.texts("after").unwrap_or_default());
        group.programs.push(program(&keys, number));
        keys.leftover();
    }
    resolve(keys.file, &mut group.programs, &afters);
    group
}

fn program(keys: &Keys, number: usize) -> Program {
    let name = keys.text("name").unwrap_or_else(|| {
        let what = format!("program {} has no name", number + 1);
        keys.wrong("name", what, "add `name = \"...\"`");
        format!("program {}", number + 1)
    });
    let workload = keys.text("workload");
    let trace = keys.text("trace");
    if workload.is_some() && trace.is_some() {
        let remedy = "on the model it is one of both: remove the other";
        keys.wrong("trace", "is given together with `workload`", remedy);
    }
    if let Some(line) = &workload
        && let Err(e) = varve_workloads::registry::parse(line)
    {
        keys.wrong("workload", e.to_string(), "see `varve workload`");
    }
    let command = keys.texts("command");
    if command.as_ref().is_some_and(Vec::is_empty) {
        keys.wrong("command", "is empty", "write [\"./program\", \"argument\"]");
    }
    let managed = keys.text("managed");
    let arguments = keys.texts("arguments");
    if managed.is_none() && arguments.is_some() {
        let remedy = "they go with `managed`; those of a command are in its list";
        keys.wrong("arguments", "belong to nothing", remedy);
    }
    if managed.is_some() && command.is_some() {
        let remedy = "on this machine it is one of both: remove the other";
        keys.wrong("managed", "is given together with `command`", remedy);
    }
    let managed = managed.map(|file| (PathBuf::from(file), arguments.unwrap_or_default()));
    let modelled = match (workload, trace, &managed) {
        (Some(line), ..) => Some(Modelled::Workload(line)),
        (_, Some(file), _) => Some(Modelled::Trace(file.into())),
        (None, None, Some((file, words))) => Some(Modelled::Managed(file.clone(), words.clone())),
        (None, None, None) => None,
    };
    let threads = keys.number("threads", 1, MOST_THREADS).map(|n| n as u32);
    if managed.is_some() && threads.is_some_and(|t| t > 1) {
        let remedy = "a WebAssembly program has one: take `threads` out";
        keys.wrong("threads", "is more than one", remedy);
    }
    let usual = if managed.is_some() { 1 } else { THREADS };
    let live = match (command, managed) {
        (Some(words), _) => Some(Live::Command(words)),
        (None, m) => m.map(|(file, words)| Live::Managed(file, words)),
    };
    if modelled.is_none() && live.is_none() {
        let remedy = "give it `workload` or `trace` (for a model), `command` (for this machine), or `managed` (for both)";
        keys.wrong(
            "name",
            format!("program `{name}` has nothing to run"),
            remedy,
        );
    }
    let time = keys.text("time_limit").and_then(|t| {
        let parsed = seconds(&t);
        if parsed.is_none() {
            keys.wrong(
                "time_limit",
                format!("`{t}` is not a time"),
                "write it as \"90s\", \"10min\" or \"2h\"",
            );
        }
        parsed
    });
    let memory = keys.word("memory", &[("fast", Memory::Fast), ("slow", Memory::Slow)]);
    Program {
        name,
        inside: inside(keys, modelled.as_ref(), live.as_ref(), memory),
        modelled,
        live,
        threads: threads.unwrap_or(usual),
        memory,
        bytes: keys.bytes("bytes"),
        class: keys.word("class", &Class::ALL.map(|c| (c.name(), c))),
        write_intensive: keys.flag("write_intensive"),
        after: Vec::new(),
        time_limit_s: time,
        env: environment(keys),
        line: keys.line,
    }
}

/// Names in `after` -> numbers.
fn resolve(file: &File, programs: &mut [Program], afters: &[Vec<String>]) {
    let names: Vec<String> = programs.iter().map(|p| p.name.clone()).collect();
    for (program, after) in programs.iter_mut().zip(afters) {
        for name in after {
            match names.iter().position(|n| n == name) {
                Some(i) => program.after.push(i),
                None => {
                    let near = varve_spec::nearest(name, names.iter().map(String::as_str));
                    let remedy = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("there are {}", names.join(", ")),
                    };
                    let what = format!(
                        "`{}` waits for `{name}`, which is not in the group",
                        program.name
                    );
                    file.wrong(program.line, "program.after", what, remedy);
                }
            }
        }
    }
}

/// `90s`, `10min`, `2h`, more than 0.
fn seconds(text: &str) -> Option<f64> {
    let ns = varve_spec::written::nanoseconds(text)?;
    (ns > 0).then_some(ns as f64 / 1e9)
}

fn environment(keys: &Keys) -> Vec<(String, String)> {
    let Some(value) = keys.value("env") else {
        return Vec::new();
    };
    let remedy =
        "write { NAME = \"value\" }; {threads}, {memory}, {nodes} and {cpus} are filled in";
    let DeValue::Table(table) = value.get_ref() else {
        keys.wrong("env", "is not a table", remedy);
        return Vec::new();
    };
    let inner = Keys::new(keys.file, table, "program.env", value.span());
    let mut env = Vec::new();
    for (name, value) in inner.all() {
        let Some(text) = value.as_str() else {
            inner.wrong(name, "is not a string", remedy);
            continue;
        };
        if let Some(unknown) = unknown_template(text) {
            inner.wrong(name, format!("`{{{unknown}}}` is not known"), remedy);
        }
        if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
            inner.wrong(name, "cannot be a variable", remedy);
        }
        env.push((name.to_string(), text.to_string()));
    }
    env
}

/// The first word in braces that is not filled in.
fn unknown_template(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}')? + open;
        let word = &rest[open + 1..close];
        if !["threads", "memory", "nodes", "cpus"].contains(&word) {
            return Some(word.into());
        }
        rest = &rest[close + 1..];
    }
    None
}

fn published(keys: &Keys) -> Published {
    let mut published = Published::default();
    let Some(value) = keys.value("published") else {
        return published;
    };
    let DeValue::Table(table) = value.get_ref() else {
        keys.wrong("published", "is not a table", "write it as `[published]`");
        return published;
    };
    let inner = Keys::new(keys.file, table, "published", value.span());
    published.source = inner.text("source").unwrap_or_else(|| {
        inner.wrong(
            "source",
            "is missing",
            "say who measured it, and where it is printed",
        );
        String::new()
    });
    for strategy in STRATEGIES {
        let Some(value) = inner.value(strategy) else {
            continue;
        };
        let number = match value.get_ref() {
            DeValue::Integer(n) => n.as_str().parse::<f64>().ok(),
            DeValue::Float(n) => n.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match number.filter(|n| n.is_finite() && *n < 100.0) {
            Some(n) => published.saved.push((strategy.into(), n)),
            None => inner.wrong(
                strategy,
                "is not a share of the time",
                "write the percent of the baseline's time that it saved, such as 57.6",
            ),
        }
    }
    inner.leftover();
    published
}
