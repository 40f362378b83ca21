//! Inside of a crate, files use one another in one direction, as crates do: a type that two files need is in a third.
//!
//! A file counts as one with the files of the folder of its name, which are its parts. Circles that are there all the same are listed
//! below, each by its files. The list may only shrink: nothing is added to a circle, and one that is gone is taken out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that use each other, by crate.
const CIRCLES: &[&str] = &[
    // One thing: what is at which offset. `layout` has all of it, and says what it is at the usual alignment.
    "heap: align layout reference usual",
    // Values of programs hold on to their store, and the store hands them out.
    "runtime: api/extern_ api/func api/host api/typed api/val code/walk helpers/traps store",
    // The translator is one state with a file for each concern, so each has a field in it and methods on it. Compiled code and the
    // store that it runs in know each other's tables, and so do the helpers that it calls: they throw what compiled code catches.
    "runtime: code/signals code/walk compile/alias compile/control compile/env compile/facts compile/feedback compile/glue \
     compile/hints compile/observe compile/persist compile/resume compile/signatures compile/slot compile/translate helpers \
     helpers/calls helpers/traps store store/instance store/intervals store/sampler store/tier store/vm",
    // An exception that no function caught is an error for the host, which holds on to the object; and to hold on can fail.
    "runtime: error store/root",
    // Workloads are in the registry's list, and are entries of it.
    "workloads: apps graph gups kv nas registry splash streams tpcc",
];

/// A file's modules, from its crate on: `["model", "thread"]`.
type Module = Vec<String>;

/// All files below a folder of sources, by module, without tests.
fn sources(folder: &Path, inside: &[String], all: &mut BTreeMap<Module, PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the sources are there")
        .flatten()
    {
        let path = entry.path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let is_root = inside.is_empty() && ["lib", "main"].contains(&&*name);
        if path.is_dir() {
            sources(&path, &[inside, &[name]].concat(), all);
        } else if name == "mod" {
            all.insert(inside.to_vec(), path);
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests" && !is_root {
            all.insert([inside, &[name]].concat(), path);
        }
    }
}

/// A file's code, without its comments and its tests at the end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source is text");
    let text = text
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths in a file that begin in its own crate, with what braces hold multiplied out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in code
        .match_indices("crate::")
        .chain(code.match_indices("super::"))
    {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| is_word(c) || c == ':' || c == '$') {
            continue;
        }
        // The part of the tree that is open at each brace.
        let mut open: Vec<Vec<String>> = Vec::new();
        let mut path: Vec<String> = Vec::new();
        let mut rest = &code[at..];
        loop {
            let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            rest = &rest[word.len()..];
            if !word.is_empty() {
                path.push(word.into());
            }
            if let Some(after) = rest.strip_prefix("::") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{').filter(|_| word.is_empty()) {
                open.push(path.clone());
                rest = after.trim_start();
            } else {
                found.push(std::mem::take(&mut path));
                rest = rest.trim_start();
                // Another name for the same.
                if let Some(other) = rest.strip_prefix("as ") {
                    rest = other.trim_start_matches(is_word).trim_start();
                }
                while let Some(after) = rest.strip_prefix('}').filter(|_| !open.is_empty()) {
                    open.pop();
                    rest = after.trim_start();
                }
                match (rest.strip_prefix(','), open.last()) {
                    (Some(_), Some(prefix)) => path = prefix.clone(),
                    _ => break,
                }
                rest = rest[1..].trim_start();
            }
        }
    }
    found
}

/// The file that a path leads to, seen from another one.
fn target(from: &Module, path: &[String], all: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let mut to: Module = match path.first()?.as_str() {
        "crate" => Vec::new(),
        _ => from.clone(),
    };
    for word in path {
        match word.as_str() {
            "crate" => {}
            "super" => _ = to.pop(),
            _ => to.push(word.clone()),
        }
    }
    // The last words are items.
    while !all.contains_key(&to) {
        to.pop()?;
    }
    Some(to)
}

