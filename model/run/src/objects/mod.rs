//! Native programs, object by object: a recorded run is replayed with its objects in the memory that a plan gives them. They keep their
//! addresses, so that plans differ in nothing else. Fast memory is a budget; the rest of the machine is as it is.

mod address_map;
mod arena;
pub mod colours;
mod groups;
mod hinted;
mod known;
mod layout;
mod live_bytes;
mod plans;
mod program;
mod tally;
mod tiers;
mod trace_sites;

pub use groups::Groups;
pub use known::Known;
pub use layout::{Quotas, REST};
pub use live_bytes::LiveBytes;
pub use plans::{By, PLANS, Plan, USUAL, site_plan};
pub use tally::Tally;

use crate::dimms::{self, PowerPoint, TrayUse};
use crate::seen::{self, Eye};
use crate::steady::{self, SteadyPart, SteadyRun};
use crate::{
    Compared, Error, InStep, Measured, Replayed, RunResult, RunSpec, Seen, Spec, TrayOptions, Work,
    scaled_policy,
};
pub use address_map::MOST_SITES;
use address_map::{LINE, PAGE};
use layout::Layout;
use program::{PlacedProgram, SharedLayout};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use tiers::SLOW_BASE;
pub use tiers::is_fast;
pub use trace_sites::TraceSites;
use varve_access::Program;
use varve_machine::Machine;
use varve_machine::energy::{CpuEnergy, Energy};
use varve_machine::model::{Outcome, OwnerCounts, Progress};
use varve_pages::policies::{ByTier, PageParts};
use varve_pages::trays::{DimmMap, TrayState};
use varve_pages::{Counting, Frames, Placement, Policy, Topology, policies};
use varve_sites::Counts;
use varve_sites::native::Key;
use varve_spec::Bytes;
use varve_trace::TraceProgram;

/// Where a recorded program's memory is.
#[derive(Clone, Debug, PartialEq)]
pub enum Placed {
    /// All in fast memory, and as much of it as that takes.
    Fast,
    /// All in slow memory.
    Slow,
    /// Its pages, by a policy, `name:key=value,...`.
    Pages(String),
    /// Its objects by groups of call stacks, with a quota of fast memory for each. The last is the memory of its pages under any plan, bytes.
    Sites(Groups, Quotas, u64),
    /// All in fast memory, as much as that takes, but anew in arenas by size.
    Arenas,
    /// In turn on all DIMMs of a machine with one memory, as channel interleaving does.
    Spread,
    /// Its objects by groups of call stacks on DIMMs of a machine with one memory: those with a quota are hot.
    Coloured(Groups, Quotas, TrayOptions),
}

/// A replay of a recorded program.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// The machine. The program has one socket of it.
    pub machine: Machine,
    /// The recorded program.
    pub trace: PathBuf,
    /// Sites of the program.
    pub sites: Arc<TraceSites>,
    /// Name of the placement.
    pub plan: String,
    /// The placement.
    pub placed: Placed,
    /// Fast memory, bytes; `None`: that of the socket.
    pub budget: Option<u64>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// The part of the run that is measured; none: the whole run.
    pub steady: Option<SteadyPart>,
    /// Whether a long run is replayed whole. If not, its beginning is, and windows of the rest, which stand for it.
    pub whole: bool,
    /// Whether waits and misses are counted by site.
    pub by_site: bool,
    /// Whether the result has the data for pictures; nothing else of it changes.
    pub pictures: bool,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectResult {
    /// Plan.
    pub plan: String,
    /// Fast memory that there was, bytes.
    pub budget_bytes: u64,
    /// The most bytes of pages in use at a time. The bytes in fast and in slow memory are of that time.
    pub most_bytes: u64,
    /// Measurements that runs of pages have too: of the steady state, if there is one.
    #[serde(flatten)]
    pub run: RunResult,
    /// The steady state, if it was found, beside the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRun>,
    /// The sites that matter most: their names, their counts, and the limit of fast memory of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedSite>,
    /// On a machine with one memory: energy of the processors by the machine's simple model, J; none if it has no data for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_j: Option<f64>,
    /// State of the DIMMs there; pages are those of the time at which there were most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trays: Option<TrayUse>,
    /// Power of each DIMM there over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power: Vec<PowerPoint>,
    /// Counts of each site, by its number.
    #[serde(skip)]
    pub sites: Vec<SiteCounts>,
    /// The memory of each site over the course of the run.
    #[serde(skip)]
    pub live: LiveBytes,
}

