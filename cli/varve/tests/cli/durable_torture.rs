//! Everything that can be done to a region file at the same time, with kills: run, check, info, export, compact, backup, salvage. Whatever was
//! said to be over is there afterwards, in the file and in each copy.
//!
//! A few rounds with the tests. By hand, `VARVE_TORTURE=5000 cargo test --release -p varve --test cli all_commands -- --nocapture`; the seed is
//! printed, and `VARVE_SEED` gives it again.

use crate::common::{Said, command, home, varve};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const DURABLE: &str = "programs/dist/durable.wasm";

/// A program that changes collections and says which operation is over.
struct Program {
    child: Child,
    /// The number of the last operation that is over.
    over: Arc<AtomicI64>,
    reader: Option<JoinHandle<()>>,
    /// Its output if it ends by itself.
    words: JoinHandle<String>,
}

impl Program {
    fn start(region: &Path, options: &[&str], over: Arc<AtomicI64>) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_varve"))
            .current_dir(home())
            .args(["run", DURABLE, "--durable"])
            .arg(region)
            .args(options)
            .args(["--", "torture"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut err = child.stderr.take().expect("piped");
        let words = std::thread::spawn(move || {
            let mut words = String::new();
            let _ = err.read_to_string(&mut words);
            words
        });
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let told = over.clone();
        let reader = std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // Of a line that a kill cut off, a shorter number is left.
                if let Ok(number) = line.parse::<i64>() {
                    told.fetch_max(number, Ordering::SeqCst);
                }
            }
        });
        Program {
            child,
            over,
            reader: Some(reader),
            words,
        }
    }

    /// It runs until it is killed, unless another process had the file.
    fn kill(mut self) {
        let ended = self.child.try_wait().expect("it was ours");
        self.child.kill().expect("it was ours");
        self.child.wait().expect("it was ours");
        self.reader.take().expect("once").join().expect("it reads");
        let words = self.words.join().expect("it reads");
        if let Some(status) = ended {
            let busy = words.contains("another process has this region open");
            assert!(
                busy && status.code() == Some(2),
                "it ended: {status}: {words}"
            );
        }
    }
}

fn verified(region: &Path, over: i64, what: &str) {
    let region = region.to_str().expect("a path of ours");
    let over = over.to_string();
    let begin = ["run", DURABLE, "--durable", region, "--domain", "memory"];
    let said = varve(&[&begin[..], &["--", "verify", "--operations", &over]].concat());
    assert!(
        said.code == 0 && said.out.contains("all there"),
        "{what}: {over} operations were over: {} {}",
        said.out,
        said.err
    );
}

/// A command on the region: what it is called, its words, and the copy that it makes, if it makes one.
fn any_command(rng: &mut SmallRng, region: &Path, folder: &Path) -> (Vec<String>, Option<PathBuf>) {
    let kind = ["check", "info", "export", "compact", "backup", "salvage"][rng.random_range(0..6)];
    let mut words = vec![
        "durable".into(),
        kind.to_string(),
        region.display().to_string(),
    ];
    let copy = matches!(kind, "backup" | "salvage")
        .then(|| folder.join(format!("{kind}{}.region", rng.random_range(0..2))));
    words.extend(copy.as_ref().map(|c| c.display().to_string()));
    (words, copy)
}

/// The allowed outcomes of a command: success, or another process has the file.
fn fine(words: &[String], said: &Said) {
    let busy = ["another process has this region open", "No such file"];
    let refused = said.code == 2 && busy.iter().any(|b| said.err.contains(b));
    assert!(
        said.code == 0 || refused,
        "{words:?}: {} {} {}",
        said.code,
        said.out,
        said.err
    );
    if words[1] == "check" && said.code == 0 {
        assert!(said.out.contains("whole"), "{words:?}: {}", said.out);
    }
}

fn round(rng: &mut SmallRng, folder: &Path, over: &Arc<AtomicI64>) {
    let region = folder.join("torture.region");
    let domain = match rng.random_range(0..4) {
        0 => &["--domain", "file", "--sync", "5ms"][..],
        1 => &["--domain", "file", "--sync", "commit"],
        _ => &["--domain", "memory"],
    };
    let moment = |rng: &mut SmallRng, most| Duration::from_micros(rng.random_range(0..most));
    // Something may be going on when the program starts.
    let before = (rng.random_range(0..2) == 0).then(|| {
        let (words, _) = any_command(rng, &region, folder);
        let child = command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        std::thread::sleep(moment(rng, 20_000));
        child.expect("varve starts")
    });
    let program = Program::start(&region, domain, over.clone());
    std::thread::sleep(moment(rng, 120_000));
    for _ in 0..rng.random_range(0..3) {
        let (words, copy) = any_command(rng, &region, folder);
        let was_over = program.over.load(Ordering::SeqCst);
        match rng.random_range(0..3) {
            // Killed in the middle.
            0 => {
                let mut child = command(&words)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("varve starts");
                std::thread::sleep(moment(rng, 30_000));
                child.kill().expect("it was ours");
                child.wait().expect("it was ours");
            }
            _ => {
                let said = varve(&words);
                fine(&words, &said);
                if let Some(copy) = copy.filter(|_| said.code == 0) {
                    verified(&copy, was_over, &format!("{words:?}"));
                }
            }
        }
        std::thread::sleep(moment(rng, 20_000));
    }
    program.kill();
    if let Some(mut child) = before {
        if rng.random_range(0..2) == 0 {
            let _ = child.kill();
        }
        child.wait().expect("it was ours");
    }
    // Alone with the file: killed or not, and the file is intact after a crash.
    let (words, _) = any_command(rng, &region, folder);
    let mut child = command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("varve starts");
    if rng.random_range(0..2) == 0 {
        std::thread::sleep(moment(rng, 30_000));
        child.kill().expect("it was ours");
    }
    child.wait().expect("it was ours");
    if region.exists() {
        fine(
            &["durable".into(), "check".into()],
            &varve(&["durable", "check", region.to_str().unwrap()]),
        );
    }
    verified(&region, over.load(Ordering::SeqCst), "the region");
}

#[test]
fn all_commands_and_kills_on_one_file_lose_nothing() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
    };
    let rounds = number("VARVE_TORTURE", 12);
    let seed = number("VARVE_SEED", std::process::id().into());
    println!("VARVE_SEED={seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let over = Arc::new(AtomicI64::new(0));
    let mut all = 0;
    for n in 0..rounds {
        // Collections of so many operations have been through everything: others begin.
        if over.load(Ordering::SeqCst) > 20_000 {
            all += over.swap(0, Ordering::SeqCst);
            std::fs::remove_file(folder.path().join("torture.region")).unwrap();
        }
        round(&mut rng, folder.path(), &over);
        if rounds > 100 && n % 100 == 99 {
            println!(
                "{} rounds, {} operations",
                n + 1,
                all + over.load(Ordering::SeqCst)
            );
        }
    }
    // What kills left beside the files goes with the next opening; nothing else is there.
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.ends_with(".region") || name.ends_with(".varve-new"),
            "{name}"
        );
    }
    assert!(all + over.load(Ordering::SeqCst) > 100, "little was done");
}
