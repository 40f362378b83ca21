//! Embeds every file of `machines/`, so that a new one is found by itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    // In a published crate the files lie beside this one (the link is followed when packaging); in a checkout
    // without symbolic links they are found two floors up.
    let folders = [here.join("machines"), here.join("../../machines")];
    let folder = folders.iter().find(|f| f.is_dir()).unwrap_or_else(|| {
        panic!(
            "no folder `machines` in {} or two floors up",
            here.display()
        )
    });
    println!("cargo::rerun-if-changed={}", folder.display());

    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()))
        .map(|entry| {
            entry
                .unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()))
                .path()
        })
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "no machine file (*.toml) in {}",
        folder.display()
    );

    let mut list = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let path = file
            .canonicalize()
            .unwrap_or_else(|e| panic!("cannot read {}: {e}", file.display()));
        writeln!(list, "    ({:?}, include_str!({path:?})),", stem(file))
            .expect("writing to a string");
    }
    list.push_str("]\n");
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("machines.rs");
    fs::write(&out, list).unwrap_or_else(|e| panic!("cannot write {}: {e}", out.display()));
}

fn stem(file: &Path) -> &str {
    file.file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_else(|| panic!("{}: a machine's name must be UTF-8", file.display()))
}
