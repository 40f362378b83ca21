//! A type's name says what it is: no two public types of a crate share one, and names that crates share become fewer.
//!
//! Names that several crates have today are in `data/shared_names.txt`. The list may only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Names that a crate has several times, each time in a module that tells which is meant.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    (
        "base/sites",
        &["Frame", "Key", "Profile", "Rest", "Sampling", "Site"],
        "profiles are `native` or `java`, and have the same parts",
    ),
    (
        "model/machine",
        &["Newer"],
        "each processor's module has one, and a build has one such module",
    ),
    (
        "model/run",
        &["By", "Plan"],
        "plans are of `jvm` or of `objects`, and are used in the same way",
    ),
    (
        "python",
        &["Options"],
        "each kind of run is a module with its options",
    ),
];

/// Libraries that build scripts compile from folders of their own, to be loaded into other programs.
const LIBRARIES: [&str; 4] = [
    "live/linux/objects",
    "live/linux/shim",
    "live/linux/sites",
    "model/trace/probe",
];

/// By crate and name, the files that have a public type of the name.
type Types = BTreeMap<(String, String), Vec<String>>;

/// The names of public types in a file, without those of its tests at the end.
fn names<'text>(text: &'text str) -> Vec<&'text str> {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next();
    let name = |line: &'text str| {
        let (kind, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind);
        let name = rest
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        // The name of a type in a macro comes from whoever uses it.
        name.filter(|name| is_type && !name.is_empty())
    };
    text.unwrap_or_default().lines().filter_map(name).collect()
}

/// Adds the public types of a folder, and of those below, to what there is.
fn collect(home: &Path, folder: &str, inside: &str, all: &mut Types) {
    let own = LIBRARIES.contains(&folder);
    let inside = if own { folder } else { inside };
    for entry in fs::read_dir(home.join(folder)).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let is_other = ["tests", "benches", "examples", "target"].contains(&&*name);
        if entry.file_type().unwrap().is_dir() {
            if !is_other && !name.starts_with('.') {
                collect(home, &path, inside, all);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            for found in names(&fs::read_to_string(entry.path()).unwrap()) {
                let key = (inside.to_string(), found.to_string());
                all.entry(key).or_default().push(path.clone());
            }
        }
    }
}

fn types() -> Types {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Types::new();
    collect(&home, "python", "python", &mut all);
    for floor in ["base", "model", "live", "engine", "cli"] {
        for entry in fs::read_dir(home.join(floor)).unwrap().flatten() {
            let folder = format!("{floor}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                collect(&home, &folder, &folder, &mut all);
            }
        }
    }
    all
}

#[test]
fn no_two_public_types_of_a_crate_share_a_name() {
    let all = types();
    assert!(all.len() > 1000, "{} types", all.len());
    let exceptions: BTreeSet<(String, String)> = EXCEPTIONS
        .iter()
        .flat_map(|(inside, names, _)| {
            let key = |name: &&str| (inside.to_string(), name.to_string());
            names.iter().map(key)
        })
        .collect();
    let twice = all.iter().filter(|(_, files)| files.len() > 1);
    let twice: BTreeMap<_, _> = twice.collect();
    let new: Vec<_> = (twice.iter())
        .filter(|(key, _)| !exceptions.contains(key))
        .collect();
    assert!(
        new.is_empty(),
        "types of one crate share a name; say in the name what sets them apart:\n{new:#?}"
    );
    let gone: Vec<_> = (exceptions.iter())
        .filter(|key| !twice.contains_key(key))
        .collect();
    assert!(
        gone.is_empty(),
        "names that are there once, so take them out of the exceptions:\n{gone:#?}"
    );
}

#[test]
fn names_that_crates_share_become_fewer() {
    let all = types();
    let mut crates: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (inside, name) in all.keys() {
        crates.entry(name).or_default().push(inside);
    }
    crates.retain(|_, of| of.len() > 1);
    let listed = include_str!("data/shared_names.txt");
    let listed: Vec<&str> = listed.lines().collect();
    assert!(listed.is_sorted(), "data/shared_names.txt is not sorted");
    let new: Vec<String> = (crates.iter())
        .filter(|(name, _)| !listed.contains(name))
        .map(|(name, of)| format!("{name}: {}", of.join(", ")))
        .collect();
    assert!(
        new.is_empty(),
        "several crates have a public type of this name; choose a name that is not there yet:\n{new:#?}"
    );
    let gone: Vec<&&str> = (listed.iter())
        .filter(|name| !crates.contains_key(**name))
        .collect();
    assert!(
        gone.is_empty(),
        "names that crates no longer share, so take them out of data/shared_names.txt:\n{gone:#?}"
    );
}

#[test]
fn a_public_type_is_found_inside_of_macros_and_modules_and_not_in_tests() {
    let text = "pub struct A<T>(T);\n    pub enum B {\nstruct C;\n/// pub struct D;\npub(crate) type E = u8;\n\
                pub type F = u8;\npub struct $name;\npub fn type_g() {}\n#[cfg(test)]\nmod tests {\n    pub struct H;\n}";
    assert_eq!(names(text), ["A", "B", "F"]);
}
