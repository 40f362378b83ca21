//! `varve` alone: what to do next.

use crate::ui::{Done, print};
use std::process::ExitCode;

const TEXT: &str = "\
Varve puts every byte of a program in the right memory.

Try it:
  varve run traces/sqlite-join.trace --policy all
      a recorded program on a modelled server, under every page policy
  varve run --machine cxl-spr --policy all -- COMMAND
      any program, traced while it runs (Debian: apt install qemu-user)
  varve run gups:hot=10% --policy random,static,dynamic
      a workload that is built in (varve workload lists them)
  varve profile programs/dist/graph.wasm -o graph.sites -- pagerank
      what a managed program makes where; varve sites graph.sites shows it
  varve run --live --bins 48GiB -- COMMAND
      place a program's pages on this machine, without a kernel patch

Look around:
  varve machine list        machines; varve machine --doctor: this one
  varve policy              page policies and their parameters
  varve plan                heap plans and their parameters
  varve study johnny-cache  a paper's experiments, published beside ours

varve COMMAND --help has examples. The book is in docs/.";

pub fn start() -> Done {
    print(TEXT);
    Ok(ExitCode::SUCCESS)
}
