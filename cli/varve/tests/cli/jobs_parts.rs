//! Programs of a group that place their own memory, and are in fast memory in part: native ones by site, Java virtual machines by
//! generation, WebAssembly programs by object. Stories whose names begin with `nodes` are of a machine with two kinds of memory;
//! `.ci/run` tells them in a guest.

use crate::common::{Said, can_trace, has, home, typed, varve};
use crate::nodes::{kinds, skip_unless_two_kinds};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SQLITE: &str = "traces/sqlite-join.trace";
const TREES: &str = "programs/dist/trees.wasm";

/// Objects that stay, and some that do not.
const SERVICE: &str = "\
public class Service {
    static byte[][] kept = new byte[96][];
    static Object last;

    public static void main(String[] words) {
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[1 << 18];
            for (int j = 0; j < kept[i].length; j += 4096) kept[i][j] = 1;
            for (int j = 0; j < 1 << 8; j++) last = new byte[1 << 10];
        }
        System.out.println(\"served\");
    }
}
";

/// Writes a group, and runs `varve jobs ACTION` on it.
fn jobs(folder: &Path, action: &str, text: &str, options: &[&str]) -> Said {
    let file = folder.join("group.toml");
    fs::write(&file, text).unwrap();
    varve(&[&["jobs", action, file.to_str().unwrap()], options].concat())
}

const MODEL: [&str; 4] = ["--machine", "optane-6230n", "--keep", "none"];

fn program(name: &str, keys: &str) -> String {
    format!("[[program]]\nname = \"{name}\"\nthreads = 1\n{keys}\n")
}

/// Seconds alone, with all in fast and all in slow memory and in part, as a profile tells.
fn alone(said: &Said) -> [f64; 3] {
    let demand = &said.json()["demands"][0];
    ["/curves/0/0", "/curves/1/0", "/part/curve/0"].map(|path| {
        let point = demand.pointer(path).unwrap_or_else(|| panic!("{demand}"));
        point["seconds"].as_f64().unwrap()
    })
}

/// It is in part in a run by placement, and takes as long as alone.
fn is_in_part(folder: &Path, text: &str) {
    let profile = jobs(folder, "profile", text, &[&MODEL[..], &["--json"]].concat()).well();
    let [fast, slow, part] = alone(&profile);
    assert!(fast < part && part < slow, "{fast} {part} {slow}");
    let options = [&MODEL[..], &["--strategy", "placement", "--json"]].concat();
    let said = jobs(folder, "run", text, &options).well();
    let json = said.json();
    let ran = &json["runs"][0]["programs"][0];
    assert_eq!(ran["in_part"], true, "{json}");
    let took = ran["end_s"].as_f64().unwrap() - ran["start_s"].as_f64().unwrap();
    assert!(took < slow, "{took} s, and {slow} s in slow memory");
    let plan = jobs(folder, "plan", text, &MODEL).well().out;
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "is in part in fast memory",
        "fast memory has room for that part",
    ] {
        assert!(plan.contains(words), "no `{words}` in {plan}");
    }
}

#[test]
fn a_recorded_native_program_has_its_hot_sites_in_fast_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let sites = scratch.path().join("sqlite.sites");
    varve(&["profile", SQLITE, "-o", sites.to_str().unwrap()]).well();
    let trace = home().join(SQLITE);
    let keys = format!("trace = \"{}\"\nsites = \"sqlite.sites\"", trace.display());
    let text = "fast = \"10MiB\"\n".to_string() + &program("sqlite", &keys);
    is_in_part(scratch.path(), &text);
}

#[test]
fn a_webassembly_program_has_its_nursery_in_fast_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let module = home().join("programs/dist/graph.wasm");
    let keys = format!(
        "managed = \"{}\"\narguments = [\"pagerank\", \"--scale\", \"13\", \"--iterations\", \"4\"]\nplan = \"kg-n\"",
        module.display()
    );
    let text = "fast = \"15MiB\"\n".to_string() + &program("pagerank", &keys);
    is_in_part(scratch.path(), &text);
}

/// The best of all plans may be one with a part, so that it is never worse than what was decided.
#[test]
fn the_oracle_tries_parts() {
    let scratch = tempfile::tempdir().unwrap();
    let module = home().join(TREES);
    let keys = format!(
        "managed = \"{}\"\narguments = [\"14\"]\nplan = \"kg-n\"",
        module.display()
    );
    let text = "fast = \"15MiB\"\n".to_string() + &program("trees", &keys);
    let options = [&MODEL[..], &["--strategy", "placement", "--oracle"]].concat();
    let said = jobs(scratch.path(), "run", &text, &options).well();
    // All in slow memory, and in part: all in fast memory does not fit.
    assert!(said.out.contains("the best of all 4 plans"), "{}", said.out);
}

