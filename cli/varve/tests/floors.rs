//! Crates use one another downwards: `base` below `model`, that below `live`; the engine stands on `base` alone, and is joined to the
//! rest by one library.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Floors that crates of a floor may use, besides their own.
const BELOW: [(&str, &[&str]); 5] = [
    ("base", &[]),
    ("model", &["base"]),
    ("live", &["base", "model"]),
    ("engine", &["base"]),
    ("cli", &["base", "model", "live", "engine"]),
];

/// The arrows that go another way, each with its reason.
const OTHERS: [(&str, &str, &str); 4] = [
    (
        "observed",
        "model",
        "it joins the engine to the model: runs of WebAssembly programs",
    ),
    (
        "observed",
        "live",
        "heaps on the memory nodes of this machine",
    ),
    ("studies", "*", "experiments are about all floors"),
    (
        "jobs",
        "engine",
        "a group has WebAssembly programs, which it knows through `observed` alone",
    ),
];

/// All crates: name, floor, and the crates that each depends on, for its tests alone included where `tests`.
fn crates(tests: bool) -> BTreeMap<String, (String, Vec<String>)> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = BTreeMap::new();
    for (floor, _) in BELOW {
        for entry in fs::read_dir(home.join(floor)).unwrap().flatten() {
            let Ok(text) = fs::read_to_string(entry.path().join("Cargo.toml")) else {
                continue;
            };
            let file: toml::Table = text.parse().unwrap();
            let name = |name: &str| name.trim_start_matches("varve-").to_string();
            let own = name(file["package"]["name"].as_str().unwrap());
            let mut uses = Vec::new();
            let sections: &[&str] = match tests {
                true => &["dependencies", "build-dependencies", "dev-dependencies"],
                false => &["dependencies", "build-dependencies"],
            };
            for section in sections {
                let table = file.get(*section).and_then(|s| s.as_table());
                let keys = table.into_iter().flat_map(|t| t.keys());
                uses.extend(
                    keys.filter(|key| key.starts_with("varve-"))
                        .map(|key| name(key)),
                );
            }
            all.insert(own, (floor.to_string(), uses));
        }
    }
    all
}

#[test]
fn crates_use_what_is_below_them() {
    let all = crates(false);
    assert!(all.len() > 15, "{all:?}");
    let mut wrong = Vec::new();
    for (name, (floor, uses)) in &all {
        let (_, below) = BELOW.iter().find(|(f, _)| f == floor).unwrap();
        for used in uses {
            let to = &all[used].0;
            let other = OTHERS
                .iter()
                .any(|(from, floor, _)| from == name && (*floor == to || *floor == "*"));
            if to != floor && !below.contains(&to.as_str()) && !other {
                wrong.push(format!("{floor}/{name} uses {to}/{used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_library_joins_the_engine_to_the_model() {
    let all = crates(false);
    let engine = ["heap", "durable", "runtime", "serve"];
    let model = ["machine", "pages", "trace", "workloads", "run"];
    let joins = all.iter().filter(|(_, (_, uses))| {
        let any = |of: &[&str]| uses.iter().any(|used| of.contains(&used.as_str()));
        any(&engine) && any(&model)
    });
    let joins: Vec<&str> = joins.map(|(name, _)| name.as_str()).collect();
    // The studies are experiments, and `varve` is no library.
    assert_eq!(joins, ["observed", "studies", "varve"]);
}

#[test]
fn the_engine_is_tested_without_the_model() {
    let all = crates(true);
    for name in ["heap", "durable", "runtime", "serve"] {
        let (_, uses) = &all[name];
        let outside: Vec<&String> = uses
            .iter()
            .filter(|used| !["base", "engine"].contains(&all[*used].0.as_str()))
            .collect();
        assert!(outside.is_empty(), "{name} uses {outside:?}");
        assert!(!uses.contains(&"observed".to_string()), "{name}");
    }
}
