//! How fast programs allocate: as the ones of table 1 that they stand for.
//!
//! The engine's code is faster than Jikes RVM's, and no program here reads files or waits for requests. So a core allocates several
//! times what it does in the paper, and then 32 of them ask for more bandwidth than any memory has. An instruction of a program
//! therefore gets a weight such that all instances allocate at the published rate, with all memory in DRAM on the most cores. The
//! rate is an input. The rate in slow memory is the result.

use super::suite::{PimaProgram, PimaSuite};
use super::table1;
use crate::managed::ManagedPlan;
use crate::{Effort, StudyOptions, Watch};
use varve_observed::PlanResult;
use varve_run::{Error, Numa};

/// How far a rate may be from the published one. An assumption: less than programs differ from those that they stand for.
const NEAR: f64 = 0.02;
/// Runs of a program at most, and in a study that only shows that all works.
const ROUNDS: usize = 5;
const FEW: usize = 2;
/// The most that an instruction counts.
const MOST: f64 = 1000.0;

/// A program on its way to the published rate.
struct Search {
    entry: &'static PimaProgram,
    /// The published rate, B/s.
    wanted: f64,
    /// The factor that was tried last, and the seconds of its run.
    last: Option<(f64, f64)>,
    /// The next one.
    slower: f64,
    found: bool,
}

impl Search {
    fn new(entry: &'static PimaProgram) -> Option<Search> {
        Some(Search {
            entry,
            wanted: 1e9 * table1::of(entry.stands_for)?.allocated,
            last: None,
            slower: 1.0,
            found: false,
        })
    }

    /// Takes a run into account. A program's time is nearly linear in the factor: waits and collections stay constant.
    fn learn(&mut self, r: &PlanResult, instances: u32) {
        let wanted = f64::from(instances) * r.allocated_bytes as f64 / self.wanted;
        let before = self.last.replace((self.slower, r.seconds));
        let near = (r.seconds / wanted - 1.0).abs() <= NEAR;
        let slower_already = self.slower == 1.0 && r.seconds >= wanted;
        self.found = near || slower_already || r.seconds <= 0.0;
        if self.found {
            return;
        }
        let slope = match before {
            Some((slower, seconds)) if slower != self.slower => {
                (r.seconds - seconds) / (self.slower - slower)
            }
            _ => r.mutator_seconds() / self.slower,
        };
        let next = self.slower + (wanted - r.seconds) / slope.max(1e-9);
        // Three digits, so that the run is found again among those that are kept.
        let digits = 10f64.powf(2.0 - next.max(1.0).log10().floor());
        self.slower = ((next * digits).round() / digits).clamp(1.0, MOST);
    }
}

/// How often an instruction of each program counts. One that allocates nothing, or stands for none, is left as it is.
///
/// # Errors
/// The user ends it, or another process makes the runs and has not yet.
pub fn find(
    suite: &PimaSuite,
    options: &StudyOptions,
    watch: Watch,
) -> Result<Vec<(&'static str, f64)>, Error> {
    let programs = suite.programs.iter().copied();
    let mut all: Vec<Search> = programs.filter_map(Search::new).collect();
    let most = suite.most();
    let rounds = match options.effort {
        Effort::Tiny => FEW,
        Effort::Quick | Effort::Full => ROUNDS,
    };
    for _ in 0..rounds {
        let mut plan = ManagedPlan::default();
        for search in all.iter().filter(|s| !s.found) {
            let mut spec = suite.spec(search.entry, "dram", most, Numa::Local);
            spec.config.slower = search.slower;
            plan.run(search.entry.name, spec);
        }
        let results = plan.make(options, watch)?;
        results.all_there()?;
        for search in all.iter_mut().filter(|s| !s.found) {
            match results.get(search.entry.name) {
                Some(r) => search.learn(r, most),
                // Its other runs will say why it failed.
                None => search.found = true,
            }
        }
        if all.iter().all(|s| s.found) {
            break;
        }
    }
    Ok(all.iter().map(|s| (s.entry.name, s.slower)).collect())
}
