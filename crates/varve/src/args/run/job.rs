//! The kinds of runs, and the options that each takes. What is given and is not among them is refused.

use super::engine::{Engine, EngineLog};
use super::help::Help;
use super::jvm::{self, Generations, GenerationsHere, Must};
use super::model::{Marked, Model, PageSize, Windows};
use super::objects::{Instances, Nodes, Objects, Plans, Stale, Trays};
use super::output::{Json, Output};
use super::page_cache::{Live, PageCache};
use super::pages::Pages;
use super::region::{Medium, Region};
use super::sandbox::Sandbox;
use super::{Request, What};
use crate::cmd::files::is_wasm;
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches, Id};
use std::ffi::OsString;
use std::path::Path;
use varve_machine::Machine;

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

/// What has pages.
#[derive(Debug)]
pub enum Work {
    /// A workload or a trace.
    Named(String),
    /// A command's words.
    Command(Vec<OsString>),
}

/// A WebAssembly program and its arguments.
#[derive(Debug)]
pub struct Program {
    pub file: String,
    pub arguments: Vec<OsString>,
}

/// A run with exactly the options that it takes.
#[derive(Debug)]
pub enum Job {
    ModelledPages(Work, Box<ModelledPages>),
    ModelledNative(Work, Box<ModelledNative>),
    ModelledJava(Work, Box<ModelledJava>),
    LivePages(Vec<OsString>, Box<LivePages>),
    LiveNative(Vec<OsString>, Box<LiveNative>),
    LiveJava(Vec<OsString>, Box<LiveJava>),
    ModelledObjects(Program, Box<ModelledObjects>),
    LiveObjects(Program, Box<LiveObjects>),
    Plain(Program, Box<Plain>),
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

/// The kinds of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ModelledPages,
    ModelledNative,
    ModelledJava,
    ModelledObjects,
    LivePages,
    LiveNative,
    LiveJava,
    LiveObjects,
    Plain,
}

/// A kind of run in words, and its options.
struct About {
    /// What is run so.
    who: &'static str,
    /// How one of them runs.
    how: &'static str,
    /// Whether it is for WebAssembly programs.
    wasm: bool,
    /// Adds its options to a command.
    options: fn(Command) -> Command,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::ModelledPages,
        Kind::ModelledNative,
        Kind::ModelledJava,
        Kind::ModelledObjects,
        Kind::LivePages,
        Kind::LiveNative,
        Kind::LiveJava,
        Kind::LiveObjects,
        Kind::Plain,
    ];

    fn about(self) -> About {
        match self {
            Kind::ModelledPages => About {
                who: "runs of pages on a modelled machine",
                how: "with its pages on a modelled machine",
                wasm: false,
                options: ModelledPages::augment_args,
            },
            Kind::ModelledNative => About {
                who: "traces and commands without --policy, on a machine with two memories",
                how: "with its objects on a modelled machine",
                wasm: false,
                options: ModelledNative::augment_args,
            },
            Kind::ModelledJava => About {
                who: "Java virtual machines (-- java ..., or a trace of one) without --policy, on a machine with two memories",
                how: "with its generations on a modelled machine",
                wasm: false,
                options: ModelledJava::augment_args,
            },
            Kind::ModelledObjects => About {
                who: "WebAssembly programs on a modelled machine (--machine)",
                how: "with its objects on a modelled machine",
                wasm: true,
                options: ModelledObjects::augment_args,
            },
            Kind::LivePages => About {
                who: "commands with their pages on this machine (--live)",
                how: "with its pages on this machine",
                wasm: false,
                options: LivePages::augment_args,
            },
            Kind::LiveNative => About {
                who: "commands with their objects on this machine (--live --sites)",
                how: "with its objects on this machine",
                wasm: false,
                options: LiveNative::augment_args,
            },
            Kind::LiveJava => About {
                who: "Java virtual machines with their generations on this machine (--live --plan)",
                how: "with the generations of its Java virtual machine on this machine",
                wasm: false,
                options: LiveJava::augment_args,
            },
            Kind::LiveObjects => About {
                who: "WebAssembly programs on this machine with a heap plan (--plan)",
                how: "with its objects on this machine",
                wasm: true,
                options: LiveObjects::augment_args,
            },
            Kind::Plain => About {
                who: "WebAssembly programs on this machine",
                how: "on this machine, without a heap plan",
                wasm: true,
                options: Plain::augment_args,
            },
        }
    }

    /// What is run so.
    pub fn who(self) -> &'static str {
        self.about().who
    }

    /// Whether it runs on a modelled machine.
    pub fn is_modelled(self) -> bool {
        matches!(
            self,
            Kind::ModelledPages | Kind::ModelledNative | Kind::ModelledJava | Kind::ModelledObjects
        )
    }

    /// How one of them runs.
    pub fn how(self) -> &'static str {
        self.about().how
    }

    /// A command with the options of such runs.
    pub fn command(self, name: &'static str) -> Command {
        (self.about().options)(Command::new(name))
    }

    /// The names of the options that it takes.
    pub fn takes(self) -> Vec<Id> {
        ids(self.about().options)
    }
}

