//! Our workloads beside those of YCSB itself: its core workload draws operations, and so does ours. Needs a JDK, and YCSB from Maven Central:
//! `mvn dependency:get -Dartifact=site.ycsb:core:0.17.0`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use varve_serve::ycsb::{Operation, Operations, Workload, key};

const RECORDS: u64 = 10_000;
const OPERATIONS: u64 = 400_000;

/// How often each key was read and written.
#[derive(Default)]
struct Drawn {
    kinds: HashMap<char, u64>,
    keys: HashMap<String, u64>,
}

impl Drawn {
    fn add(&mut self, kind: char, key: &str) {
        *self.kinds.entry(kind).or_default() += 1;
        *self.keys.entry(key.into()).or_default() += 1;
    }

    fn kind(&self, kind: char) -> f64 {
        self.kinds.get(&kind).copied().unwrap_or(0) as f64
    }

    /// The keys by popularity, with their shares.
    fn popular(&self) -> Vec<(&str, f64)> {
        let all: u64 = self.keys.values().sum();
        let mut keys: Vec<(&str, f64)> = self
            .keys
            .iter()
            .map(|(key, &count)| (&key[..], count as f64 / all as f64))
            .collect();
        keys.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        keys
    }
}

fn ours(workload: Workload) -> Drawn {
    let mut operations = Operations::new(workload, RECORDS, 1);
    let (mut drawn, mut name) = (Drawn::default(), Vec::new());
    for _ in 0..OPERATIONS {
        let operation = operations.draw();
        let (kinds, record) = match operation {
            Operation::Read(record) => ("r", record),
            Operation::Update(record) => ("u", record),
            Operation::Insert(record) => ("i", record),
            Operation::ReadModifyWrite(record) => ("ru", record),
        };
        key(record, &mut name);
        let name = std::str::from_utf8(&name).unwrap();
        kinds.chars().for_each(|kind| drawn.add(kind, name));
    }
    drawn
}

/// The jars of YCSB's core and what it needs, in Maven's repository.
fn class_path() -> Option<String> {
    let repository = std::env::var_os("MAVEN_REPOSITORY")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".m2/repository")))?;
    let jars = [
        "site/ycsb/core/0.17.0/core-0.17.0.jar",
        "org/apache/htrace/htrace-core4/4.1.0-incubating/htrace-core4-4.1.0-incubating.jar",
        "org/hdrhistogram/HdrHistogram/2.1.4/HdrHistogram-2.1.4.jar",
        "org/codehaus/jackson/jackson-core-asl/1.9.4/jackson-core-asl-1.9.4.jar",
        "org/codehaus/jackson/jackson-mapper-asl/1.9.4/jackson-mapper-asl-1.9.4.jar",
    ];
    let paths = jars.map(|jar| repository.join(jar));
    let there = paths.iter().all(|path| path.is_file());
    there.then(|| paths.map(|p| p.display().to_string()).join(":"))
}

fn theirs(class_path: &str, workload: Workload) -> Drawn {
    let proportions: &[&str] = match workload {
        Workload::A => &["readproportion=0.5", "updateproportion=0.5"],
        Workload::B => &["readproportion=0.95", "updateproportion=0.05"],
        Workload::C => &["readproportion=1", "updateproportion=0"],
        Workload::D => &[
            "readproportion=0.95",
            "updateproportion=0",
            "insertproportion=0.05",
        ],
        Workload::F => &[
            "readproportion=0.5",
            "updateproportion=0",
            "readmodifywriteproportion=0.5",
        ],
    };
    let distribution = match workload {
        Workload::D => "requestdistribution=latest",
        _ => "requestdistribution=zipfian",
    };
    let draw = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ycsb/Draw.java");
    let output = Command::new("java")
        .args(["-cp", class_path])
        .arg(draw)
        .args([
            format!("recordcount={RECORDS}"),
            format!("operationcount={OPERATIONS}"),
        ])
        .arg(distribution)
        .args(proportions)
        .output()
        .expect("java was there a moment ago");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut drawn = Drawn::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (kind, key) = line.split_once(' ').expect("a letter and a key");
        drawn.add(kind.chars().next().unwrap(), key);
    }
    drawn
}

#[test]
fn operations_are_drawn_as_ycsb_draws_them() {
    let java = Command::new("java").arg("-version").output().is_ok();
    let Some(class_path) = class_path().filter(|_| java) else {
        varve_skip::skip!(
            "needs java, and YCSB (mvn dependency:get -Dartifact=site.ycsb:core:0.17.0)"
        );
        return;
    };
    for workload in Workload::ALL {
        let (ours, theirs) = (ours(workload), theirs(&class_path, workload));
        for kind in ['r', 'u', 'i'] {
            let (a, b) = (ours.kind(kind), theirs.kind(kind));
            // Five standard deviations of either.
            let within = 10.0 * (OPERATIONS as f64 / 4.0).sqrt();
            assert!(
                (a - b).abs() < within,
                "{workload}: {a} and {b} of kind {kind}"
            );
        }
        let (mine, other) = (ours.popular(), theirs.popular());
        for top in [1, 10, 100, 1000, 5000] {
            let share = |keys: &[(&str, f64)]| keys.iter().take(top).map(|k| k.1).sum::<f64>();
            let (a, b) = (share(&mine), share(&other));
            // Six standard deviations of the difference of two such shares, and what sorting by them adds.
            let most = 6.0 * (2.0 * b * (1.0 - b) / OPERATIONS as f64).sqrt() + 0.03 * b;
            assert!(
                (a - b).abs() < most,
                "{workload}: the first {top} keys have {a} and {b}"
            );
        }
        if workload != Workload::D {
            // The same records are popular: the hash that scatters them is the same.
            let hottest = |keys: &[(&str, f64)]| -> Vec<String> {
                let mut names: Vec<String> = keys[..5].iter().map(|k| k.0.into()).collect();
                names.sort();
                names
            };
            assert_eq!(hottest(&mine), hottest(&other), "{workload}");
        }
    }
}
