//! The command line of Varve. Thin: every command is a call into a library crate and a table.

/// As the standard one, which panics where standard error is full or gone: then no reader is left, and only the exit code reports it.
macro_rules! eprintln {
    ($($what:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($what)*);
    }};
}

mod args;
mod cmd;
mod sweep;
mod ui;

use args::{Args, Command, Explained};
use clap::Parser;
use std::process::ExitCode;
use ui::Failure;

fn main() -> ExitCode {
    let args = Args::try_parse().unwrap_or_else(|e| ui::usage(&e));
    let done = match args.command {
        None => cmd::start::start(),
        Some(Command::Run(a)) => cmd::run::run(&a),
        Some(Command::Build(a)) => cmd::build::build(&a),
        Some(Command::Profile(a)) => cmd::profile::profile(&a),
        Some(Command::Sites(a)) => cmd::sites::sites(&a),
        Some(Command::Top(a)) => cmd::top::top(&a),
        Some(Command::Durable(a)) => cmd::durable::durable(&a.command),
        Some(Command::Trace(a)) => cmd::trace::trace(&a),
        Some(Command::Cc(a)) => cmd::cc::cc(varve_trace::host::Language::C, &a.arguments),
        Some(Command::Cxx(a)) => cmd::cc::cc(varve_trace::host::Language::Cpp, &a.arguments),
        Some(Command::Machine(a)) => cmd::machine::machine(&a),
        Some(Command::Tier(a)) => cmd::tier::tier(&a),
        Some(Command::Jobs(a)) => cmd::jobs::jobs(&a),
        Some(Command::Explain(a)) => cmd::explain::explain(&a),
        Some(Command::Policy(a)) => cmd::explain::or_list(Explained::Policy, &a),
        Some(Command::Plan(a)) => cmd::explain::or_list(Explained::Plan, &a),
        Some(Command::Workload(a)) => cmd::list::workloads(&a),
        Some(Command::Serve(a)) => cmd::serve::serve(&a),
        Some(Command::Ycsb(a)) => cmd::ycsb::ycsb(&a),
        Some(Command::Study(a)) => cmd::study::study(&a),
        Some(Command::Sweep(a)) => cmd::sweep::sweep(&a),
        Some(Command::Completions { shell }) => cmd::installed::completions(shell),
        Some(Command::Man { folder }) => cmd::installed::man(&folder),
    };
    match done.and_then(|code| ui::lost().map_or(Ok(code), Err)) {
        Ok(code) => code,
        Err(Failure::Quiet(code)) => ExitCode::from(code),
        Err(Failure::Line { code, line }) => {
            crate::ui::message!("varve: {line}");
            ExitCode::from(code)
        }
    }
}
