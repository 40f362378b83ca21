//! The kinds of runs, and the options that each takes. What is given and is not among them is refused.

use super::engine::{Engine, EngineLog};
use super::help::Help;
use super::jvm::{self, GenerationsHere, Must};
use super::model::{Marked, Model, Whole, Windows};
use super::objects::{Nodes, Objects};
use super::output::{Json, Output};
use super::page_cache::{Live, PageCache};
use super::region::{Medium, Region};
use super::sandbox::Sandbox;
use super::{Request, What};
use crate::cmd::files::is_wasm;
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches, Id};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use varve_machine::Machine;
use varve_run::request::options::{Generations, Instances, PageSize, Pages, Plans, Stale, Trays};

/// Pages of a workload, a trace or a command on a modelled machine.
#[derive(Args, Debug)]
pub struct ModelledPages {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub pages: Pages,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: PageSize,
    #[command(flatten)]
    pub windows: Windows,
}

/// Objects of a trace or a command on a modelled machine.
#[derive(Args, Debug)]
pub struct ModelledNative {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub plans: Plans,
    #[command(flatten)]
    pub stale: Stale,
    #[command(flatten)]
    pub trays: Trays,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub marked: Marked,
    #[command(flatten)]
    pub windows: Windows,
    #[command(flatten)]
    pub whole: Whole,
}

/// Generations of a Java virtual machine, as a command or a trace, on a modelled machine.
#[derive(Args, Debug)]
pub struct ModelledJava {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub generations: Generations,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub marked: Marked,
}

/// Objects of a WebAssembly program on a modelled machine.
#[derive(Args, Debug)]
pub struct ModelledObjects {
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub objects: Objects,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: PageSize,
    #[command(flatten)]
    pub instances: Instances,
    #[command(flatten)]
    pub trays: Trays,
    #[command(flatten)]
    pub engine: Engine,
    #[command(flatten)]
    pub region: Region,
    #[command(flatten)]
    pub sandbox: Sandbox,
}

/// Objects of a command on this machine.
#[derive(Args, Debug)]
pub struct LiveNative {
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub plans: Plans,
    #[command(flatten)]
    pub stale: Stale,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub nodes: Nodes,
}

/// Generations of a Java virtual machine on this machine.
#[derive(Args, Debug)]
pub struct LiveJava {
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub plan: GenerationsHere,
    #[command(flatten)]
    pub must: Must,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub nodes: Nodes,
}

/// Pages of a command on this machine.
#[derive(Args, Debug)]
pub struct LivePages {
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub cache: PageCache,
    #[command(flatten)]
    pub page: PageSize,
}

/// Objects of a WebAssembly program on this machine.
#[derive(Args, Debug)]
pub struct LiveObjects {
    #[command(flatten)]
    pub objects: Objects,
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub nodes: Nodes,
    #[command(flatten)]
    pub plain: Plain,
}

/// A WebAssembly program on this machine, with its objects wherever the system puts them.
#[derive(Args, Debug)]
pub struct Plain {
    #[command(flatten)]
    pub engine: Engine,
    #[command(flatten)]
    pub log: EngineLog,
    #[command(flatten)]
    pub region: Region,
    #[command(flatten)]
    pub medium: Medium,
    #[command(flatten)]
    pub sandbox: Sandbox,
}

/// The subject of a run on a model: a workload, a trace or a command.
#[derive(Debug)]
pub enum RunSubject {
    /// A workload or a trace.
    Named(String),
    /// A command's words.
    Command(Vec<OsString>),
}

/// A WebAssembly program and its arguments.
#[derive(Debug)]
pub struct WasmProgram {
    pub file: String,
    pub arguments: Vec<OsString>,
}

/// The part of the command line that names the subject of a run.
trait Subject: Sized {
    /// Whether it is a WebAssembly program.
    const WASM: bool = false;
    /// Reads it.
    fn of(what: What) -> Self;
}