/// A site and its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedSite {
    /// Its name for people.
    pub site: String,
    /// Fast memory that it may take, bytes; none where pages are placed, whichever sites they hold.
    pub fast_quota_bytes: Option<u64>,
    /// Counts of it in this very program.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of a site in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteCounts {
    /// The program's accesses and allocations.
    pub tally: Tally,
    /// Its misses, and the waits for them, in the steady state, if there is one.
    pub waits: OwnerCounts,
    /// The same in the whole run.
    pub whole: OwnerCounts,
}

impl Spec for ObjectSpec {
    type Result = ObjectResult;
    type End = ();

    /// Counts of sites have no text, and a command is recorded anew each time.
    fn identity(&self) -> Option<String> {
        None
    }

    fn what(&self) -> String {
        let trace = self.trace.file_name().unwrap_or_default();
        format!("{} under {}", trace.to_string_lossy(), self.plan)
    }

    fn trace(&self) -> Option<Replayed<'_>> {
        Some(self.replayed())
    }

    fn run(
        &self,
        in_step: &InStep,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(ObjectResult, ()), Error> {
        Ok((run_in_step(self, in_step, watch)?, ()))
    }
}

impl Compared for ObjectResult {
    fn name(&self) -> &str {
        &self.plan
    }

    fn rename(&mut self, name: &str) {
        self.plan = name.into();
    }

    fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    fn warning(&self) -> Option<&str> {
        self.run.warning.as_deref()
    }

    fn steady(&self) -> Option<SteadyRun> {
        self.steady
    }

    fn seen(&self) -> Option<&Seen> {
        self.run.seen.as_deref()
    }
}

impl ObjectSpec {
    fn replayed(&self) -> Replayed<'_> {
        Replayed {
            path: &self.trace,
            code: self.pictures && self.by_site,
        }
    }

    /// The page policy of the run, if one decides: it samples more often by the ratio of the machine's fast memory to
    /// the run's.
    fn policy(&self) -> Option<String> {
        let Placed::Pages(policy) = &self.placed else {
            return None;
        };
        let whole = dram_bytes(&self.machine);
        let budget = self.budget.unwrap_or(whole);
        Some(scaled_policy::for_run(policy, whole, budget))
    }

    /// The machine of the run: one socket, with the budget as its DRAM.
    fn own_machine(&self) -> Machine {
        let mut m = self.machine.clone();
        m.sockets = 1;
        // Quotas hold the budget of sites, and a page of several has a place in each memory.
        let by_quota = matches!(self.placed, Placed::Sites(..));
        if let Some(bytes) = self.budget.filter(|_| !by_quota) {
            let dimms = u64::from(m.dram.channels * m.dram.dimms_per_channel).max(1);
            m.dram.dimm_bytes = Bytes(bytes.div_ceil(dimms).next_multiple_of(PAGE).max(PAGE));
        }
        if let Some(policy) = self.policy() {
            scaled_policy::machine_for(&policy, &mut m);
        }
        m
    }
}

/// DRAM of one socket, bytes.
fn dram_bytes(m: &Machine) -> u64 {
    m.dram.dimm_bytes.0 * u64::from(m.dram.channels * m.dram.dimms_per_channel)
}

/// The colours of page frames: those of one colour take the same places in the last-level cache.
fn colours_of(m: &Machine) -> u32 {
    let lines = PAGE / LINE;
    let sets = (m.llc.bytes.0 / LINE / u64::from(m.llc.ways)).max(1);
    let common = 1 << sets.trailing_zeros().min(lines.trailing_zeros());
    (sets / common) as u32
}

/// Where pages go, and on which DIMMs that is where they have colours.
struct Pages {
    frames: Frames,
    policy: Box<dyn Policy>,
    dimms: Option<DimmMap>,
}

