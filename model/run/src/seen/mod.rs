//! Data of a run on the model besides its result, for drawing: events with their times, rates over time, and accesses
//! to memory over time. An observed run has the same result.

mod heat;
mod lanes;
mod watch;

pub use heat::Grid;
pub use heat::{Heat, HeatCell, HeatRange};
pub use lanes::{Lane, LaneSpan, Rate, RateKind};
pub use watch::Eye;

use std::collections::BTreeMap;
use varve_access::{Pager, Program, Region};
use varve_machine::Machine;
use varve_machine::model::{self, Options, Outcome, OwnerCounts, Owners, Progress, RunError};
use watch::{SeenPager, SeenProgram};

/// See the module. Times are at full size, as those of the result; addresses are those of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// How long the run was, all phases, ns.
    pub end_ns: u64,
    /// Events with their times.
    pub lanes: Vec<Lane>,
    /// Rates over time.
    pub rates: Vec<Rate>,
    /// Memory over time.
    pub heat: Heat,
    /// Owners of the memory that threads waited for, where they are known.
    pub waits: Vec<Wait>,
    /// Which code threads waited in, where that is known.
    pub code: Vec<Wait>,
}

/// How long threads waited for a part of the memory, or in a part of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Its name, from the outermost part inwards.
    pub of: Vec<String>,
    /// Time of all threads, ns.
    pub ns: u64,
}

impl Seen {
    /// Of a run whose times are `factor` times as long at full size. `classes` are the names of requests.
    pub fn of(
        machine: &Machine,
        outcome: &Outcome,
        classes: &[String],
        factor: u64,
        eye: &Eye,
    ) -> Seen {
        // Pictures show the simulated part, of a run in windows too.
        let ran_ns = outcome.sampled.as_ref().map_or(outcome.ns, |s| s.ran_ns);
        Seen {
            end_ns: ran_ns * factor,
            lanes: lanes::of(outcome, classes, factor),
            rates: lanes::rates(machine, outcome, factor),
            heat: eye.heat(ran_ns, factor),
            waits: Vec::new(),
            code: Vec::new(),
        }
    }

    /// Adds which code of a program threads waited in, as the model counted it.
    pub(crate) fn add_code(&mut self, outcome: &Outcome, program: &dyn Program, factor: u64) {
        // Number 0 stands for unknown code. If there is no other, there is nothing to show.
        if outcome.code.len() <= 1 {
            return;
        }
        let all = outcome.code.iter().zip(0..);
        let waits = all.filter(|(ps, _)| **ps > 0).map(|(ps, number)| {
            let of = match program.code_name(number) {
                none if none.is_empty() => vec!["code of which nothing is known".into()],
                name => name,
            };
            let ns = ps / 1000 * factor;
            Wait { of, ns }
        });
        self.code = waits.collect();
    }
}

/// A run on the model, observed if the caller wants pictures. Waits are counted by owner where there are owners.
///
/// # Errors
/// Errors of the run on the model.
pub fn run(
    machine: &Machine,
    pager: &mut dyn Pager,
    programs: &mut [&mut dyn Program],
    options: &Options,
    owners: Option<&mut dyn Owners>,
    eye: &Eye,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    let run = |pager: &mut dyn Pager,
               programs: &mut [&mut dyn Program],
               options: &Options,
               watch: &mut dyn FnMut(&Progress) -> bool| match owners {
        Some(owners) => model::run_by_owner(machine, pager, programs, options, owners, watch),
        None => model::run(machine, pager, programs, options, watch),
    };
    if !eye.looks() {
        return run(pager, programs, options, watch);
    }
    let options = Options {
        journal: true,
        ..options.clone()
    };
    let numbered = programs.iter_mut().enumerate();
    let mut seen: Vec<SeenProgram> = numbered
        .map(|(space, program)| SeenProgram::new(&mut **program, space, eye))
        .collect();
    let mut seen: Vec<&mut dyn Program> = seen.iter_mut().map(|program| program as _).collect();
    run(&mut SeenPager::new(pager, eye), &mut seen, &options, watch)
}

/// Memory by the names that a program has for its ranges; unnamed memory is number 0.
pub(crate) struct Named {
    names: Vec<String>,
    /// By first address: behind the last one, and the number.
    ranges: BTreeMap<u64, (u64, u32)>,
}

impl Named {
    /// By the regions that a program knows at its start.
    pub(crate) fn new(regions: Vec<Region>) -> Named {
        let ranges = (1..)
            .zip(&regions)
            .map(|(number, r)| (r.base, (r.base + r.bytes, number)));
        Named {
            ranges: ranges.collect(),
            names: regions.into_iter().map(|r| r.name).collect(),
        }
    }

    /// Waits by owner, as the model counted them.
    pub(crate) fn waits(&self, counts: &[OwnerCounts], factor: u64) -> Vec<Wait> {
        let name = |number: usize| match number.checked_sub(1).and_then(|at| self.names.get(at)) {
            Some(name) => name.split('.').map(String::from).collect(),
            None => vec!["all other memory".into()],
        };
        let all = counts
            .iter()
            .enumerate()
            .filter(|(_, counts)| counts.stall_ps > 0);
        all.map(|(number, counts)| Wait {
            of: name(number),
            ns: counts.stall_ps / 1000 * factor,
        })
        .collect()
    }
}

impl Owners for Named {
    fn owner(&mut self, address: u64) -> u32 {
        let before = self.ranges.range(..=address).next_back();
        before
            .filter(|(_, (end, _))| address < *end)
            .map_or(0, |(_, (_, number))| *number)
    }
}
