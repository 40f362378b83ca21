//! The work whose instructions are counted: all kinds of checks of one program or store, one after the other.

use super::KINDS;
use super::mark::mark;
use super::programs::{DURABLE, QuickProgram, VOLATILE};
use super::scratch::Scratch;
use super::stores::{self, Size};
use varve_observed::ManagedProgram;
use varve_run::Error;
use varve_runtime::{Checks, Config};
use varve_serve::Kind;
use varve_serve::ycsb::{self, Workload};

/// Rounds of a program that warm it up, and those that are counted.
const ROUNDS: (usize, usize) = (8, 4);
/// Operations of a workload that warm it up, and as many that are counted.
const OPERATIONS: u64 = 8_000;
/// Records of a store; the second number shows what they matter.
pub const RECORDS: [u64; 2] = [1_000, 10_000];

/// One process' work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// A program that keeps nothing, without checks and with each kind of them.
    Volatile(&'static str),
    /// A kernel, with the two kinds that are compared.
    Durable(&'static str),
    /// A store under all workloads with the two kinds, and its records.
    Store(Kind, u64),
}

/// All kinds of checks that volatile programs are counted with.
pub fn clean_and_kinds() -> impl Iterator<Item = Checks> {
    std::iter::once(Checks::None).chain(KINDS.iter().map(|k| k.0))
}

impl Work {
    /// As a word of the command line, which [`Work::of`] reads.
    pub fn word(self) -> String {
        match self {
            Work::Volatile(name) | Work::Durable(name) => name.into(),
            Work::Store(kind, records) => format!("{}:{records}", kind.name()),
        }
    }

    fn of(word: &str) -> Option<Work> {
        let named = |all: &'static [QuickProgram]| all.iter().map(|e| e.name).find(|n| *n == word);
        let store = || {
            let (kind, records) = word.split_once(':')?;
            Some(Work::Store(kind.parse().ok()?, records.parse().ok()?))
        };
        named(&VOLATILE)
            .map(Work::Volatile)
            .or_else(|| named(&DURABLE).map(Work::Durable))
            .or_else(store)
    }

    /// How many counts it gives.
    pub fn counts(self) -> usize {
        match self {
            Work::Volatile(_) => clean_and_kinds().count(),
            Work::Durable(_) => stores::KINDS.len(),
            Work::Store(..) => stores::KINDS.len() * Workload::ALL.len(),
        }
    }

    fn run(self, seed: u64) -> Result<(), String> {
        match self {
            Work::Volatile(name) => {
                for checks in clean_and_kinds() {
                    rounds(&VOLATILE, name, same_each_time(checks))?;
                }
            }
            Work::Durable(name) => {
                let scratch = Scratch::new()?;
                for (checks, _) in stores::KINDS {
                    rounds(&DURABLE, name, kept(&scratch, checks))?;
                }
            }
            Work::Store(kind, records) => {
                let scratch = Scratch::new()?;
                for (checks, _) in stores::KINDS {
                    workloads(kind, records, kept(&scratch, checks), seed)?;
                }
            }
        }
        Ok(())
    }
}

/// Does the work of a word; for the process in which it is counted.
///
/// # Errors
/// A word that means none, and what goes wrong in it.
pub fn counted(word: &str, seed: u64) -> Result<(), Error> {
    let unknown = || format!("no work is called `{word}`");
    let work = Work::of(word).ok_or_else(unknown);
    work.and_then(|work| work.run(seed)).map_err(Error::Hosted)
}

/// Nothing is compiled or collected beside the program, so that it retires the same each time.
fn same_each_time(checks: Checks) -> Config {
    Config {
        checks: Some(checks),
        background: false,
        gc_threads: Some(1),
        ..Config::default()
    }
}

fn kept(scratch: &Scratch, checks: Checks) -> Config {
    Config {
        durable: scratch.config(checks, false).durable,
        ..same_each_time(checks)
    }
}

/// A program's rounds, of which it says one line each.
fn rounds(all: &[QuickProgram], name: &str, config: Config) -> Result<(), String> {
    let entry = all.iter().find(|e| e.name == name).expect("it is one");
    let (warm, counted) = ROUNDS;
    let all = (warm + counted).to_string();
    let words = entry.counted.ok_or("it is not counted")?;
    let words = words.split(' ').chain(["--rounds", &all]);
    let program = ManagedProgram::new(entry.module.0, entry.module.1).with_arguments(words);
    let mut said = 0;
    let hear = move |bytes: &[u8]| {
        for _ in bytes.iter().filter(|b| **b == b'\n') {
            said += 1;
            if [warm, warm + counted].contains(&said) {
                mark();
            }
        }
    };
    let ran = program.ran_heard(config, hear);
    ran.map(drop).map_err(|e| e.to_string())
}

fn workloads(store: Kind, records: u64, config: Config, seed: u64) -> Result<(), String> {
    let size = Size {
        records,
        warm_up: OPERATIONS,
        operations: OPERATIONS,
    };
    let (spec, mut target) = stores::fill(seed, size, config, |config| {
        varve_serve::Managed::new(store, config)
    })?;
    for workload in Workload::ALL {
        let spec = ycsb::Spec { workload, ..spec };
        ycsb::run(&spec, &mut target).map_err(|e| e.to_string())?;
        mark();
        ycsb::run(&spec, &mut target).map_err(|e| e.to_string())?;
        mark();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_is_found_by_its_word() {
        let programs = VOLATILE.iter().map(|e| Work::Volatile(e.name));
        let kernels = DURABLE.iter().map(|e| Work::Durable(e.name));
        let stores = stores::STORES.map(|s| Work::Store(s.0, 1_000));
        for work in programs.chain(kernels).chain(stores) {
            assert_eq!(Work::of(&work.word()), Some(work));
        }
        assert_eq!(Work::of("fhmap:many"), None);
        assert_eq!(Work::of("nothing"), None);
    }
}
