//! Help of `varve run`: the few options that most runs want, those of the run that is asked for, or all.

use super::{MAIN, Request, What};
use clap::{Args, Command, ValueEnum};

/// Usage of `varve run`.
const USAGE: &str =
    "varve run [OPTIONS] WORK [-- ARGUMENTS]\n       varve run [OPTIONS] -- COMMAND";

/// The help option.
#[derive(Args, Debug)]
pub struct Help {
    /// Show the options that this run takes; with no other words, the main options; with =all, all options
    #[arg(
        short, long, value_name = "all", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "here",
        hide_possible_values = true, help_heading = MAIN
    )]
    pub help: Option<HelpOn>,
}

/// The scope of help.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpOn {
    /// The run that the other words ask for.
    Here,
    /// All runs.
    All,
}

/// Commands to begin with.
const EXAMPLES: &str = "\
Examples:
  varve run traces/sqlite-join.trace --machine optane-6230-memory-mode --policy all
  varve run gups:hot=10%,time=20s --scale 64 --policy random,static,dynamic
  varve run --machine cxl-spr --policy all -- python3 script.py
  varve run --machine optane-6242 --plan all -- java -jar service.jar
  varve run program.wasm -- ARGUMENTS
  varve run program.wasm --machine optane-6242 --plan all --instances 8 -- ARGUMENTS
  varve run program.wasm --machine optane-6242 --fast 25% -- ARGUMENTS
  varve run program.wasm --dir data:ro --env LANG --timeout 30s -- ARGUMENTS
  varve run module.wasm --invoke add -- 1 2
  varve run --live --bins 48GiB -- ./server --port 7000
  varve run program.wasm --live --plan kg-n -- ARGUMENTS
  varve run --live --plan kg-n -- java -jar service.jar";

const REST: &str = "\
A WORK shows its own options, which are more:
  varve run gups --help                         pages on a modelled machine
  varve run x.wasm --machine optane-6242 --help objects on a modelled machine
  varve run x.wasm --plan kg-n --help           objects on this machine
  varve run x.wasm --help                       a WebAssembly program as it is
  varve run --live --help -- COMMAND            pages on this machine
  varve run --help=all                          all options";

impl Request {
    /// The text of help, if it is asked for.
    ///
    /// # Errors
    /// Help on a run that there is not.
    pub fn help(&self) -> Result<Option<String>, String> {
        let Some(on) = self.options::<Help>()?.help else {
            return Ok(None);
        };
        let what: What = self.options()?;
        let nothing = what.work.is_empty() && what.command.is_empty();
        let command = match on {
            HelpOn::All => all(),
            HelpOn::Here if nothing => short(),
            HelpOn::Here => {
                let kind = self.kind()?;
                let named = what.work.first().map_or("the command", String::as_str);
                let about = format!("{named} runs {}.", kind.how());
                let command = Help::augment_args(kind.command("run")).about(about);
                usual(command).after_help("`varve run --help=all` shows the options of all runs.")
            }
        };
        Ok(Some(text(command)))
    }
}

/// Sets usage, width and examples, for every scope of help.
pub fn usual(command: Command) -> Command {
    command
        .disable_help_flag(true)
        .override_usage(USAGE)
        .max_term_width(80)
        .after_help(EXAMPLES)
}

/// All options of all runs.
pub fn all() -> Command {
    let about = "Run a program on a modelled machine, or on this one with its memory placed";
    Request::augment_args(Command::new("run")).about(about)
}

/// The options that most runs want.
fn short() -> Command {
    let main = |arg: &clap::Arg| arg.get_help_heading() == Some(MAIN) || arg.is_positional();
    let hide = |arg: clap::Arg| match main(&arg) {
        true => arg,
        false => arg.hide(true),
    };
    all().mut_args(hide).after_help(REST)
}

/// The help text of a command, as wide as help is.
fn text(mut command: Command) -> String {
    command.render_help().to_string()
}
