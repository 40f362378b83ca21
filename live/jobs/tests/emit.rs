//! Plans as files for schedulers: the accepted texts, what they keep of the plan, and that systemd takes the units.

use std::path::Path;
use std::process::Command;
use varve_jobs::class::Limits;
use varve_jobs::demand::PartialDemand;
use varve_jobs::emit::{Emission, Emitted, For, emit};
use varve_jobs::live::LiveOptions;
use varve_jobs::policy::place::Capacity;
use varve_jobs::{Demand, Error, Group, Host, Point, Strategy, group, plan};
use varve_live::nodes::Kinds;

/// Five programs of which the fourth makes two others move, with all that a program may have.
const GROUP: &str = r#"
name = "two at a time, 50%"
fast = "4GiB"
cores = 8
at_once = 1
on_failure = "stop"

[[program]]
name = "solver"
command = ["./solver", "--on", "{cpus}", "--say", "it's $HOME"]
env = { PLACES = "{cpus}", SHARE = "50%" }
bytes = "2GiB"
class = "cpu-bound"
time_limit = "90s"
threads = 4

[[program]]
name = "loader"
managed = "loader.wasm"
arguments = ["{memory}", "{nodes}"]
bytes = "1GiB"
class = "latency-sensitive"

[[program]]
name = "a b"
command = ["true"]
bytes = "1GiB"
class = "cpu-bound"
threads = 4

[[program]]
name = "a_b"
workload = "ocean_cp:bytes=3GiB"
bytes = "3GiB"
class = "bandwidth-sensitive"
after = ["loader"]
threads = 4

[[program]]
name = "pinned"
command = ["sh", "-c", "echo {threads}"]
memory = "slow"
bytes = "1GiB"
class = "cpu-bound"
threads = 4
"#;

/// Programs that take as many seconds with one thread, and half as many with two.
fn demands(group: &Group, seconds: &[f64]) -> Vec<Demand> {
    let curve = |seconds: f64| -> Vec<Point> {
        let point = |threads: u32| Point {
            threads,
            seconds: seconds / f64::from(threads),
            read_gbps: None,
            write_gbps: None,
            ..Point::default()
        };
        [1, 2].map(point).to_vec()
    };
    let demand = |(p, &s): (&group::Program, &f64)| Demand {
        name: p.name.clone(),
        bytes: p.bytes.unwrap_or(0),
        curves: [curve(s), curve(s * 1.2)],
        part: p.inside.as_ref().and_then(|inside| {
            let fast_bytes = inside.fast?;
            let curve = curve(s * 1.1);
            Some(PartialDemand { fast_bytes, curve })
        }),
        ..Demand::default()
    };
    group.programs.iter().zip(seconds).map(demand).collect()
}

fn options() -> LiveOptions {
    LiveOptions {
        logs: "logs of it".into(),
        scale: 512,
        seed: 1,
        varve: "varve".into(),
    }
}

fn host(alike: bool) -> Host {
    Host {
        name: "toy".into(),
        cores: 8,
        capacity: Capacity {
            fast: 4 << 30,
            slow: 64 << 30,
        },
        limits: Limits {
            slow_write_gbps: None,
        },
        alike,
    }
}

fn emitted(
    text: &str,
    strategy: &str,
    nodes: Option<&str>,
    alike: bool,
    target: For,
) -> Result<Emitted, Error> {
    let group = group::parse(text, "group.toml").unwrap_or_else(|e| panic!("{e:?}"));
    let strategy: Strategy = strategy.parse().unwrap();
    let host = host(alike);
    let plan = plan(
        &group,
        &demands(&group, &[40.0, 10.0, 20.0, 30.0, 10.0]),
        &host,
        strategy,
    )?;
    let nodes = nodes.map(|nodes| Kinds::read(nodes).unwrap());
    let emission = Emission {
        group: &group,
        plan: &plan,
        host: &host,
        nodes: nodes.as_ref(),
        cpus: &[0, 1, 2, 3, 4, 5, 6, 7],
        options: &options(),
        command: "varve jobs plan group.toml",
    };
    emit(&emission, target)
}

