//! `varve` alone: what to do next.

use crate::ui::{Done, print};
use std::process::ExitCode;

const TEXT: &str = "\
Varve decides which memory should hold which byte: DRAM, CXL, Optane.

What can live in slow memory?
  varve run programs/dist/users.wasm --machine cxl-spr --instances 32 \\
    --fast 10% -- 200000
      a managed program, its objects under some heap plans
  varve run traces/sqlite-join.trace --machine cxl-spr --policy all
      a recorded program on a modelled server, under every page policy

Place it on this server
  varve machine --doctor
      what this machine lets Varve do; then varve run --live --help -- COMMAND
  varve tier --pid 4711 --fast 8GiB
      hot pages to fast memory, cold pages to slow memory, while it runs

Keep objects
  varve run programs/dist/accounts.wasm --durable accounts.region -- 1000
      objects that survive the program, and crashes of it

Plan a group of programs
  varve jobs plan examples/group1.toml --machine optane-6230n
      which memory, threads and order each program should have

Repeat a paper
  varve study list
      published results beside ours, claim by claim

Words that are new: varve explain plan pima, varve explain policy static,
varve explain machine cxl-spr. varve COMMAND --help has examples.
The book is in docs/; begin with docs/start.md.";

/// The same for `--help`, above the commands.
pub fn questions() -> &'static str {
    TEXT.split("\n\nWords that").next().unwrap_or(TEXT)
}

pub fn start() -> Done {
    print(TEXT);
    Ok(ExitCode::SUCCESS)
}