#[test]
fn what_cannot_be_placed_is_one_line() {
    let scratch = tempfile::tempdir().unwrap();
    let on = |text: &str, options: &[&str]| jobs(scratch.path(), "plan", text, options);
    let trace = format!("trace = \"{}\"\n", home().join(SQLITE).display());
    on(&program("db", &(trace.clone() + "plan = \"kg-n\"")), &MODEL).refuses(
        2,
        &[
            "group.toml:1: program `db`, trace: ",
            "no Java virtual machine",
            "take `plan` out",
        ],
    );
    on(&program("db", &(trace + "sites = \"none.sites\"")), &MODEL)
        .refuses(2, &["program `db`, sites: ", "none.sites", "varve profile"]);
    let module = format!("managed = \"{}\"\n", home().join(TREES).display());
    for (plan, said) in [
        ("dram", "all in one memory"),
        ("kg-m", "kg-n"),
        ("cgz-f", "`sites`"),
    ] {
        let text = program("trees", &format!("{module}plan = \"{plan}\""));
        on(&text, &MODEL).refuses(2, &["program `trees`, plan: ", said]);
        on(&text, &["--live"]).refuses(2, &["program `trees`, plan: ", said]);
    }
    // A workload is one piece on a model, which is said before it runs.
    let text = program(
        "api",
        "workload = \"swaptions:bytes=64KiB,passes=1\"\ncommand = [\"java\", \"X\"]\nplan = \"kg-n\"",
    );
    let said = on(&text, &[&MODEL[..], &["--scale", "1"]].concat()).well();
    assert!(
        said.err.contains("api is a workload on a model"),
        "{}",
        said.err
    );
}

/// A program with a hot and a cold object, built so; none where that is not possible.
fn native(folder: &Path, name: &str, option: &str) -> Option<PathBuf> {
    if !can_trace() || !has("gcc", "gcc") {
        return None;
    }
    let program = folder.join(name);
    let source = home().join("cli/varve/tests/data/hot_part.c");
    let made = Command::new("gcc")
        .args([option, "-g", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(made.unwrap().success());
    Some(program)
}

fn profiled(program: &Path, sites: &Path) {
    let words = ["profile", "-o", sites.to_str().unwrap(), "--"];
    varve(&[&words[..], &[program.to_str().unwrap(), "1", "4"]].concat()).well();
}

/// Three services with all that is known of them, so that none runs beforehand: each has room for its part alone. None without tools.
fn three_services(folder: &Path) -> Option<String> {
    let solver = native(folder, "solver", "-O1")?;
    if !has("java", "openjdk-17-jdk-headless") || !has("javac", "openjdk-17-jdk-headless") {
        return None;
    }
    profiled(&solver, &folder.join("solver.sites"));
    let source = folder.join("Service.java");
    fs::write(&source, SERVICE).unwrap();
    let made = Command::new("javac")
        .arg("-d")
        .arg(folder)
        .arg(&source)
        .status();
    assert!(made.unwrap().success());
    let known = |bytes: &str, fast: &str| {
        format!("\nbytes = \"{bytes}\"\nclass = \"latency-sensitive\"\nfast = \"{fast}\"")
    };
    let java = format!(
        "command = [\"java\", \"-XX:+UseSerialGC\", \"-Xms8m\", \"-Xmx64m\", \"-Xmn6m\", \"-XX:TieredStopAtLevel=1\", \"-cp\", \"{}\", \"Service\"]\nplan = \"kg-n\"",
        folder.display()
    );
    let solver = format!(
        "command = [\"{}\", \"2\", \"4000\"]\nsites = \"solver.sites\"",
        solver.display()
    );
    let cache = format!(
        "managed = \"{}\"\narguments = [\"12\"]\nplan = \"kg-n\"",
        home().join(TREES).display()
    );
    Some(
        "fast = \"28MiB\"\n".to_string()
            + &program("solver", &(solver + &known("40MiB", "3MiB")))
            + &program("api", &(java + &known("64MiB", "16MiB")))
            + &program("cache", &(cache + &known("40MiB", "4MiB"))),
    )
}

/// The notes on a program.
fn notes(json: &Value, name: &str) -> String {
    let all = json["runs"][0]["notes"].as_array().unwrap();
    let of = all
        .iter()
        .filter_map(|note| note.as_str()?.strip_prefix(name)?.strip_prefix(": "));
    of.collect::<Vec<_>>().join("\n")
}

/// One node is enough to see that each is placed by its own means.
#[test]
fn three_services_share_this_machine() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(text) = three_services(scratch.path()) else {
        return;
    };
    let node = kinds().0[0];
    let nodes = format!("fast={node},slow={node}");
    let logs = scratch.path().join("logs");
    let options = format!(
        "--live --nodes {nodes} --strategy placement --json --logs {}",
        logs.display()
    );
    let options = typed(&options);
    let json = jobs(scratch.path(), "run", &text, &options).well().json();
    for (name, said) in [
        (
            "solver",
            "objects by site under hot-sites: 2 MiB asked for went to fast memory, 8",
        ),
        ("api", "its generations under kg-n: "),
        ("cache", "its objects under kg-n: nursery "),
    ] {
        let notes = notes(&json, name);
        assert!(notes.contains(said), "{name}: {notes}");
        assert!(
            notes.contains("were in fast memory, its part"),
            "{name}: {notes}"
        );
        assert!(!notes.contains("full"), "{name}: {notes}");
    }
    let api = notes(&json, "api");
    assert!(api.contains("young ") && api.contains("old "), "{api}");
    let log = fs::read_to_string(logs.join("api-placement.log")).unwrap();
    assert!(
        log.ends_with("served\n"),
        "the program's own options and output stay: {log}"
    );
}

#[test]
fn parts_are_measured_on_this_machine() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(solver) = native(scratch.path(), "solver", "-O1") else {
        return;
    };
    profiled(&solver, &scratch.path().join("solver.sites"));
    let node = kinds().0[0];
    let nodes = format!("fast={node},slow={node}");
    let keys = format!(
        "command = [\"{}\", \"2\", \"4000\"]\nsites = \"solver.sites\"\nfast = \"3MiB\"",
        solver.display()
    );
    let logs = scratch.path().join("logs");
    let options = format!("--live --nodes {nodes} --json --logs {}", logs.display());
    let options = typed(&options);
    let said = jobs(
        scratch.path(),
        "profile",
        &program("solver", &keys),
        &options,
    )
    .well();
    let demand = &said.json()["demands"][0];
    assert_eq!(demand["part"]["fast_bytes"], 3 << 20, "{demand}");
    let points = demand["part"]["curve"].as_array().unwrap();
    assert_eq!(
        points.len(),
        demand["curves"][0].as_array().unwrap().len(),
        "{demand}"
    );
    assert!(
        points
            .iter()
            .all(|point| point["seconds"].as_f64().unwrap() > 0.0)
    );

    // Another build has its calls elsewhere.
    native(scratch.path(), "solver", "-O2").unwrap();
    let options = ["--live", "--nodes", &nodes];
    jobs(scratch.path(), "run", &program("solver", &keys), &options).refuses(
        2,
        &[
            "group.toml:1: program `solver`, sites: ",
            "is a profile of another build of",
            "varve profile -o",
        ],
    );
}

