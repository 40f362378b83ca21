//! Native programs, object by object: a recorded run is replayed with its objects where a plan puts them, in arenas of pages of
//! each memory. Fast memory is a budget; the rest of the machine is as it is.

mod address_map;
mod arena;
mod layout;
mod plans;
mod program;
mod tiers;

pub use layout::{Quotas, REST, Tally};
pub use plans::{By, PLANS, Plan, Worth, plan, quotas};

use crate::{Error, RunResult, RunSpec, Work};
use address_map::PAGE;
use layout::Layout;
use program::{PlacedProgram, SharedLayout};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tiers::{Tiers, Where};
use varve_machine::model::{self, OwnerCounts, Progress};
use varve_machine::{Bytes, Machine, Program};
use varve_pages::{Frames, Placement, Policy, Topology};

/// Where a recorded program's memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// All in fast memory, and as much of it as that takes.
    Fast,
    /// All in slow memory.
    Slow,
    /// Its pages, by a policy.
    Pages(String),
    /// Its objects by site, with so much fast memory for each.
    Sites(Quotas),
}

/// A replay of a recorded program.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// The machine, with two memories. The program has one socket of it.
    pub machine: Machine,
    /// The recorded program.
    pub trace: PathBuf,
    /// What the placement is called.
    pub plan: String,
    /// The placement.
    pub placed: Placed,
    /// Fast memory, bytes; None: what the socket has.
    pub budget: Option<u64>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether waits and misses are counted by site.
    pub by_site: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectResult {
    /// Plan.
    pub plan: String,
    /// Fast memory that there was, bytes.
    pub budget_bytes: u64,
    /// Bytes in fast memory at the end.
    pub fast_bytes: u64,
    /// Bytes in slow memory at the end.
    pub slow_bytes: u64,
    /// The most bytes of pages in use at a time; 0 if that was not looked at.
    pub most_bytes: u64,
    /// Bytes read from DRAM.
    pub fast_read_bytes: u64,
    /// Bytes written to DRAM.
    pub fast_written_bytes: u64,
    /// Bytes read from slow memory.
    pub slow_read_bytes: u64,
    /// Bytes written to slow memory.
    pub slow_written_bytes: u64,
    /// What there is to say of runs of pages too.
    #[serde(flatten)]
    pub run: RunResult,
    /// By number of the site, what was counted of each.
    #[serde(skip)]
    pub sites: Vec<SiteCounts>,
}

/// What a run shows of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteCounts {
    /// What the program did.
    pub tally: Tally,
    /// Its misses, and the waits for them.
    pub waits: OwnerCounts,
}

impl ObjectSpec {
    /// The machine of the run: one socket, with the budget as its DRAM.
    fn own_machine(&self) -> Machine {
        let mut m = self.machine.clone();
        m.sockets = 1;
        if let Some(bytes) = self.budget {
            let dimms = u64::from(m.dram.channels * m.dram.dimms_per_channel).max(1);
            m.dram.dimm_bytes = Bytes(bytes.div_ceil(dimms).next_multiple_of(PAGE).max(PAGE));
        }
        m
    }
}

/// DRAM of one socket, bytes.
fn dram_bytes(m: &Machine) -> u64 {
    m.dram.dimm_bytes.0 * u64::from(m.dram.channels * m.dram.dimms_per_channel)
}

/// Replays a recorded program. `watch` is called now and then and ends the run by returning `false`.
///
/// # Errors
/// A machine without two memories, a trace that cannot be read, a policy that does not go with the machine, a program that does
/// not fit; one line each.
pub fn run_objects(
    spec: &ObjectSpec,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<ObjectResult, Error> {
    let machine = spec.own_machine();
    if crate::has_one_memory(&machine) {
        return Err(Error::NoTiers(machine.name));
    }
    let topology = Topology::of(&machine, PAGE).map_err(varve_pages::Error::from)?;
    let peak = Arc::new(AtomicU64::new(0));
    let by_tier = |place| -> Placement {
        let frames = Frames::in_order(&topology);
        let policy: Box<dyn Policy> = Box::new(Tiers::new(place, &topology, peak.clone()));
        Placement::with(&spec.plan, topology.clone(), frames, policy)
    };
    let fast_pages = dram_bytes(&machine) / PAGE;
    let (layout, mut placement) = match &spec.placed {
        Placed::Fast => (Layout::as_it_was(), by_tier(Where::Fast)),
        Placed::Slow => (Layout::as_it_was(), by_tier(Where::Slow)),
        Placed::Pages(policy) => (
            Layout::as_it_was(),
            Placement::new(policy, &machine, PAGE)?,
        ),
        Placed::Sites(quotas) => (
            Layout::by_site(quotas.clone(), fast_pages),
            by_tier(Where::ByAddress),
        ),
    };
    let layout = SharedLayout::new(layout);
    let mut program = PlacedProgram::open(&spec.trace, layout.clone())?;
    let name = program.name();
    let mut run = RunSpec::new(machine, &spec.plan, Work::Trace(spec.trace.clone()));
    (run.page_bytes, run.seed) = (PAGE, spec.seed);
    let options = run.options();
    let programs: &mut [&mut dyn Program] = &mut [&mut program];
    let outcome = match spec.by_site {
        true => {
            let mut owners = layout.clone();
            model::run_by_owner(
                &run.machine,
                &mut placement,
                programs,
                &options,
                &mut owners,
                watch,
            )?
        }
        false => model::run(&run.machine, &mut placement, programs, &options, watch)?,
    };
    let result = RunResult::new(&run, &name, &placement, &outcome);
    let memory = outcome.last().memory();
    let layout = layout.get();
    let count = layout.tallies().len().max(outcome.owners.len());
    let sites = (0..count).map(|site| SiteCounts {
        tally: layout.tallies().get(site).copied().unwrap_or_default(),
        waits: outcome.owners.get(site).copied().unwrap_or_default(),
    });
    Ok(ObjectResult {
        plan: spec.plan.clone(),
        budget_bytes: dram_bytes(&run.machine),
        fast_bytes: result.placement.fast_pages * PAGE,
        slow_bytes: (result.placement.pages - result.placement.fast_pages) * PAGE,
        most_bytes: peak.load(Relaxed) * PAGE,
        fast_read_bytes: 64 * memory.dram.reads,
        fast_written_bytes: 64 * memory.dram.writes,
        slow_read_bytes: 64 * result.slow_reads,
        slow_written_bytes: 64 * result.slow_writes,
        sites: sites.collect(),
        run: result,
    })
}

/// What sites are worth, by two replays that counted by site: one with all in fast memory, one with all in slow memory.
pub fn worths(fast: &ObjectResult, slow: &ObjectResult) -> Vec<Worth> {
    let zero = SiteCounts::default();
    let each = fast.sites.iter().enumerate().map(|(site, in_fast)| {
        let in_slow = slow.sites.get(site).unwrap_or(&zero);
        let (t, w) = (&in_fast.tally, &in_fast.waits);
        Worth {
            objects: t.objects,
            peak_bytes: t.peak_bytes,
            misses: w.misses,
            store_misses: w.store_misses,
            costs_ns: (in_slow.waits.stall_ps as f64 - w.stall_ps as f64) / 1000.0,
        }
    });
    each.collect()
}