impl Subject for RunSubject {
    fn of(what: What) -> RunSubject {
        let work = what.work.into_iter().next();
        work.map_or(RunSubject::Command(what.command), RunSubject::Named)
    }
}

impl Subject for Vec<OsString> {
    fn of(what: What) -> Vec<OsString> {
        what.command
    }
}

impl Subject for WasmProgram {
    const WASM: bool = true;
    fn of(what: What) -> WasmProgram {
        WasmProgram {
            file: what.work.into_iter().next().unwrap_or_default(),
            arguments: what.command,
        }
    }
}

/// The kinds of runs, each in one place: its subject, whether it is on a model, its name in messages about options, and how it runs.
/// The options of a kind are the structure of its name.
macro_rules! kinds {
    ($($kind:ident($subject:ty, modelled: $modelled:literal), $who:literal, $how:literal;)*) => {
        /// A run with exactly the options that it takes.
        #[derive(Debug)]
        pub enum Job {
            $($kind($subject, Box<$kind>),)*
        }

        /// The kinds of runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RunKind {
            $($kind,)*
        }

        impl RunKind {
            /// All of them.
            pub const ALL: &[RunKind] = &[$(RunKind::$kind,)*];

            /// The runs that take an option, in a few words.
            pub fn who(self) -> &'static str {
                match self { $(RunKind::$kind => $who,)* }
            }

            /// How one of them runs.
            pub fn how(self) -> &'static str {
                match self { $(RunKind::$kind => $how,)* }
            }

            /// Whether it runs on a modelled machine.
            pub fn is_modelled(self) -> bool {
                match self { $(RunKind::$kind => $modelled,)* }
            }

            /// Whether it is for WebAssembly programs.
            fn is_wasm(self) -> bool {
                match self { $(RunKind::$kind => <$subject>::WASM,)* }
            }

            /// Adds its options to a command.
            fn options(self) -> fn(Command) -> Command {
                match self { $(RunKind::$kind => $kind::augment_args,)* }
            }
        }

        impl Request {
            /// The run that is asked for.
            ///
            /// # Errors
            /// One line: there is no such run, or an option means nothing to it.
            pub fn job(&self) -> Result<Job, String> {
                let what: What = self.options()?;
                Ok(match self.kind()? {
                    $(RunKind::$kind => {
                        let options = self.only(RunKind::$kind, &what.shown())?;
                        Job::$kind(<$subject>::of(what), options)
                    })*
                })
            }
        }
    };
}

kinds! {
    ModelledPages(RunSubject, modelled: true), "pages on a model",
        "with its pages on a modelled machine";
    ModelledNative(RunSubject, modelled: true), "native programs on a model",
        "with its objects on a modelled machine";
    ModelledJava(RunSubject, modelled: true), "Java on a model",
        "with its generations on a modelled machine";
    ModelledObjects(WasmProgram, modelled: true), "WebAssembly programs on a model",
        "with its objects on a modelled machine";
    LivePages(Vec<OsString>, modelled: false), "--live",
        "with its pages on this machine";
    LiveNative(Vec<OsString>, modelled: false), "--live --sites",
        "with its objects on this machine";
    LiveJava(Vec<OsString>, modelled: false), "--live --plan for Java",
        "with the generations of its Java virtual machine on this machine";
    LiveObjects(WasmProgram, modelled: false), "WebAssembly programs with --plan",
        "with its objects on this machine";
    Plain(WasmProgram, modelled: false), "WebAssembly programs on this machine",
        "on this machine, without a plan";
}

impl Job {
    /// The options that all runs on a model have.
    pub fn modelled(&self) -> Option<(&Model, &Output)> {
        match self {
            Job::ModelledPages(_, a) => Some((&a.model, &a.output)),
            Job::ModelledNative(_, a) => Some((&a.model, &a.output)),
            Job::ModelledJava(_, a) => Some((&a.model, &a.output)),
            Job::ModelledObjects(_, a) => Some((&a.model, &a.output)),
            _ => None,
        }
    }
}

