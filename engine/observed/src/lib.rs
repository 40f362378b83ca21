//! The engine observed: WebAssembly programs on a modelled machine, where each memory of their heaps' plan is a memory of the machine,
//! and on the memory nodes of this one.
//!
//! This is the one library that knows both the engine and the model.
//!
//! | file | job |
//! |---|---|
//! | the root | [`ManagedSpec`] in, [`PlanResult`] out |
//! | [`request`] | a user's request, as runs |
//! | [`registry`] | every plan and policy by name, those of heaps included |
//! | `program`, `access` | the start of a program, and its access to the system |
//! | `stream`, `pages`, `trays` | its accesses, and where its pages go |
//! | `member` | one of several programs on a model |
//! | `nodes` | a heap's memory on nodes of this machine |

mod access;
mod hosted;
mod member;
mod nodes;
mod pages;
mod parts;
mod program;
mod region;
pub mod registry;
pub mod request;
mod result;
mod shifts;
mod source_map;
mod stream;
mod trays;

pub use access::{Access, Folder};
pub use hosted::run_hosted;
pub use member::ManagedMember;
pub use nodes::OnNodes;
pub use pages::TIERS;
pub use program::{End, HostRun, ManagedProgram, SEED, unknown_sites};
pub use result::{GcStack, PlanResult, Turnaround};
pub use shifts::{Shifts, Who};
pub use source_map::SourceMap;

use pages::{TierPager, Tiers};
use parts::Parts;
use shifts::OnShift;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use varve_access::Pager;
use varve_machine::Machine;
use varve_machine::energy::Energy;
use varve_machine::model::{Options, Progress};
use varve_pages::{Placement, Topology};
use varve_run::dimms::{self, TrayUse};
use varve_run::seen::{self, Eye};
use varve_run::{Error, FailureLog, InStep, Numa, Spec, TrayOptions};
use varve_runtime::Config;

/// Everything that decides a managed program's result.
#[derive(Clone)]
pub struct ManagedSpec {
    /// The program.
    pub program: ManagedProgram,
    /// The engine's settings; its plan is [`ManagedSpec::plan`].
    pub config: Config,
    /// The machine.
    pub machine: Machine,
    /// The heap's plan, `name` or `name:key=value,...`.
    pub plan: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Instances of the program that share the machine, each on a core of its own.
    pub instances: u32,
    /// Whether every instance is run; otherwise one is, and the others load the memory as it does (symmetric replication).
    pub every: bool,
    /// For how long instances are run, and which of them when, where that is not all of them to their end.
    pub shifts: Option<Shifts>,
    /// Where threads and memory are.
    pub numa: Numa,
    /// How pages are put on DIMMs, on a machine with one memory whose DIMMs lie one after the other; the plan's memories are
    /// colours there.
    pub trays: TrayOptions,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether the result has data for pictures; nothing else of it changes, and saved results have none.
    pub pictures: bool,
}

impl Spec for ManagedSpec {
    type Result = PlanResult;
    type End = End;

    /// The contents of a region file are not part of it.
    fn identity(&self) -> Option<String> {
        if self.config.durable.is_some() {
            return None;
        }
        let mut hash = DefaultHasher::new();
        let p = &self.program;
        (&p.bytes, &p.arguments, &p.access).hash(&mut hash);
        (&p.invoke, &p.input, &p.file).hash(&mut hash);
        let shifts = self.shifts.as_ref().map(|shifts| format!(" {shifts:?}"));
        Some(format!(
            "{:016x} {:?} {} {} {} {} {} {} {:?} {}{}",
            hash.finish(),
            self.config,
            serde_json::to_string(&self.machine).unwrap_or_default(),
            self.plan,
            self.page_bytes,
            self.instances,
            self.every,
            self.numa,
            self.trays,
            self.seed,
            shifts.unwrap_or_default()
        ))
    }

    fn what(&self) -> String {
        let ManagedProgram {
            file, arguments, ..
        } = &self.program;
        let words = arguments.join(&b' ');
        let words = String::from_utf8_lossy(&words);
        format!(
            "{file} {words} under {}, {} at a time",
            self.plan, self.instances
        )
    }

    fn run(
        &self,
        _: &InStep,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(PlanResult, End), Error> {
        run_managed(self, watch)
    }
}

impl ManagedSpec {
    /// One instance with small pages, seed 1, near its memory.
    pub fn new(machine: Machine, plan: &str, program: ManagedProgram) -> ManagedSpec {
        ManagedSpec {
            program,
            config: Config::default(),
            machine,
            plan: plan.into(),
            page_bytes: 4096,
            instances: 1,
            every: false,
            shifts: None,
            numa: Numa::Local,
            trays: TrayOptions::default(),
            seed: 1,
            pictures: false,
        }
    }

    /// Instances that share a core: cores take a second one when each has a first.
    fn per_core(&self) -> u32 {
        let m = &self.machine;
        let sockets = match self.numa {
            Numa::Auto => m.sockets,
            Numa::Local | Numa::Remote => 1,
        };
        self.instances.div_ceil(m.core.per_socket * sockets)
    }

    /// Instances fit the machine, and the machine has the memories that plans need.
    fn check(&self) -> Result<(), Error> {
        let m = &self.machine;
        let cores = m.core.per_socket * m.core.threads;
        let room = match self.numa {
            Numa::Auto => cores * m.sockets,
            Numa::Local | Numa::Remote => cores,
        };
        if self.instances == 0 || self.instances > room {
            return Err(Error::Instances {
                machine: m.name.clone(),
                instances: self.instances,
                room,
                numa: self.numa,
            });
        }
        if self.numa != Numa::Local && m.sockets < 2 {
            return Err(Error::OneSocket {
                machine: m.name.clone(),
                numa: self.numa,
            });
        }
        Ok(())
    }
}

/// The page placement: by memory, or by colour.
enum Pages {
    Tiers(TierPager),
    Trays(Box<Placement>),
}

impl Pages {
    fn pager(&mut self) -> &mut dyn Pager {
        match self {
            Pages::Tiers(pager) => pager,
            Pages::Trays(placement) => &mut **placement,
        }
    }

