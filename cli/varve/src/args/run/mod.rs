//! Options of `varve run` by concern, one file each; options that a request has are with the requests. [`job`] maps kinds of run to options.

pub mod engine;
pub mod help;
pub mod job;
pub mod jvm;
pub mod model;
pub mod objects;
pub mod output;
pub mod page_cache;
pub mod region;
pub mod sandbox;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use varve_run::request::options;

/// The heading of the options that most runs want. `varve run --help` shows these alone.
pub use varve_run::request::options::MAIN;

/// The subject of a run.
#[derive(Args, Debug)]
pub struct What {
    /// A workload such as `gups:bytes=96GiB` (see `varve workload`), a trace file, or a WebAssembly program
    pub work: Vec<String>,
    /// The arguments of a WebAssembly program; or, without WORK, a command
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub command: Vec<OsString>,
}

/// The command line of `varve run`. The kind of run decides which options it takes: see [`Request::job`].
#[derive(Debug)]
pub struct Request {
    matches: ArgMatches,
}

/// All options of all runs, in the order in which help shows them.
impl Args for Request {
    fn augment_args(command: Command) -> Command {
        let command = What::augment_args(help::usual(command));
        let command = model::Model::augment_args(command);
        let command = options::Pages::augment_args(command);
        let command = objects::Objects::augment_args(command);
        let command = options::Stale::augment_args(command);
        let command = page_cache::Live::augment_args(command);
        let command = output::Output::augment_args(command);
        let command = help::Help::augment_args(command);
        let command = options::PageSize::augment_args(command);
        let command = model::Marked::augment_args(command);
        let command = model::Windows::augment_args(command);
        let command = model::Whole::augment_args(command);
        let command = options::Instances::augment_args(command);
        let command = options::Trays::augment_args(command);
        let command = objects::Nodes::augment_args(command);
        let command = jvm::Must::augment_args(command);
        let command = page_cache::PageCache::augment_args(command);
        let command = engine::Engine::augment_args(command);
        let command = engine::EngineLog::augment_args(command);
        let command = region::Region::augment_args(command);
        let command = region::Medium::augment_args(command);
        sandbox::Sandbox::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Request::augment_args(command)
    }
}

impl FromArgMatches for Request {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Request, clap::Error> {
        let matches = matches.clone();
        Ok(Request { matches })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.matches = matches.clone();
        Ok(())
    }
}
