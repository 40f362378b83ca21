//! Native programs, object by object: a recorded run is replayed with its objects where a plan puts them, in arenas of pages of
//! each memory. Fast memory is a budget; the rest of the machine is as it is.

mod address_map;
mod arena;
mod layout;
mod plans;
mod program;
mod tiers;

pub use layout::{Quotas, REST, Tally};
pub use plans::{By, PLANS, Plan, plan, quotas};

use crate::{Error, Measured, RunResult, RunSpec, Work};
pub use address_map::MOST_SITES;
use address_map::PAGE;
use layout::Layout;
use program::{PlacedProgram, SharedLayout};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tiers::{Tiers, Where};
use varve_machine::model::{self, OwnerCounts, Progress};
use varve_machine::{Bytes, Machine, Program};
use varve_pages::{Frames, Placement, Policy, Topology};
use varve_sites::Counts;
use varve_sites::native::{Frame, Key, Module, Profile};
use varve_trace::{CallSite, TraceReader};

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
    /// The most bytes of pages in use at a time; 0 if that was not looked at.
    pub most_bytes: u64,
    /// What there is to say of runs of pages too.
    #[serde(flatten)]
    pub run: RunResult,
    /// What the sites are called that matter most, with what is known of them and how much fast memory each may take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedSite>,
    /// By number of the site, what was counted of each.
    #[serde(skip)]
    pub sites: Vec<SiteCounts>,
}

/// A site and its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedSite {
    /// Its name for people.
    pub site: String,
    /// Fast memory that it may take, bytes.
    pub fast_quota_bytes: u64,
    /// What was counted of it in this very program.
    #[serde(flatten)]
    pub counts: Counts,
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
        Placed::Pages(policy) => (Layout::as_it_was(), Placement::new(policy, &machine, PAGE)?),
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
    let layout = layout.get();
    let count = layout.tallies().len().max(outcome.owners.len());
    let sites = (0..count).map(|site| SiteCounts {
        tally: layout.tallies().get(site).copied().unwrap_or_default(),
        waits: outcome.owners.get(site).copied().unwrap_or_default(),
    });
    Ok(ObjectResult {
        plan: spec.plan.clone(),
        budget_bytes: dram_bytes(&run.machine),
        most_bytes: peak.load(Relaxed) * PAGE,
        placed: Vec::new(),
        sites: sites.collect(),
        run: result,
    })
}

/// What sites are worth, by two replays that counted by site: one with all in fast memory, one with all in slow memory.
pub fn truth(fast: &ObjectResult, slow: &ObjectResult) -> Vec<Counts> {
    let zero = SiteCounts::default();
    let each = fast.sites.iter().enumerate().map(|(site, in_fast)| {
        let in_slow = slow.sites.get(site).unwrap_or(&zero);
        let (t, w) = (&in_fast.tally, &in_fast.waits);
        Counts {
            objects: t.objects,
            bytes: t.bytes,
            reads: t.reads,
            writes: t.writes,
            peak_bytes: t.peak_bytes,
            freed: t.freed,
            lifetime_bytes: t.lifetime_bytes,
            misses: w.misses,
            write_misses: w.store_misses,
            fast_ns: w.stall_ps / 1000,
            slow_ns: in_slow.waits.stall_ps / 1000,
            ..Counts::default()
        }
    });
    each.collect()
}

/// What all kinds of runs measure is read as if it stood here.
impl Deref for ObjectResult {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.run
    }
}

/// The sites of a recorded program, by number: first all memory that no site was told of.
///
/// # Errors
/// The trace cannot be read.
pub fn keys(trace: &Path) -> Result<Vec<Key>, Error> {
    let reader = TraceReader::open(trace)?;
    let heap = reader.sites().iter().map(|site| Key::Heap(stack(site)));
    Ok(std::iter::once(Key::Rest).chain(heap).collect())
}

/// The files in which a trace's allocation sites are.
pub fn modules(reader: &TraceReader) -> Vec<Module> {
    let mut paths: Vec<&str> = Vec::new();
    for site in reader.sites() {
        let calls = std::iter::once(site).chain(&site.callers);
        for call in calls.filter(|call| !call.module.is_empty()) {
            if !paths.contains(&&*call.module) {
                paths.push(&call.module);
            }
        }
    }
    let module = |path: &str| Module {
        name: path.rsplit('/').next().unwrap_or_default().into(),
        path: path.into(),
        ..Module::default()
    };
    paths.into_iter().map(module).collect()
}

/// A call site of a trace as frames, the innermost first.
fn stack(site: &CallSite) -> Vec<Frame> {
    let calls = std::iter::once(site).chain(&site.callers);
    calls.map(frame).collect()
}

fn frame(call: &CallSite) -> Frame {
    let name = call.module.rsplit('/').next().unwrap_or_default();
    Frame {
        module: name.into(),
        offset: call.offset,
        function: call.symbol.clone(),
        ..Frame::default()
    }
}

/// What a profile knows of the sites of a run, by their numbers, and how many of the run's sites it knows. Peaks are as many times
/// as large as the run's memory is larger than the profile's: the profile may be of another input.
pub fn known(profile: &Profile, keys: &[Key], most_bytes: u64) -> (Vec<Counts>, usize) {
    let of: HashMap<&Key, &Counts> = profile.sites.iter().map(|s| (&s.key, &s.counts)).collect();
    let all: u64 = profile.sites.iter().map(|s| s.counts.peak_bytes).sum();
    let ratio = most_bytes as f64 / all.max(1) as f64;
    let mut found = 0;
    let counts = keys.iter().map(|key| {
        let Some(&counts) = of.get(key) else {
            return Counts::default();
        };
        found += 1;
        Counts {
            peak_bytes: (counts.peak_bytes as f64 * ratio) as u64,
            ..counts.clone()
        }
    });
    (counts.collect(), found)
}
