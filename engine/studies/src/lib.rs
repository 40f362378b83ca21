//! The papers as runnable studies: each asks the model what a paper measured, and prints published beside ours.

mod app_aware;
mod certainty;
mod cross_layer;
mod johnny_cache;
mod managed;
mod pima;
mod plan;
mod quickcheck;

pub use certainty::Certainty;
pub use quickcheck::counted;

use std::path::PathBuf;
use varve_machine::Machine;
use varve_machine::rules::Rule;
use varve_report::{Claim, StudyResult, Value};
use varve_run::{Error, Keep};

/// How much a study does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Coarse: smaller and fewer programs.
    Quick,
    /// The size that the claims need.
    Full,
    /// Every run and every claim at a sliver of its size, in some seconds: says whether the study works, and nothing about
    /// the paper. For tests.
    Tiny,
}

/// The options of a study.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// How much.
    pub effort: Effort,
    /// Only these claims; all when empty.
    pub only: Vec<String>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Runs at a time.
    pub workers: usize,
    /// Where finished runs are kept.
    pub keep: Keep,
    /// A folder with recordings of Java virtual machines; None: those that are built in.
    pub recordings: Option<PathBuf>,
    /// Of `pima` only its half of stock virtual machines.
    pub stock_only: bool,
    /// A rule of the model that does not hold.
    pub without: Option<Rule>,
    /// The command line's program, which counts instructions by running itself under an emulator (`varve study count`); None: this is another one.
    pub program: Option<PathBuf>,
}

impl StudyOptions {
    /// Is this claim asked for?
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| id == o)
    }

    /// Ends a study whose runs are all that is wanted of this process: its claims are others' business.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        match self.keep.is_share() {
            true => Err(Error::Elsewhere("the claims".into())),
            false => Ok(()),
        }
    }

    /// A machine by its name, without the rule that does not hold.
    fn machine(&self, name: &str) -> Result<Machine, Error> {
        let mut machine = Machine::load(name)?;
        if let Some(rule) = self.without {
            (rule.off)(&mut machine);
        }
        Ok(machine)
    }
}

/// How far a study has come.
#[derive(Clone, Debug)]
pub struct StudyProgress {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// The name of the current run.
    pub what: String,
}

/// Tells progress; ends the study by returning `false`.
pub type Watch<'a> = &'a (dyn Fn(&StudyProgress) -> bool + Sync);

/// One study.
#[derive(Clone, Copy)]
pub struct Study {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// The claims that it answers: their letter, the first and the last number.
    pub claims: (char, u32, u32),
    /// How often all shares of its runs are to be made until all are there, as some depend on what others gave. 0: it has no
    /// shares, since it measures the machine that it runs on.
    pub rounds: usize,
    /// Runs it.
    pub run: fn(&StudyOptions, Watch) -> Result<StudyResult, Error>,
}

impl Study {
    /// Is there such a claim?
    pub fn answers(&self, id: &str) -> bool {
        let (letter, first, last) = self.claims;
        (first..=last).any(|n| format!("{letter}{n}") == id)
    }
}

/// A claim whose own value may be missing.
fn claim(
    id: &str,
    what: &str,
    published: impl Into<Value>,
    ours: Option<f64>,
    unit: &str,
    note: &str,
) -> Claim {
    let ours = ours
        .filter(|x| x.is_finite())
        .map_or(Value::Missing, Value::from);
    Claim::new(id, what, published, ours, unit).with_note(note)
}

/// Every study.
pub fn list() -> &'static [Study] {
    &[
        Study {
            name: "pima",
            about: "managed heaps on DRAM and Optane, and sampling which one pays (Akram, TACO 2021): claims A9-A17",
            claims: ('A', 9, 17),
            rounds: 1,
            run: pima::run,
        },
        Study {
            name: "quickcheck",
            about: "objects that survive: the cost of persistence checks, biased and not, and their outcomes (Shull et al., VEE 2019): claims C7-C9",
            claims: ('C', 7, 9),
            rounds: 0,
            run: quickcheck::run,
        },
        Study {
            name: "cross-layer",
            about: "colours, trays and DRAM energy: hot and cold objects on DIMMs that sleep (Olson et al., TACO 2018): claims B6-B10",
            claims: ('B', 6, 10),
            rounds: 3,
            run: cross_layer::run,
        },
        Study {
            name: "johnny-cache",
            about: "page placement without conflicts under a DRAM cache (Lepers & Zwaenepoel, OSDI 2023): claims D5-D14",
            claims: ('D', 5, 14),
            rounds: 1,
            run: johnny_cache::run,
        },
        Study {
            name: "app-aware",
            about: "placement, threads and order of whole programs (Wang et al.): claims E5-E12",
            claims: ('E', 5, 12),
            rounds: 2,
            run: app_aware::run,
        },
    ]
}
