//! What a package installs beside the program, made from the command line's own definition.

use crate::args::Args;
use crate::ui::{Done, failed, print};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;
use std::process::ExitCode;

pub fn completions(shell: Shell) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "varve", &mut text);
    print(String::from_utf8_lossy(&text).trim_end());
    Ok(ExitCode::SUCCESS)
}

pub fn man(folder: &Path) -> Done {
    let no = |e: std::io::Error| failed(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(no)?;
    clap_mangen::generate_to(Args::command(), folder).map_err(no)?;
    Ok(ExitCode::SUCCESS)
}
