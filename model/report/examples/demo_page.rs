//! A page with every kind of chart, from made-up data: only to be viewed, nothing in it was measured.
//!
//!     cargo run -p varve-report --example demo_page -- FOLDER
//!
//! writes `study.html` and `runs.html` into FOLDER (the current one by default).

#[path = "../tests/it/sample.rs"]
mod sample;

use std::path::PathBuf;
use varve_report::{Error, html, write_atomically};

fn main() -> Result<(), Error> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or(".".into()));
    let pages = [
        ("study.html", html::study(&sample::study())?),
        ("runs.html", html::runs(&sample::report())?),
    ];
    for (name, page) in pages {
        let path = folder.join(name);
        write_atomically(&path, page.as_bytes())?;
        println!("{}", path.display());
    }
    Ok(())
}