impl Job {
    /// Whether a program runs, and may print: a trace and a workload do not.
    pub fn prints(&self) -> bool {
        let named = match self {
            Job::ModelledPages(work, _)
            | Job::ModelledNative(work, _)
            | Job::ModelledJava(work, _) => matches!(work, RunSubject::Named(_)),
            _ => false,
        };
        !named
    }
}

impl What {
    /// The subject of the run, as a message names it.
    fn shown(&self) -> String {
        match (self.work.first(), self.command.first()) {
            (Some(work), _) => work.clone(),
            (None, Some(word)) => format!("-- {}", word.to_string_lossy()),
            (None, None) => String::new(),
        }
    }
}

impl RunKind {
    /// A command with the options of such runs.
    pub fn command(self, name: &'static str) -> Command {
        (self.options())(Command::new(name))
    }

    /// The names of the options that it takes.
    pub fn takes(self) -> Vec<Id> {
        ids(self.options())
    }
}

/// The names of options that `add` adds to a command.
fn ids(add: fn(Command) -> Command) -> Vec<Id> {
    let command = add(Command::new("run"));
    let ids = command.get_arguments().map(|arg| arg.get_id().clone());
    ids.collect()
}

/// Several kinds under one name, and which these are.
type Group = (&'static str, fn(&RunKind) -> bool);

/// Which runs take an option, in words: those that stand for several kinds first.
fn takers(id: &Id) -> String {
    let takes = |kind: &RunKind| kind.takes().contains(id);
    let mut kinds: Vec<RunKind> = RunKind::ALL.iter().copied().filter(takes).collect();
    let groups: [Group; 6] = [
        ("runs on a model (--machine)", |kind| kind.is_modelled()),
        ("objects on a model", |kind| {
            kind.is_modelled() && *kind != RunKind::ModelledPages
        }),
        ("native and WebAssembly programs with plans", |kind| {
            matches!(
                kind,
                RunKind::ModelledNative
                    | RunKind::ModelledObjects
                    | RunKind::LiveNative
                    | RunKind::LiveObjects
            )
        }),
        ("objects on this machine", |kind| {
            matches!(
                kind,
                RunKind::LiveNative | RunKind::LiveJava | RunKind::LiveObjects
            )
        }),
        ("WebAssembly programs", |kind| kind.is_wasm()),
        // Runs with a plan on this machine are among these: they are named once.
        ("WebAssembly programs on this machine", |kind| {
            kind.is_wasm() && !kind.is_modelled()
        }),
    ];
    let mut who: Vec<&str> = Vec::new();
    for (name, is_in) in groups {
        let mut members = RunKind::ALL.iter().filter(|kind| is_in(kind));
        if members.all(|kind| kinds.contains(kind)) {
            kinds.retain(|kind| !is_in(kind));
            who.push(name);
        }
    }
    who.extend(kinds.into_iter().map(RunKind::who));
    match who.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Request {
    /// Was an option given?
    fn given(&self, id: &Id) -> bool {
        self.matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
    }

    /// Where what is printed goes, whatever the run is.
    ///
    /// # Errors
    /// The option cannot be parsed.
    pub fn json(&self) -> Result<Json, String> {
        self.options()
    }

    /// A group of options, whatever the run is.
    pub(super) fn options<T: Args + FromArgMatches>(&self) -> Result<T, String> {
        T::from_arg_matches(&self.matches).map_err(|e| e.to_string())
    }

    /// The options of a kind of run, if no others were given.
    fn only<T: Args>(&self, kind: RunKind, what: &str) -> Result<Box<T>, String> {
        let taken = [
            ids(T::augment_args),
            ids(What::augment_args),
            ids(Help::augment_args),
        ]
        .concat();
        let all = Request::augment_args(Command::new("run"));
        let other = |id: &&Id| self.given(id) && !taken.contains(id);
        if let Some(arg) = all.get_arguments().find(|arg| other(&arg.get_id())) {
            let option = format!("--{}", arg.get_long().unwrap_or_default());
            if kind == RunKind::LivePages && RunKind::LiveNative.takes().contains(arg.get_id()) {
                return Err(format!(
                    "--live {option} places objects, and needs --sites FILE.sites: make it with `varve profile -o FILE.sites {what}`"
                ));
            }
            // Pages have plans of their own name.
            let remedy = match (kind, &*option) {
                (RunKind::ModelledPages, "--plan") => "take --policy".into(),
                _ => format!("leave {option} out"),
            };
            return Err(format!(
                "{option} is for {}; {what} runs {}: {remedy} (see --help)",
                takers(arg.get_id()),
                kind.how()
            ));
        }
        self.options().map(Box::new)
    }

    /// Whether the plan is the one that needs no profile on this machine: the program itself says which memory is hot.
    fn hints(&self) -> Result<bool, String> {
        const HINTS: &str = "hints";
        let plan = self.options::<Plans>()?.plan;
        Ok(plan.is_some_and(|plan| plan == HINTS))
    }

    /// The requested kind of run.
    ///
    /// # Errors
    /// Nothing to run, or too much.
    pub fn kind(&self) -> Result<RunKind, String> {
        let what: What = self.options()?;
        let live: Live = self.options()?;
        let machine = self.options::<Model>()?.machine;
        let planned = self.options::<Plans>()?.plan.is_some();
        let objects = [ids(Plans::augment_args), ids(Trays::augment_args)].concat();
        if let [first, .., last] = &what.work[..] {
            return Err(match on_path(first) || is_program(first) {
                true => format!(
                    "`{first}` is a program of this system: write `varve run -- {}`",
                    what.work.join(" ")
                ),
                false => format!(
                    "`{first}` and `{last}`: only one can run at a time; arguments follow `--`, as in `varve run {first} -- {last}`"
                ),
            });
        }
        Ok(match (what.work.first(), &what.command[..]) {
            (None, []) => {
                return Err(
                    "nothing to run: name a workload, a trace or a WebAssembly program, or write `varve run -- COMMAND` (see `varve run --help`)"
                        .into(),
                );
            }
            (Some(file), _) if is_wasm(file) => match machine {
                Some(_) => RunKind::ModelledObjects,
                None if planned || live.live => RunKind::LiveObjects,
                None => RunKind::Plain,
            },
            (Some(work), _) if is_program(work) => {
                return Err(format!(
                    "{work} is a program; a command follows `--`: write `varve run -- {work}`"
                ));
            }
            (Some(work), _) if live.live => {
                return Err(format!(
                    "{work}: --live runs a command, given after `--`, or a WebAssembly program, and this is neither"
                ));
            }
            (Some(work), [word, ..]) => {
                return Err(format!(
                    "{work} is not a WebAssembly program, and takes no arguments: leave `-- {}` out; for a command leave `{work}` out",
                    word.to_string_lossy()
                ));
            }
            (None, _) if live.live && self.options::<Plans>()?.profile.is_some() => {
                RunKind::LiveNative
            }
            (None, [word, ..]) if live.live && self.hints()? && !jvm::is_java(word) => {
                RunKind::LiveNative
            }
            (None, _) if live.live && planned => RunKind::LiveJava,
            (None, _) if live.live => RunKind::LivePages,
            (Some(work), _) if !is_trace(work) => RunKind::ModelledPages,
            _ if ids(Pages::augment_args).iter().any(|id| self.given(id)) => RunKind::ModelledPages,
            // A machine whose fast memory is a cache of the slow one has no place for an object: pages alone differ there.
            _ if machine.as_deref().is_some_and(is_cached)
                && !objects.iter().any(|id| self.given(id)) =>
            {
                RunKind::ModelledPages
            }
            (Some(trace), _) if jvm::is_of_java(trace)? => RunKind::ModelledJava,
            (None, [word, ..]) if jvm::is_java(word) => RunKind::ModelledJava,
            _ => RunKind::ModelledNative,
        })
    }
}

/// Is it a trace's file?
fn is_trace(work: &str) -> bool {
    matches!(varve_run::Work::parse(work), Ok(varve_run::Work::Trace(_)))
}

/// Is it a file that the system runs: a program, or a script that names its interpreter?
fn is_program(file: &str) -> bool {
    let mut begins = [0; 4];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut begins));
    read.is_ok() && (begins == *b"\x7fELF" || begins.starts_with(b"#!"))
}