/// The names of options that `add` adds to a command.
fn ids(add: fn(Command) -> Command) -> Vec<Id> {
    let command = add(Command::new("run"));
    let ids = command.get_arguments().map(|arg| arg.get_id().clone());
    ids.collect()
}

/// Which runs take an option, in words.
fn takers(id: &Id) -> String {
    let takes = |kind: &Kind| kind.takes().contains(id);
    let wasm = |kind: &Kind| kind.about().wasm;
    let mut kinds: Vec<Kind> = Kind::ALL.into_iter().filter(takes).collect();
    let mut who: Vec<&str> = Vec::new();
    if Kind::ALL.into_iter().filter(wasm).all(|kind| takes(&kind)) {
        kinds.retain(|kind| !wasm(kind));
        who.push("WebAssembly programs");
    }
    // What runs with a plan here runs here: it is said once.
    if kinds.contains(&Kind::Plain) {
        kinds.retain(|kind| *kind != Kind::LiveObjects);
    }
    who.extend(kinds.into_iter().map(Kind::who));
    who.join(" or ")
}

impl Request {
    /// Was an option given?
    fn given(&self, id: &Id) -> bool {
        self.matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
    }

    /// A group of options, whatever the run is.
    pub(super) fn options<T: Args + FromArgMatches>(&self) -> Result<T, String> {
        T::from_arg_matches(&self.matches).map_err(|e| e.to_string())
    }

    /// The options of a kind of run, if no others were given.
    fn only<T: Args>(&self, kind: Kind, what: &str) -> Result<Box<T>, String> {
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
            return Err(format!(
                "{option} is for {}; {what} runs {}: leave {option} out (the same command with --help shows what it takes)",
                takers(arg.get_id()),
                kind.how()
            ));
        }
        self.options().map(Box::new)
    }

    /// What kind of run is asked for.
    ///
    /// # Errors
    /// Nothing to run, or too much.
    pub fn kind(&self) -> Result<Kind, String> {
        let what: What = self.options()?;
        let live: Live = self.options()?;
        let machine = self.options::<Model>()?.machine;
        let planned = self.options::<Plans>()?.plan.is_some();
        let objects = [ids(Plans::augment_args), ids(Trays::augment_args)].concat();
        if let [first, .., last] = &what.work[..] {
            return Err(match on_path(first) {
                true => format!(
                    "`{first}` is a command of this system: write `varve run -- {}`",
                    what.work.join(" ")
                ),
                false => format!(
                    "`{first}` and `{last}`: one thing is run at a time; arguments stand after `--`, as in `varve run {first} -- {last}`"
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
                Some(_) => Kind::ModelledObjects,
                None if planned || live.live => Kind::LiveObjects,
                None => Kind::Plain,
            },
            (Some(work), _) if live.live => {
                return Err(format!(
                    "{work}: --live runs a command of this machine, given after `--`, or a WebAssembly program, and this is neither"
                ));
            }
            (Some(work), [word, ..]) => {
                return Err(format!(
                    "{work} is no WebAssembly program, and takes no arguments: leave `-- {}` out; for a command leave `{work}` out",
                    word.to_string_lossy()
                ));
            }
            (None, _) if live.live && self.options::<Plans>()?.profile.is_some() => {
                Kind::LiveNative
            }
            (None, _) if live.live && planned => Kind::LiveJava,
            (None, _) if live.live => Kind::LivePages,
            (Some(work), _) if !is_trace(work) => Kind::ModelledPages,
            _ if ids(Pages::augment_args).iter().any(|id| self.given(id)) => Kind::ModelledPages,
            // A machine whose fast memory is a cache of the slow one has no place for an object: pages alone differ there.
            _ if machine.as_deref().is_some_and(is_cached)
                && !objects.iter().any(|id| self.given(id)) =>
            {
                Kind::ModelledPages
            }
            (Some(trace), _) if jvm::is_of_java(trace) => Kind::ModelledJava,
            (None, [word, ..]) if jvm::is_java(word) => Kind::ModelledJava,
            _ => Kind::ModelledNative,
        })
    }

    /// The run that is asked for.
    ///
    /// # Errors
    /// One line: there is no such run, or an option means nothing to it.
    pub fn job(&self) -> Result<Job, String> {
        let kind = self.kind()?;
        let What { work, command } = self.options()?;
        let work = work.into_iter().next();
        let what = match &work {
            Some(work) => work.clone(),
            None => format!("-- {}", command[0].to_string_lossy()),
        };
        let program = |file: Option<String>, arguments| Program {
            file: file.unwrap_or_default(),
            arguments,
        };
        Ok(match kind {
            Kind::ModelledPages => {
                let work = work.map_or(Work::Command(command), Work::Named);
                Job::ModelledPages(work, self.only(kind, &what)?)
            }
            Kind::ModelledNative => {
                let work = work.map_or(Work::Command(command), Work::Named);
                Job::ModelledNative(work, self.only(kind, &what)?)
            }
            Kind::ModelledJava => {
                let work = work.map_or(Work::Command(command), Work::Named);
                Job::ModelledJava(work, self.only(kind, &what)?)
            }
            Kind::ModelledObjects => {
                Job::ModelledObjects(program(work, command), self.only(kind, &what)?)
            }
            Kind::LivePages => Job::LivePages(command, self.only(kind, &what)?),
            Kind::LiveNative => Job::LiveNative(command, self.only(kind, &what)?),
            Kind::LiveJava => Job::LiveJava(command, self.only(kind, &what)?),
            Kind::LiveObjects => Job::LiveObjects(program(work, command), self.only(kind, &what)?),
            Kind::Plain => Job::Plain(program(work, command), self.only(kind, &what)?),
        })
    }
}

