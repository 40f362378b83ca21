//! Generated programs of Java: classes, enumerations and records of all kinds, objects of them that are changed at random, and versions in which
//! the classes are other ones, all in failure-atomic regions and with kills. What must be printed follows from a model of the objects.
//!
//! Several programs, a package each, share a build. A build's worth runs with the tests; `VARVE_GENERATED=3600 cargo test --release -p varve
//! --test cli generated -- --nocapture` goes on for an hour. The seed is printed, and `VARVE_SEED` gives it again.

mod model;
mod source;

use crate::build::can_build;
use crate::common::{command, on_region as on, varve, varve_in};
use model::Model;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Programs that share a build: more would take longer to compile.
const PROGRAMS: usize = 8;
/// Versions of each when there is time; else the first two.
const VERSIONS: usize = 3;

#[derive(Default)]
struct Counts {
    programs: usize,
    versions: usize,
    changes: usize,
    steps: usize,
    kills: usize,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|n| n.parse().expect("a number"))
}

#[test]
fn generated_programs_keep_their_objects_through_versions_and_kills() {
    if !can_build() {
        return;
    }
    let seconds = number("VARVE_GENERATED").unwrap_or(0);
    let mut seed = number("VARVE_SEED").unwrap_or_else(|| std::process::id().into());
    let began = Instant::now();
    let mut counts = Counts::default();
    loop {
        println!("VARVE_SEED={seed}");
        chunk(seed, if seconds == 0 { 2 } else { VERSIONS }, &mut counts);
        println!(
            "{} programs, {} versions with {} changes of classes, {} steps, {} kills",
            counts.programs, counts.versions, counts.changes, counts.steps, counts.kills
        );
        seed += 1;
        if began.elapsed() >= Duration::from_secs(seconds) {
            return;
        }
    }
}

/// A program on its way through its versions.
struct Program {
    model: Model,
    region: PathBuf,
    /// Steps that are done.
    done: usize,
    /// Of one run.
    usual: Duration,
}

fn chunk(seed: u64, versions: usize, counts: &mut Counts) {
    let mut rng = SmallRng::seed_from_u64(seed);
    // Left there if something is wrong.
    let folder = tempfile::tempdir().unwrap().keep();
    let mut programs: Vec<Program> = (0..PROGRAMS)
        .map(|i| Program {
            model: Model::new(format!("p{i}"), &mut rng),
            region: folder.join(format!("p{i}.region")),
            done: 0,
            usual: Duration::from_millis(100),
        })
        .collect();
    counts.programs += PROGRAMS;
    for version in 0..versions {
        if version > 0 {
            for program in &mut programs {
                counts.changes += program.model.evolve(&mut rng);
            }
        }
        let sources = folder.join(format!("version{version}"));
        let models: Vec<Model> = programs.iter().map(|p| p.model.clone()).collect();
        source::write_all(&sources, &models);
        let module = folder.join(format!("version{version}.wasm"));
        let words = ["build", ".", "-o", module.to_str().unwrap()];
        let built = varve_in(&sources, &words);
        assert_eq!(built.code, 0, "{}: {}", sources.display(), built.err);
        counts.versions += PROGRAMS;
        for program in &mut programs {
            // The first run of a version changes the file, and nothing else.
            for step in 0..3 {
                let count = if step == 0 && version > 0 { 0 } else { 25 };
                let words: Vec<String> = (0..count)
                    .map(|_| program.model.operate(&mut rng))
                    .collect();
                if let Err(wrong) = program.step(&module, &words, counts, &mut rng) {
                    panic!(
                        "VARVE_SEED={seed}, {} of version {version}, step {}, in {}: {wrong}",
                        program.model.package,
                        program.done,
                        folder.display()
                    );
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

impl Program {
    /// Does some work, after kills in the middle of it, and compares.
    fn step(
        &mut self,
        module: &Path,
        words: &[String],
        counts: &mut Counts,
        rng: &mut SmallRng,
    ) -> Result<(), String> {
        self.done += 1;
        counts.steps += 1;
        let number = self.done.to_string();
        let kills = rng.random_range(0..3);
        // What may be killed must happen as a whole.
        let how = match kills == 0 && rng.random_range(0..2) == 0 {
            true => "plain",
            false => "region",
        };
        let mut arguments = vec![&self.model.package[..], &number, how];
        arguments.extend(words.iter().map(String::as_str));
        let module = module.to_str().expect("a path of ours");
        for _ in 0..kills {
            let region = self.region.to_str().expect("a path of ours");
            let begin = ["run", module, "--durable", region];
            let medium = match rng.random_range(0..2) {
                0 => ["--domain", "memory", "--"],
                _ => ["--domain", "file", "--"],
            };
            let mut child = command(&[&begin[..], &medium, &arguments].concat())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("varve starts");
            std::thread::sleep(self.usual.mul_f64(rng.random_range(0.0..1.2)));
            let _ = child.kill();
            child.wait().expect("it was ours");
            counts.kills += 1;
        }
        let began = Instant::now();
        let said = on(&self.region, module, &arguments);
        self.usual = (self.usual + began.elapsed()) / 2;
        let due = self.model.print();
        if said.code != 0 {
            return Err(format!("it ended with {}: {}", said.code, said.err));
        }
        if said.out != due {
            let lines = said.out.lines().zip(due.lines());
            let first = lines.into_iter().find(|(is, due)| is != due);
            return Err(format!("printed and due: {first:#?}"));
        }
        let checked = varve(&["durable", "check", self.region.to_str().unwrap()]);
        match checked.code {
            0 => Ok(()),
            _ => Err(format!("check: {}{}", checked.out, checked.err)),
        }
    }
}