    /// The most frames that were in use at a time, if that was counted.
    fn peak(&self) -> u64 {
        match self {
            Pages::Tiers(pager) => pager.peak(),
            Pages::Trays(_) => 0,
        }
    }

    /// Is the frame in DRAM, or hot?
    fn is_fast(&self, frame: u32) -> bool {
        match self {
            Pages::Tiers(pager) => pager.is_fast(frame),
            Pages::Trays(placement) => placement.policy().is_hot(frame),
        }
    }
}

/// Runs a managed program on the model. Returns the measurements, and how the first instance ended. `watch` is called now and then and ends the run
/// by returning `false`.
///
/// # Errors
/// A machine without slow memory of its own, or too small for the instances; pages that do not suit it; errors of the program, or of the model, such
/// as a memory that is full.
pub fn run_managed(
    spec: &ManagedSpec,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(PlanResult, End), Error> {
    spec.check()?;
    let machine = &spec.machine;
    let topology = Topology::of(machine, spec.page_bytes).map_err(varve_pages::Error::from)?;
    let on_trays = !topology.has_tiers();
    if spec.config.durable.is_some() {
        region::check(machine, topology.has_tiers())?;
    }
    if on_trays {
        // Before the program runs.
        Energy::during(machine, 0.0, &[])?;
    }
    if !on_trays && spec.trays != TrayOptions::default() {
        return Err(Error::NoTrays(machine.name.clone()));
    }
    let (run, not_run) = match spec.every || spec.shifts.is_some() {
        true => (spec.instances, 1),
        false => (1, spec.instances),
    };
    let tiers = Arc::new(Tiers::new(spec.page_bytes));
    let mut pager = match on_trays {
        true => Pages::Trays(Box::new(trays::placement(
            spec,
            &topology,
            Arc::clone(&tiers),
        )?)),
        false => Pages::Tiers(TierPager::new(
            &topology,
            Arc::clone(&tiers),
            spec.numa,
            not_run,
        )),
    };
    let eye = Eye::new(spec.pictures, &topology);
    let options = Options {
        seed: spec.seed,
        replicas: not_run,
        spread: spec.numa == Numa::Auto,
        instances_apart: spec.every,
        per_core: spec.per_core(),
        snapshot_ns: match on_trays {
            true => dimms::FIRST_SNAPSHOT_NS,
            false => 0,
        },
        sockets: (0..run)
            .map(|i| spec.numa.socket(i, machine.sockets))
            .collect(),
        ..Options::default()
    };
    let fast = u64::from(topology.frames_of(true)) * spec.page_bytes;
    let share = fast / u64::from(spec.instances);
    let config = Config {
        fast_max: Some(spec.config.fast_max.map_or(share, |most| most.min(share))),
        plan: Some(spec.plan.clone()),
        // The same every time.
        background: false,
        ..spec.config.clone()
    };
    let regions: Vec<_> = (0..run)
        .map(|_| region::Copy::of(&config))
        .collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let (mut threads, mut programs) = (Vec::new(), Vec::new());
        for (space, region) in regions.iter().enumerate() {
            let (sink, stream) = stream::pair(space, Arc::clone(&tiers));
            let config = region::Copy::settings(region.as_ref(), &config);
            let program = &spec.program;
            threads.push(scope.spawn(move || program.observed(config, spec.seed, Box::new(sink))));
            programs.push(OnShift::new(stream, spec.shifts.clone(), space as u32));
        }
        let mut streams: Vec<&mut dyn varve_access::Program> = Vec::new();
        streams.extend(programs.iter_mut().map(|p| p as &mut _));
        let mut parts = Parts;
        let owners = eye.looks().then_some(&mut parts as _);
        let pages = pager.pager();
        let outcome = seen::run(machine, pages, &mut streams, &options, owners, &eye, watch);
        // If the model has stopped early, the programs get the error when they pass the next accesses.
        drop(programs);
        let ends: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        let mut all = Vec::new();
        for end in ends {
            all.push(end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        let outcome = outcome?;
        let mut ends = Vec::new();
        for end in all {
            ends.push(end.map_err(|failed| Error::Managed {
                file: spec.program.file.clone(),
                error: failed.error,
                log: FailureLog::new(failed.err, &failed.phases),
            })?);
        }
        if let Some(failed) = ends.iter().position(|end| end.code != 0) {
            let end = ends.swap_remove(failed);
            return Err(Error::Exit {
                file: spec.program.file.clone(),
                code: end.code,
                log: FailureLog::new(end.err, &end.phases),
            });
        }
        let is_fast = |frame| pager.is_fast(frame);
        let mut result = PlanResult::new(spec, &outcome, &is_fast, &ends);
        let peak = pager.peak() * spec.page_bytes / u64::from(run);
        result.most_bytes = peak.max(result.fast_bytes + result.slow_bytes);
        if let Pages::Trays(placement) = &pager {
            result.trays = placement
                .policy()
                .trays()
                .map(|state| TrayUse::of(machine, &outcome, &state));
            result.power = dimms::power(machine, &outcome);
            (result.measured.energy_j, result.cpu_j) = result::of_sockets_in_use(spec, &outcome);
        }
        if eye.looks() {
            let seen = parts::seen(machine, &outcome, &ends[0], &eye);
            result.seen = Some(Box::new(seen));
        }
        // There is always a first one.
        Ok((result, ends.swap_remove(0)))
    })
}
