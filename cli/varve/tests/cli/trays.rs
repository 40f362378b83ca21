//! Heap plans as colours on a machine with one memory: what is printed, and what is refused.

use crate::common::{typed, varve};
use std::fs;
use std::path::Path;

fn program(name: &str) -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    format!("{folder}/../../programs/dist/{name}.wasm")
}

/// The issue's own command: time and energy of plans that know hot and cold, each with its DIMMs.
#[test]
fn plans_are_compared_in_time_and_energy() {
    let trees = program("trees");
    let run = format!("run {trees} --machine haswell-2620v3 --plan all -- 10");
    let run = typed(&run);
    let said = varve(&run).well();
    for what in [
        "dram",
        "knapsack",
        "sampled",
        "energy",
        "CPU +",
        "DIMMs used",
        "DIMMs of the first socket",
        "Advice",
    ] {
        assert!(
            said.out.contains(what),
            "{what} is missing in\n{}",
            said.out
        );
    }
    assert!(
        said.err.contains("profiled this run's own input"),
        "{}",
        said.err
    );
    let mut json = run.to_vec();
    json.insert(2, "--json");
    let json = varve(&json).well().json();
    let runs = json["runs"].as_array().unwrap();
    for r in runs {
        let hot: u64 = r["trays"]["dimms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["hot_bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(hot, r["fast_bytes"].as_u64().unwrap(), "{}", r["plan"]);
        assert!(r["energy_j"].as_f64().unwrap() > 0.0 && r["cpu_j"].as_f64().unwrap() > 0.0);
    }
    let of = |plan: &str| runs.iter().find(|r| r["plan"] == plan).unwrap();
    assert!(of("knapsack")["energy_j"].as_f64() < of("dram")["energy_j"].as_f64());
}

#[test]
fn a_limit_adds_dimms_and_moves_pages() {
    let (trees, folder) = (program("trees"), tempfile::tempdir().unwrap());
    let said = varve(&[
        "run",
        &trees,
        "--machine",
        "haswell-2620v3",
        "--plan",
        "knapsack",
        "--profile",
        &profile(folder.path()),
        "--trays",
        "limit=1MiB,tick=100us",
        "--json",
        "--",
        "12",
    ])
    .well()
    .json();
    let trays = &said["runs"][0]["trays"];
    assert!(trays["overflows"].as_u64().unwrap() > 0, "{trays}");
    assert!(trays["remapped_bytes"].as_u64().unwrap() > 0, "{trays}");
}

/// A profile in which all sites are hot: it knows none.
fn profile(folder: &Path) -> String {
    let path = folder.join("hot.sites");
    let text = r#"{"format": "varve sites", "version": 1, "program": "trees.wasm", "sites": []}"#;
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

/// A workload with 1 GiB of hot addresses, and DIMMs as they are told.
fn with_map(map: &str) -> crate::common::Said {
    let policy = format!("trays:hot=0+1GiB,map={map}");
    varve(&format!(
        "run stream:threads=1,bytes=256MiB,passes=1 --machine haswell-2620v3 \
         --scale 64 --policy {policy} --json"
    ))
}

#[test]
fn a_dimm_map_is_all_of_the_memory_and_nothing_twice() {
    // Both sockets have 64 GiB on four DIMMs.
    let whole: Vec<String> = (0..8u64).map(|i| format!("{:#x}+16GiB", i << 34)).collect();
    let run = &with_map(&whole.join("/")).well().json()["runs"][0];
    assert_eq!(
        run["policy"].as_str().map(|p| &p[..5]),
        Some("trays"),
        "{run}"
    );
    with_map("0+16GiB/0x400000000+16GiB").refuses(
        2,
        &[
            "does not cover the memory",
            "from 0x800000000",
            "BASE+BYTES",
        ],
    );
    let hole = [&whole[..5], &whole[6..]].concat().join("/");
    with_map(&hole).refuses(2, &["does not cover", "17179869184 B from 0x1400000000"]);
    let more = format!("{}/0x2000000000+16GiB", whole.join("/"));
    with_map(&more).refuses(2, &["does not fit the memory", "0x2000000000"]);
    with_map("0+16GiB/0+16GiB").refuses(2, &["the DIMM map"]);
    with_map("0-16GiB").refuses(2, &["map=0-16GiB", "BASE+BYTES"]);
    with_map("").refuses(2, &["`map=`: must be", "BASE+BYTES"]);
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let trees = program("trees");
    let on = |machine: &str, rest: &[&str]| {
        let mut words = vec!["run", &trees, "--machine", machine];
        words.extend(rest);
        words.extend(["--", "6"]);
        varve(&words)
    };
    let haswell = |rest: &[&str]| on("haswell-2620v3", rest);
    let folder = tempfile::tempdir().unwrap();
    let profile = profile(folder.path());
    let knapsack = |plan: &str| haswell(&["--plan", plan, "--profile", &profile]);
    knapsack("knapsack:capacity=0").refuses(2, &["a capacity of 0", "at most 1"]);
    knapsack("knapsack:capacity=1.5").refuses(2, &["`capacity=1.5`", "from 0 to 1"]);
    haswell(&["--plan", "sampled:cool=0s"]).refuses(2, &["cool=0s", "above 0"]);
    haswell(&["--plan", "dram", "--trays", "hot=5"]).refuses(2, &["5 hot DIMMs", "has 4"]);
    haswell(&["--trays", "hot=none"]).refuses(2, &["hot=none", "a whole number from 1 to 64"]);
    haswell(&["--trays", "colour=blue"]).refuses(2, &["colour", "hot, limit, model"]);
    haswell(&["--trays", "model=9/8"]).refuses(2, &["8 GB/s for 2 DIMMs"]);
    for hot in ["hot=1", "hot=2"] {
        on("optane-6242", &["--plan", "kg-n", "--trays", hot])
            .refuses(2, &["has slow memory", "haswell-2620v3"]);
    }

    // Counts that overflow.
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let site = |nth: u32| {
        format!(
            r#"{{"function": "f", "type": "T", "nth": {nth}, "offset": 1, "objects": 1, "bytes": 8, "survivors": 0, "survived_bytes": 0,
                "reads": {}, "writes": 0, "old_reads": 0, "old_writes": 0, "accesses": []}}"#,
            u64::MAX / 2 + 1
        )
    };
    let text = format!(
        r#"{{"format": "varve sites", "version": 1, "program": "trees.wasm", "sites": [{}, {}]}}"#,
        site(0),
        site(1)
    );
    fs::write(file("huge.sites"), text).unwrap();
    varve(&["sites", &file("huge.sites"), "--heuristic", "knapsack"])
        .refuses(2, &["more than can be counted"]);

    // A machine without energy data, and one whose channels are interleaved.
    let toml = varve(&["machine", "show", "haswell-2620v3", "--toml"])
        .well()
        .out;
    let without = |name: &str, change: &dyn Fn(&str) -> Option<String>| {
        let lines = toml.lines().filter_map(change);
        let text = lines
            .collect::<Vec<_>>()
            .join("\n")
            .replace("name = \"haswell-2620v3\"", &format!("name = \"{name}\""));
        fs::write(file(&format!("{name}.toml")), text).unwrap();
        file(&format!("{name}.toml"))
    };
    let power = [
        "vdd",
        "devices",
        "idd",
        "register",
        "io_nj",
        "[dram.power]",
        "\"dram.power.",
        "\"dram.power\"",
    ];
    let dark = without("dark", &|line| {
        (!power.iter().any(|p| line.starts_with(p))).then(|| line.to_string())
    });
    for plan in ["sampled", "all"] {
        on(&dark, &["--plan", plan])
            .refuses(2, &["machine `dark` has no power parameters", "dram.power"]);
    }
    let woven = without("woven", &|line| {
        Some(line.replace("interleave_bytes = 0", "interleave_bytes = 256"))
    });
    on(&woven, &["--plan", "sampled"]).refuses(2, &["woven", "interleaved"]);
}