/// Checks whether a machine can have objects on DIMMs of their own.
///
/// # Errors
/// It has slow memory, its channels are interleaved, it has fewer DIMMs than are to be hot, or nothing is known of its energy.
pub fn check_trays(machine: &Machine, settings: &TrayOptions) -> Result<(), Error> {
    if !crate::has_one_memory(machine) {
        return Err(Error::NoTrays(machine.name.clone()));
    }
    let topology = Topology::of(machine, PAGE).map_err(varve_pages::Error::from)?;
    let map = colours::dimms(&machine.name, &topology)?;
    colours::policy(&map, &topology, Some(settings))?;
    Energy::during(machine, 0.0, &[])?;
    Ok(())
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
    run_in_step(spec, &InStep::default(), watch)
}

fn run_in_step(
    spec: &ObjectSpec,
    in_step: &InStep,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<ObjectResult, Error> {
    let machine = spec.own_machine();
    let settings = match &spec.placed {
        Placed::Coloured(.., settings) => Some(settings),
        _ => None,
    };
    match (&spec.placed, settings) {
        (Placed::Spread | Placed::Coloured(..), settings) => {
            check_trays(&machine, settings.unwrap_or(&TrayOptions::all_dimms()))?;
        }
        _ if crate::has_one_memory(&machine) => return Err(Error::NoSlowNode(machine.name)),
        _ => {}
    }
    let topology = Topology::of(&machine, PAGE).map_err(varve_pages::Error::from)?;
    let pages = |(frames, policy)| Pages {
        frames,
        policy,
        dimms: None,
    };
    let by_tier = |wants_fast: fn(u64) -> bool| -> Pages {
        let nodes = [false, true].map(|fast| topology.nodes_of(fast));
        let policy = ByTier::new(nodes, wants_fast);
        pages((Frames::in_order(&topology), Box::new(policy)))
    };
    let by_colour = || -> Result<Pages, Error> {
        let map = colours::dimms(&machine.name, &topology)?;
        let placed = colours::policy(&map, &topology, settings)?;
        Ok(Pages {
            dimms: Some(map),
            ..pages(placed)
        })
    };
    let as_it_was = || Layout::as_it_was(&spec.sites);
    let in_arenas = |groups, quotas| Layout::in_arenas(&spec.sites, groups, quotas, u64::MAX);
    let (layout, pages) = match &spec.placed {
        Placed::Fast => (as_it_was(), by_tier(|_| true)),
        Placed::Slow => (as_it_was(), by_tier(|_| false)),
        Placed::Pages(_) => {
            let policy = spec.policy().unwrap_or_default();
            let (_, given) = varve_spec::split(&policy);
            let made = policies::entry(&policy)?.make(given, &topology)?;
            (as_it_was(), pages(made))
        }
        Placed::Sites(groups, quotas, _) => {
            let nodes = [true, false].map(|fast| topology.nodes_of(fast)[0]);
            let frames = Frames::in_order(&topology);
            let parts = PageParts::new(&frames, nodes, SLOW_BASE / PAGE, colours_of(&machine));
            (
                Layout::by_site(&spec.sites, groups.clone(), quotas.clone()),
                pages((frames, Box::new(parts))),
            )
        }
        Placed::Arenas => (
            in_arenas(Groups::default(), Quotas::default()),
            by_tier(|_| true),
        ),
        Placed::Spread => (as_it_was(), by_colour()?),
        // A DIMM that is full is the settings' matter, not the layout's.
        Placed::Coloured(groups, quotas, _) => {
            (in_arenas(groups.clone(), quotas.clone()), by_colour()?)
        }
    };
    let Pages {
        frames,
        policy,
        dimms,
    } = pages;
    let on_dimms = dimms.is_some();
    let called = spec.policy().unwrap_or_else(|| spec.plan.clone());
    let counting = match dimms {
        Some(dimms) => Counting::of_one().on(dimms),
        None => Counting::of_one(),
    };
    let placement = Placement::with(&called, topology, frames, policy);
    let mut placement = placement.counted(counting);
    let layout = SharedLayout::new(layout);
    let trace = in_step.program(spec.replayed())?;
    let steady = spec.steady.as_ref();
    let places = steady.map(SteadyPart::places).unwrap_or_default();
    let trace = match spec.whole {
        true => trace.with_phases(&places),
        false => trace.with_phases(&places).in_time(),
    };
    let mut program = PlacedProgram::new(trace, layout.clone());
    let name = program.name();
    let mut run = RunSpec::new(machine, &spec.plan, Work::Trace(spec.trace.clone()));
    (run.page_bytes, run.seed) = (PAGE, spec.seed);
    let mut options = run.options();
    if matches!(spec.placed, Placed::Sites(..)) {
        options.part_bit = Some(SLOW_BASE.trailing_zeros());
    }
    if on_dimms {
        options.snapshot_ns = dimms::FIRST_SNAPSHOT_NS;
    }
    let programs: &mut [&mut dyn Program] = &mut [&mut program];
    let eye = Eye::new(spec.pictures, placement.topology());
    let mut owners = layout.clone();
    let owners = spec.by_site.then_some(&mut owners as _);
    let mut outcome = seen::run(
        &run.machine,
        &mut placement,
        programs,
        &options,
        owners,
        &eye,
        watch,
    )?;
    let measured = steady.and_then(|_| steady::ends_with(&mut outcome));
    let mut result = RunResult::new(&run, &name, &placement, &outcome);
    if eye.looks() {
        let mut seen = Seen::of(&run.machine, &outcome, &[], 1, &eye);
        seen.add_code(&outcome, &program, 1);
        result.seen = Some(Box::new(seen));
    }
    // Programs free their memory before they end: their peak counts.
    let most = placement.counting().map(Counting::most);
    let most = most.cloned().unwrap_or_default();
    let (fast, slow) = match &spec.placed {
        // The page of several sites has a place in each memory, and counts there by its bytes.
        Placed::Sites(.., whole) => {
            let fast = layout.get().most_fast_bytes().min(most.fast() * PAGE);
            (fast, whole.saturating_sub(fast))
        }
        _ => (most.fast() * PAGE, most.slow() * PAGE),
    };
    (result.measured.fast_bytes, result.measured.slow_bytes) = (fast, slow);
    let written = match &spec.placed {
        Placed::Pages(policy) => policy,
        _ => &spec.plan,
    };
    let scale = scaled_policy::scale(placement.spec());
    result.measured.policy_scale = Some(scale).filter(|scale| *scale > 1);
    let pages = most.fast() + most.slow();
    result.measured.undecided = scaled_policy::undecided(written, &placement, pages, most.slow())
        .or_else(|| {
            scaled_policy::sees_windows(written, placement.spec(), outcome.sampled.as_ref())
        });
    let mut trays = None;
    if let Some(state) = placement.policy().trays().filter(|_| on_dimms) {
        let state = TrayState {
            pages: vec![most.dimms.clone()],
            ..state
        };
        trays = Some(TrayUse::of(&run.machine, &outcome, &state));
    }
    let layout = layout.get();
    let counted = layout.tallies().len().max(outcome.owners.len());
    // Sites without an access are there too.
    let count = counted.max(spec.sites.keys.len());
    let seen = outcome.sampled.as_ref().map_or(1.0, |s| s.times);
    // Objects are reported all over the run, and accesses in its windows only.
    let tally = |site: usize| {
        let tally = layout.tallies().get(site).copied().unwrap_or_default();
        Tally {
            reads: (tally.reads as f64 * seen) as u64,
            writes: (tally.writes as f64 * seen) as u64,
            ..tally
        }
    };
    let of = |owners: &[OwnerCounts], site: usize| owners.get(site).copied().unwrap_or_default();
    let sites = (0..count).map(|site| SiteCounts {
        tally: tally(site),
        waits: match measured {
            Some(_) => of(&outcome.last().owners, site),
            None => of(&outcome.owners, site),
        },
        whole: of(&outcome.owners, site),
    });
    Ok(ObjectResult {
        plan: spec.plan.clone(),
        budget_bytes: match (&spec.placed, spec.budget) {
            (Placed::Sites(..), Some(bytes)) => bytes,
            _ => dram_bytes(&run.machine),
        },
        most_bytes: fast + slow,
        steady: measured.and(steady).map(|part| part.run(&outcome)),
        placed: Vec::new(),
        cpu_j: on_dimms
            .then(|| processors(&run.machine, &outcome))
            .flatten(),
        trays,
        power: match on_dimms {
            true => dimms::power(&run.machine, &outcome),
            false => Vec::new(),
        },
        sites: sites.collect(),
        live: layout.live().clone(),
        run: result,
    })
}

/// A recorded program whose objects are where a profile and quotas have them, for a pager that goes by [`is_fast`].
/// `fast` is the limit of fast memory of all objects, bytes.
///
/// # Errors
/// The trace cannot be read.
pub fn placed(
    trace: &std::path::Path,
    profile: &varve_sites::native::Profile,
    quotas: Quotas,
    fast: u64,
) -> Result<Box<dyn Program>, Error> {
    let sites = TraceSites::read(trace)?;
    let mut groups = Groups::by_profile(&sites.keys, profile);
    // Which stacks mapped memory themselves is known of the profile alone.
    let mapping = |key: &Key| match key {
        Key::Heap(stack) => Key::Mapping(stack.clone()),
        other => other.clone(),
    };
    let mapped: Vec<Key> = sites.keys.iter().map(mapping).collect();
    let mapped = Groups::by_profile(&mapped, profile);
    let unknown = profile.sites.len() as u32;
    for (group, mapped) in groups.of.iter_mut().zip(mapped.of) {
        if *group == unknown {
            *group = mapped;
        }
    }
    let layout = Layout::in_arenas(&sites, groups, quotas, fast / PAGE);
    Ok(Box::new(PlacedProgram::new(
        TraceProgram::open(trace)?,
        SharedLayout::new(layout),
    )))
}

/// Energy of the processors of one socket, J.
fn processors(machine: &Machine, outcome: &Outcome) -> Option<f64> {
    let threads: f64 = outcome.thread_ns.iter().map(|&ns| ns as f64 / 1e9).sum();
    let energy = CpuEnergy::of(machine, outcome.ns as f64 / 1e9, &[threads]);
    energy.ok().map(|cpu| cpu.total())
}

/// The key of each site, from a replay.
pub fn keys(sites: &TraceSites, result: &ObjectResult) -> Vec<Key> {
    sites.keys_of(result.sites.iter().map(|site| &site.tally))
}

/// Costs and benefits of sites, by two replays that counted by site: one with all in fast memory, one with all in slow
/// memory. They are those of the steady state, if there is one.
pub fn truth(fast: &ObjectResult, slow: &ObjectResult) -> Vec<Counts> {
    counted(fast, slow, |site| &site.waits)
}

/// The same of the whole run.
pub fn whole_truth(fast: &ObjectResult, slow: &ObjectResult) -> Vec<Counts> {
    counted(fast, slow, |site| &site.whole)
}

fn counted(
    fast: &ObjectResult,
    slow: &ObjectResult,
    waits: fn(&SiteCounts) -> &OwnerCounts,
) -> Vec<Counts> {
    let zero = SiteCounts::default();
    let each = fast.sites.iter().enumerate().map(|(site, in_fast)| {
        let in_slow = slow.sites.get(site).unwrap_or(&zero);
        let (t, w) = (&in_fast.tally, waits(in_fast));
        Counts {
            objects: t.objects,
            bytes: t.bytes,
            // Instructions are fetched too, and misses are reads.
            reads: t.reads.max(w.misses),
            writes: t.writes.max(w.store_misses),
            peak_bytes: t.peak_bytes,
            freed: t.freed,
            lifetime_bytes: t.lifetime_bytes,
            misses: w.misses,
            write_misses: w.store_misses,
            fast_ns: w.stall_ps / 1000,
            slow_ns: waits(in_slow).stall_ps / 1000,
            ..Counts::default()
        }
    });
    each.collect()
}

/// Fields of [`Measured`] are read as fields of the result.
impl Deref for ObjectResult {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.run
    }
}