/// The pages of all mappings that an object is in, by node.
fn pages(maps: &str, object: u64, bytes: u64) -> BTreeMap<u32, u64> {
    let start = |line: &&str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
    let starts = maps.lines().filter_map(|line| start(&line));
    let first = starts.filter(|at| *at <= object).max().unwrap();
    let mut pages = BTreeMap::new();
    let within = |line: &&str| start(line).is_some_and(|at| (first..object + bytes).contains(&at));
    for word in maps.lines().filter(within).flat_map(|line| line.split(' ')) {
        let count = word.strip_prefix('N').and_then(|word| word.split_once('='));
        if let Some((node, count)) = count {
            *pages.entry(node.parse().unwrap()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    pages
}

/// The nodes of a part in a note such as `young 6 MiB on node 0; old 20 MiB on node 1 and 4 KiB on node 2`.
fn nodes_of(note: &str, part: &str) -> Vec<u32> {
    let parts = note
        .split([';', '\n'])
        .map(|text| text.rsplit(": ").next().unwrap_or(text).trim());
    let found = parts
        .into_iter()
        .find_map(|text| text.strip_prefix(part)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("no {part} in {note}"));
    let nodes = found.split("on node ").skip(1);
    nodes
        .map(|text| text.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn nodes_have_each_object_and_generation_where_its_part_has_it() {
    if skip_unless_two_kinds() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let Some(text) = three_services(scratch.path()) else {
        return;
    };
    let (fast, slow) = kinds();
    let logs = scratch.path().join("logs");
    let options = format!(
        "--live --strategy placement --json --logs {}",
        logs.display()
    );
    let options = typed(&options);
    let json = jobs(scratch.path(), "run", &text, &options).well().json();
    // The native program asked the kernel itself.
    let log = fs::read_to_string(logs.join("solver-placement.log")).unwrap();
    let last = log.lines().last().unwrap();
    let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let both: Vec<u64> = last.split(' ').take(2).map(address).collect();
    for (object, bytes, wanted) in [(both[0], 2 << 20, &fast), (both[1], 8 << 20, &slow)] {
        let pages = pages(&log, object, bytes);
        assert!(
            pages.values().sum::<u64>() * 4096 >= bytes,
            "{pages:?}: {log}"
        );
        assert!(
            pages.keys().all(|node| wanted.contains(node)),
            "{pages:?}: {log}"
        );
    }
    assert!(
        notes(&json, "solver").contains(" 0 are on a node of the other kind"),
        "{json}"
    );
    for (name, part, wanted) in [
        ("api", "young", &fast),
        ("api", "old", &slow),
        ("cache", "nursery", &fast),
        ("cache", "mature 1", &slow),
    ] {
        let nodes = nodes_of(&notes(&json, name), part);
        assert!(
            !nodes.is_empty() && nodes.iter().all(|node| wanted.contains(node)),
            "{part}: {json}"
        );
    }
}