/// Is there a machine of this name, with DRAM as a cache?
fn is_cached(machine: &str) -> bool {
    let machine = Machine::load(machine);
    machine.is_ok_and(|m| m.dram_cache.is_some() || varve_run::has_one_memory(&m))
}

/// Is there a command of this name?
pub fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(Path::new(name)).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, Subcommand};

    #[derive(Parser, Debug)]
    struct Line {
        #[command(subcommand)]
        command: Words,
    }

    #[derive(Subcommand, Debug)]
    enum Words {
        #[command(disable_help_flag = true)]
        Run(Request),
    }

    fn job(words: &[&str]) -> Result<Job, String> {
        let all = ["varve", "run"].iter().chain(words);
        let Words::Run(request) = Line::try_parse_from(all)
            .map_err(|e| e.to_string())?
            .command;
        request.job()
    }

    /// A trace that is there.
    const TRACE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../traces/sqlite-join.trace"
    );

    /// Words that ask for each kind of run.
    const ASKS: [(RunKind, &[&str], &[&str]); 9] = [
        (RunKind::ModelledPages, &["gups"], &[]),
        (RunKind::ModelledNative, &[TRACE], &[]),
        (RunKind::ModelledJava, &[], &["--", "java", "X"]),
        (RunKind::ModelledObjects, &["x.wasm", "--machine", "m"], &[]),
        (RunKind::LivePages, &["--live"], &["--", "true"]),
        (
            RunKind::LiveNative,
            &["--live", "--sites", "x.sites"],
            &["--", "true"],
        ),
        (
            RunKind::LiveJava,
            &["--live", "--plan", "kg-n"],
            &["--", "java", "X"],
        ),
        (RunKind::LiveObjects, &["x.wasm", "--plan", "kg-n"], &[]),
        (RunKind::Plain, &["x.wasm"], &[]),
    ];

    /// The result of words and an option with a valid value.
    fn job_with(before: &[&str], arg: &clap::Arg, after: &[&str]) -> Result<Job, String> {
        let flag = format!("--{}", arg.get_long().unwrap());
        let names = arg.get_possible_values();
        let values = ["1", "auto", "none", "commit", "1s", ".", "1%"].into_iter();
        let values = values.chain(names.iter().map(|v| v.get_name()));
        let line = |value: &str| match arg.get_action().takes_values() {
            true if !arg.is_require_equals_set() => format!("{flag}={value}"),
            _ => flag.clone(),
        };
        let said = values.map(|value| {
            let option = line(value);
            let said = job(&[before, &[&option], after].concat());
            match &said {
                Err(e) if e.contains("required") => {
                    let wanted = ["--durable=f", "--instances=2"];
                    let wanted = wanted
                        .iter()
                        .find(|w| e.contains(w.split('=').next().unwrap()));
                    job(&[before, &[&option, wanted.unwrap()], after].concat())
                }
                _ => said,
            }
        });
        let mut read = said.filter(|said| !matches!(said, Err(e) if e.contains("invalid value")));
        read.next().unwrap_or_else(|| panic!("no value for {flag}"))
    }

    /// Every option with every kind of run.
    #[test]
    fn an_option_is_taken_or_refused() {
        let all = Request::augment_args(Command::new("run"));
        let what = [ids(What::augment_args), ids(Help::augment_args)].concat();
        let options = all
            .get_arguments()
            .filter(|arg| !what.contains(arg.get_id()));
        // These decide what kind of run it is.
        let pages = ids(Pages::augment_args);
        let decides = |arg: &clap::Arg| {
            let id = arg.get_id();
            ["live", "machine", "plan", "profile"].contains(&id.as_str()) || pages.contains(id)
        };
        for arg in options {
            let taken = |kind: &RunKind| kind.takes().contains(arg.get_id());
            let id = arg.get_id();
            assert!(RunKind::ALL.iter().any(taken), "no kind of run takes {id}");
            for (kind, before, after) in ASKS {
                if decides(arg) {
                    continue;
                }
                let said = job_with(before, arg, after);
                match taken(&kind) {
                    true => assert!(
                        said.as_ref().err().is_none_or(|e| e.contains("required")),
                        "{before:?} {id}: {said:?}"
                    ),
                    // Objects on this machine are placed with --sites, which decides the kind of run.
                    false => assert!(
                        said.as_ref().is_err_and(|e| {
                            e.contains(" is for ") || e.contains("needs --sites FILE.sites")
                        }),
                        "{before:?} {id}: {said:?}"
                    ),
                }
            }
        }
    }

    #[test]
    fn what_is_run_decides_what_kind_of_run_it_is() {
        for (kind, before, after) in ASKS {
            let words = [before, after].concat();
            let is = match job(&words).unwrap() {
                Job::ModelledPages(..) => RunKind::ModelledPages,
                Job::ModelledObjects(..) => RunKind::ModelledObjects,
                Job::ModelledNative(..) => RunKind::ModelledNative,
                Job::ModelledJava(..) => RunKind::ModelledJava,
                Job::LivePages(..) => RunKind::LivePages,
                Job::LiveNative(..) => RunKind::LiveNative,
                Job::LiveJava(..) => RunKind::LiveJava,
                Job::LiveObjects(..) => RunKind::LiveObjects,
                Job::Plain(..) => RunKind::Plain,
            };
            assert_eq!(is, kind, "{words:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_option_the_runs_that_take_it_and_this_run() {
        for (words, said) in [
            (
                &["x.wasm", "--scale", "2"][..],
                "--scale is for pages on a model; x.wasm runs on this machine, without a plan: leave --scale out",
            ),
            (
                &["x.wasm", "--machine", "m", "--policy", "all"],
                "--policy is for pages on a model; x.wasm runs with its objects on a modelled machine: leave --policy out",
            ),
            (
                &["gups", "--tier", "auto"],
                "--tier is for WebAssembly programs; gups runs with its pages",
            ),
            (
                &["gups", "--gc-stats"],
                "--gc-stats is for WebAssembly programs on this machine; gups",
            ),
            (
                &["x.wasm", "--nodes", "fast=0,slow=1"],
                "--nodes is for objects on this machine; x.wasm",
            ),
            (
                &["--live", "--seed", "2", "--", "true"],
                "--seed is for runs on a model (--machine); -- true runs with its pages on this machine: leave --seed out (see --help)",
            ),
            (
                &["gups", "--", "ls"],
                "gups is not a WebAssembly program, and takes no arguments: leave `-- ls` out",
            ),
            (
                &["gups", "--plan", "hotset"],
                "gups runs with its pages on a modelled machine: take --policy",
            ),
            (
                &["/bin/sh"],
                "/bin/sh is a program; a command follows `--`: write `varve run -- /bin/sh`",
            ),
            (&["a.wasm", "b.wasm"], "only one can run at a time"),
            (&["sh", "-c"], "unexpected argument"),
            (
                &["sh", "script"],
                "`sh` is a program of this system: write `varve run -- sh script`",
            ),
            (&[], "nothing to run"),
        ] {
            let error = job(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
            let long = error.split_whitespace().count();
            assert!(long < 30, "{long} words: {error}");
        }
    }

    /// Given as its default says is given, too.
    #[test]
    fn a_default_that_is_written_counts_as_given() {
        assert!(job(&["gups", "--policy", "all", "--seed", "1"]).is_ok());
        assert!(
            job(&["x.wasm", "--seed", "1"])
                .unwrap_err()
                .starts_with("--seed")
        );
    }
}
