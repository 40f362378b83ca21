//! Runs a program with its pages placed: `live CACHE_MIB 4k|2m|count COMMAND...`.

use std::ffi::OsString;
use varve_live::{LiveOptions, PageSize, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [cache_mib, pages, command @ ..] = arguments.as_slice() else {
        return Err("usage: live CACHE_MIB 4k|2m|count COMMAND...".into());
    };
    let mut options = LiveOptions::new(cache_mib.to_string_lossy().parse::<u64>()? << 20);
    options.pages = if pages == "2m" {
        PageSize::Huge
    } else {
        PageSize::Base
    };
    options.count_only = pages == "count";
    println!("{:#?}", run(command, &options)?);
    Ok(())
}