/// Is it a trace's file?
fn is_trace(work: &str) -> bool {
    matches!(varve_run::Work::parse(work), Ok(varve_run::Work::Trace(_)))
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

    /// Words that ask for each kind of run.
    const ASKS: [(Kind, &[&str], &[&str]); 9] = [
        (Kind::ModelledPages, &["gups"], &[]),
        (Kind::ModelledNative, &["x.trace"], &[]),
        (Kind::ModelledJava, &[], &["--", "java", "X"]),
        (Kind::ModelledObjects, &["x.wasm", "--machine", "m"], &[]),
        (Kind::LivePages, &["--live"], &["--", "true"]),
        (
            Kind::LiveNative,
            &["--live", "--sites", "x.sites"],
            &["--", "true"],
        ),
        (
            Kind::LiveJava,
            &["--live", "--plan", "kg-n"],
            &["--", "java", "X"],
        ),
        (Kind::LiveObjects, &["x.wasm", "--plan", "kg-n"], &[]),
        (Kind::Plain, &["x.wasm"], &[]),
    ];

    /// What comes of words and an option with a value that it can have.
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
            let taken = |kind: &Kind| kind.takes().contains(arg.get_id());
            assert!(Kind::ALL.iter().any(taken), "nobody takes {arg}");
            for (kind, before, after) in ASKS {
                if decides(arg) {
                    continue;
                }
                let said = job_with(before, arg, after);
                match taken(&kind) {
                    true => assert!(
                        said.as_ref().err().is_none_or(|e| e.contains("required")),
                        "{before:?} {arg}: {said:?}"
                    ),
                    false => assert!(
                        said.as_ref().is_err_and(|e| e.contains(" is for ")),
                        "{before:?} {arg}: {said:?}"
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
                Job::ModelledPages(..) => Kind::ModelledPages,
                Job::ModelledObjects(..) => Kind::ModelledObjects,
                Job::ModelledNative(..) => Kind::ModelledNative,
                Job::ModelledJava(..) => Kind::ModelledJava,
                Job::LivePages(..) => Kind::LivePages,
                Job::LiveNative(..) => Kind::LiveNative,
                Job::LiveJava(..) => Kind::LiveJava,
                Job::LiveObjects(..) => Kind::LiveObjects,
                Job::Plain(..) => Kind::Plain,
            };
            assert_eq!(is, kind, "{words:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_option_the_runs_that_take_it_and_this_run() {
        for (words, said) in [
            (
                &["x.wasm", "--scale", "2"][..],
                "--scale is for runs of pages on a modelled machine; x.wasm runs on this machine, without a heap plan: leave --scale out",
            ),
            (
                &["x.wasm", "--machine", "m", "--policy", "all"],
                "--policy is for runs of pages on a modelled machine; x.wasm runs with its objects on a modelled machine",
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
                "--nodes is for commands with their objects on this machine (--live --sites) or Java virtual machines with their generations on this machine (--live --plan) or WebAssembly programs on this machine with a heap plan (--plan); x.wasm",
            ),
            (
                &["--live", "--seed", "2", "--", "true"],
                "--seed is for runs of pages on a modelled machine or",
            ),
            (
                &["gups", "--", "ls"],
                "gups is no WebAssembly program, and takes no arguments: leave `-- ls` out",
            ),
            (&["a.wasm", "b.wasm"], "one thing is run at a time"),
            (&["sh", "-c"], "unexpected argument"),
            (
                &["sh", "script"],
                "`sh` is a command of this system: write `varve run -- sh script`",
            ),
            (&[], "nothing to run"),
        ] {
            let error = job(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
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