const NODES: Option<&str> = Some("fast=0,slow=2-3");

/// Compares with the accepted text; `VARVE_ACCEPT=1` accepts another one.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("VARVE_ACCEPT").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        accepted, text,
        "{name}: if the new text is right, VARVE_ACCEPT=1 accepts it"
    );
}

#[test]
fn the_texts_are_those_that_were_accepted() {
    for (target, name) in [(For::Slurm, "slurm.sh"), (For::Systemd, "systemd.sh")] {
        let emitted = emitted(GROUP, "all", NODES, false, target).unwrap();
        golden(name, &emitted.text);
        for line in &emitted.lost {
            let comment = format!("# Not as planned: {line}\n");
            assert!(emitted.text.contains(&comment), "{comment}");
        }
        let checked = shell(&emitted.text, &["-n"]);
        assert!(checked.status.success(), "{checked:?}");
    }
}

/// Runs a shell on a script that is in a folder of its own; the folder vanishes.
fn shell(script: &str, words: &[&str]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    let shell = if script.starts_with("#!/bin/bash") {
        "bash"
    } else {
        "sh"
    };
    let mut command = Command::new(shell);
    let (options, rest): (Vec<&str>, Vec<&str>) = words.iter().partition(|w| w.starts_with('-'));
    command
        .args(options)
        .arg(&file)
        .args(rest)
        .current_dir(folder.path());
    command.output().expect("a shell")
}