/// Which files use which.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

fn uses(all: &BTreeMap<Module, PathBuf>) -> Uses {
    let of = |(from, file): (&Module, &PathBuf)| {
        let to = paths(&code(file))
            .into_iter()
            .filter_map(|path| target(from, &path, all));
        // Between a file and its parts there is no direction.
        let other = to.filter(|to| !from.starts_with(to) && !to.starts_with(from));
        (from.clone(), other.collect())
    };
    all.iter().map(of).collect()
}

fn reached<'a>(from: &'a Module, uses: &'a Uses) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for to in uses.get(file).into_iter().flatten() {
            if seen.insert(to) {
                next.push(to);
            }
        }
    }
    seen
}

/// Groups of files each of which leads to all others of its group.
fn circles(uses: &Uses) -> BTreeSet<String> {
    let all: BTreeMap<&Module, BTreeSet<&Module>> = uses
        .keys()
        .map(|file| (file, reached(file, uses)))
        .collect();
    let of = |(file, to): (&&Module, &BTreeSet<&Module>)| {
        let group: Vec<String> = (to.iter().filter(|other| all[**other].contains(file)))
            .map(|other| other.join("/"))
            .collect();
        (group.len() > 1).then(|| group.join(" "))
    };
    all.iter().filter_map(of).collect()
}

#[test]
fn files_do_not_use_each_other_in_circles() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    let floors = ["base", "model", "live", "engine", "cli"];
    let floors = floors.map(|floor| fs::read_dir(home.join(floor)).expect("the floor is there"));
    for entry in floors.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        for folder in ["src", "shim"] {
            let folder = entry.path().join(folder);
            if folder.is_dir() {
                let mut all = BTreeMap::new();
                sources(&folder, &[], &mut all);
                let circles = circles(&uses(&all));
                found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
            }
        }
    }
    // A circle that lost files is a part of the one in the list.
    let is_part = |part: &str, whole: &str| {
        let files = |circle: &str| -> BTreeSet<String> {
            circle.split_whitespace().map(str::to_string).collect()
        };
        files(part).is_subset(&files(whole))
    };
    let new: Vec<&String> = (found.iter())
        .filter(|circle| !CIRCLES.iter().any(|known| is_part(circle, known)))
        .collect();
    assert!(
        new.is_empty(),
        "files use each other; put what both need in a third:\n{new:#?}"
    );
    let gone: Vec<&&str> = (CIRCLES.iter())
        .filter(|known| !found.iter().any(|circle| is_part(circle, known)))
        .collect();
    assert!(
        gone.is_empty(),
        "no longer circles, so take them out of the list:\n{gone:#?}"
    );
}

fn tree(files: &[(&str, &str)]) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut all = BTreeMap::new();
    sources(folder.path(), &[], &mut all);
    circles(&uses(&all))
}

#[test]
fn a_circle_is_found_through_braces_and_paths_and_not_through_comments_and_tests() {
    let open = [
        ("a.rs", "use crate::{b::{self, C as D}, c};"),
        ("b/mod.rs", "mod part;\n// crate::a\nfn f() {}"),
        ("b/part.rs", "use super::C;\nuse crate::d::E;"),
        (
            "c.rs",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::a::X;\n}",
        ),
        ("d.rs", ""),
    ];
    assert!(tree(&open).is_empty());
    let closed = [
        open[0],
        open[1],
        open[2],
        ("c.rs", "fn f() { super::a::g() }"),
    ];
    assert_eq!(tree(&closed), BTreeSet::from(["a c".to_string()]));
    let far = [
        open[0],
        ("b/mod.rs", "use crate::d::E;"),
        ("d.rs", "use crate::{c, a::X};"),
        ("c.rs", ""),
    ];
    assert_eq!(tree(&far), BTreeSet::from(["a b d".to_string()]));
}