#[test]
fn linux_decides_nothing_of_memory_and_processors() {
    for target in [For::Slurm, For::Systemd] {
        let text = emitted(
            &GROUP.replace("memory = \"slow\"\n", ""),
            "linux",
            None,
            false,
            target,
        );
        let text = text.unwrap().text;
        for word in [
            "mem-bind",
            "NUMAMask",
            "AllowedMemoryNodes",
            "--exact",
            "set-property",
        ] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn memory_that_is_all_alike_needs_no_nodes() {
    for target in [For::Slurm, For::Systemd] {
        let text = emitted(GROUP, "all", None, true, target).unwrap().text;
        assert!(
            !text.contains("mem-bind") && !text.contains("NUMAMask"),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_written_is_one_line() {
    let error = emitted(GROUP, "all", None, false, For::Slurm).unwrap_err();
    let line = error.to_string();
    assert!(
        line.contains("`toy`") && line.contains("--nodes fast=0,slow=1"),
        "{line}"
    );
    let trace = "[[program]]\nname = \"t\"\ntrace = \"t.trace\"\nbytes = \"1GiB\"\n";
    let error = emitted(trace, "all", NODES, false, For::Systemd).unwrap_err();
    let line = error.to_string();
    assert!(
        line.starts_with("group.toml:1: program `t`, trace: is a trace"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
}

/// A program that takes a place, or comes later by the file, waits; none waits for itself, and all run in the end.
#[test]
fn programs_wait_for_those_whose_places_they_take() {
    let text = emitted(GROUP, "all", NODES, false, For::Systemd)
        .unwrap()
        .text;
    let mut after: Vec<(String, Vec<String>)> = Vec::new();
    for unit in text.split("\nservice ").skip(1) {
        let name = unit.split(' ').next().unwrap().to_string() + ".service";
        let line = unit.lines().find_map(|l| l.strip_prefix("After="));
        let waits = line.unwrap_or("").split_whitespace().map(String::from);
        after.push((name, waits.collect()));
    }
    assert_eq!(after.len(), 5);
    let mut ended: Vec<String> = Vec::new();
    while ended.len() < after.len() {
        let free = |(name, waits): &&(String, Vec<String>)| {
            !ended.contains(name) && waits.iter().all(|w| ended.contains(w))
        };
        let next: Vec<String> = after.iter().filter(free).map(|a| a.0.clone()).collect();
        assert!(!next.is_empty(), "{after:?}");
        // One at a time in each of two memories.
        assert!(next.len() <= 2, "{next:?} of {after:?}");
        ended.extend(next);
    }
}

/// The script writes units, which systemd finds nothing wrong with where it is there, and which have what was planned.
#[test]
fn units_are_written_and_are_what_systemd_takes() {
    let emitted = emitted(GROUP, "all", NODES, false, For::Systemd).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let units = folder.path().join("units");
    let said = shell(&emitted.text, &[units.to_str().unwrap()]);
    assert!(said.status.success(), "{said:?}");
    let read = |name: &str| std::fs::read_to_string(units.join(name)).unwrap_or_default();
    let group = "varve-two_at_a_time__50_";
    let slice = read(&format!("{group}.slice"));
    assert!(slice.contains("AllowedMemoryNodes=0 2-3\n"), "{slice}");
    let solver = read(&format!("{group}-solver.service"));
    for line in [
        r#"ExecStart=/usr/bin/env "./solver" "--on" "0,1" "--say" "it's $$HOME""#,
        r#"Environment="SHARE=50%%""#,
        "TimeoutStartSec=90",
        "NUMAPolicy=preferred",
        "NUMAMask=0",
    ] {
        assert!(solver.lines().any(|l| l == line), "no `{line}` in {solver}");
    }
    let newcomer = read(&format!("{group}-a_b_4.service"));
    let moves = format!("set-property {group}-solver.service \"AllowedMemoryNodes=2-3\"");
    assert!(newcomer.contains(&moves), "{newcomer}");
    let mut files: Vec<_> = std::fs::read_dir(&units)
        .unwrap()
        .flatten()
        .map(|f| f.path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 7);
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .args(&files)
        .output();
    match verified {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stderr).into_owned();
            // What it says of the system's own units is not about these.
            let ours: Vec<&str> = text.lines().filter(|l| l.contains("varve-")).collect();
            assert!(said.status.success() && ours.is_empty(), "{text}");
        }
        Err(_) => varve_skip::skip!("needs systemd-analyze (Debian: apt install systemd)"),
    }
}

/// Programs in part are started by the runtime that places their memory.
#[test]
fn programs_in_part_are_placed_by_varve() {
    let program = |name: &str, is: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\n{is}\nbytes = \"8GiB\"\nclass = \"latency-sensitive\"\nthreads = 1\nfast = \"1GiB\"\n"
        )
    };
    let text = program(
        "solver",
        "command = [\"./solver\", \"{memory}\"]\nsites = \"a b.sites\"",
    ) + &program(
        "api",
        "command = [\"java\", \"-jar\", \"api.jar\"]\nplan = \"kg-n\"",
    ) + &program(
        "cache",
        "managed = \"cache.wasm\"\narguments = [\"9\"]\nplan = \"kg-w\"",
    );
    let slurm = emitted(&text, "placement", NODES, false, For::Slurm).unwrap();
    for words in [
        "--mem-bind=prefer,mask_mem:0xc env OMP_NUM_THREADS=1 varve run --live --plan hot-sites --sites 'a b.sites' --fast 1073741824 --nodes fast=0,slow=2+3 -- ./solver part",
        "--cpus-per-task=8 env OMP_NUM_THREADS=1 varve run --live --plan kg-n --nodes fast=0,slow=2+3 -- java -jar api.jar",
        "varve run cache.wasm --plan kg-w --fast 1073741824 --nodes fast=0,slow=2+3 --gc-stats -- 9",
    ] {
        assert!(slurm.text.contains(words), "no `{words}` in {}", slurm.text);
    }
    let systemd = emitted(&text, "placement", NODES, false, For::Systemd).unwrap();
    // What is outside of the objects prefers slow memory; a virtual machine's generations are bound one by one.
    let count = |line: &str| systemd.text.matches(&format!("\n{line}\n")).count();
    assert_eq!(count("AllowedMemoryNodes=0 2-3"), 1, "{}", systemd.text);
    assert_eq!(count("NUMAMask=2-3"), 2, "{}", systemd.text);
    let lost = systemd.lost.join("\n");
    assert!(lost.contains("of several nodes the first"), "{lost}");
    let error = emitted(&text, "placement", None, false, For::Slurm).unwrap_err();
    assert!(error.to_string().contains("--nodes fast=0,slow=1"));
}
