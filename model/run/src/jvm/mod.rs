//! Stock Java virtual machines: a recorded run is replayed with each generation, metaspace and code in the memory that
//! a plan has for it. The agent of the recorder has reported their places and the pauses of the machine
//! (`varve_trace`).

mod plans;
mod program;
mod ranges;
mod result;

pub use plans::{By, PLANS, Plan, Sampled};
pub use result::{JavaResult, UseOfMemory};

use crate::catalogue::LiveSupport;
use crate::seen::{self, Eye, Lane, Wait};
use crate::steady::{self, SteadyPart};
use crate::{Error, InStep, Numa, Replayed, Seen, Spec, has_one_memory, scaled_policy};
use program::JavaProgram;
use ranges::Ranges;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use varve_access::Program;
use varve_machine::Machine;
use varve_machine::energy::Energy;
use varve_machine::model::{Options, Outcome, Progress};
use varve_pages::policies::ByTier;
use varve_pages::{Counting, Frames, Placement, Policy, Topology, policies};
use varve_spec::Bytes;
use varve_trace::{Collector, JavaMachine, Part, TraceReader, Use};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Does a command start a Java virtual machine? Scripts that do are known by their traces.
pub fn is_java(word: &OsStr) -> bool {
    Path::new(word).file_name() == Some(OsStr::new("java"))
}

/// Is it a trace in which a Java virtual machine runs, or was about to when it was cut off?
pub fn is_recorded_in(reader: &TraceReader) -> bool {
    let started = reader.header().command.first();
    let cut_early = reader.end().is_none() && started.is_some_and(|word| is_java(word.as_ref()));
    cut_early || !reader.java().is_empty()
}

/// A recorded run of a Java program.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its trace.
    pub trace: PathBuf,
    /// The virtual machine; of several the last one that began.
    pub java: JavaMachine,
    /// Threads that are busy at a time: instructions of all over those of the busiest one, to the nearest.
    pub busy: u32,
    /// Distinguishes it from other recordings whose runs are kept; `None` if no run is kept.
    pub identity: Option<String>,
    ranges: Arc<Ranges>,
}

impl Recorded {
    /// Opens a trace; `None` if no Java virtual machine runs in it.
    ///
    /// # Errors
    /// The trace cannot be read, or the machine's heap is not known: its collector is of another kind, or it maps its heap several
    /// times.
    pub fn open(trace: &Path) -> Result<Option<Recorded>, Error> {
        let reader = TraceReader::open(trace)?;
        let machines = reader.java();
        let Some(java) = machines.last().cloned() else {
            return Ok(None);
        };
        check(trace, &java)?;
        if matches!(reader.part(), Some(Part::Sample { .. } | Part::Thinning)) {
            return Err(Error::SampledJava(trace.into()));
        }
        let mut ranges = Ranges::default();
        for range in machines.iter().flat_map(|machine| &machine.ranges) {
            ranges.set(range.addr, range.bytes, range.what);
        }
        let mut threads = vec![0u64; reader.threads() as usize + 1];
        for block in reader.blocks() {
            threads[block.header.thread as usize] += block.header.instructions;
        }
        let busiest = threads.iter().copied().max().unwrap_or(0).max(1);
        // To the nearest: a compiler that works now and then beside four threads is no fifth one.
        let busy = (threads.iter().sum::<u64>() + busiest / 2) / busiest;
        Ok(Some(Recorded {
            trace: trace.into(),
            java,
            busy: u32::try_from(busy).unwrap_or(u32::MAX).max(1),
            identity: None,
            ranges: Arc::new(ranges),
        }))
    }
}

impl Recorded {
    /// Does a plan have the memory at an address in fast memory?
    pub fn is_fast(&self, by: &By, address: u64) -> bool {
        by.is_fast(self.ranges.at(address))
    }
}

/// Checks that the machine reported enough of its heap.
fn check(trace: &Path, java: &JavaMachine) -> Result<(), Error> {
    let refuse = |what: &str| {
        let trace = trace.display();
        Err(Error::Java(format!("{trace}: {what}")))
    };
    let count = |wanted| java.ranges.iter().filter(|r| r.what == wanted).count();
    match java.collector {
        Collector::Other => refuse(
            "the collector of this Java virtual machine is none of Serial, Parallel, G1 and ZGC, so that its heap is not known: take \
             one of these, such as -XX:+UseSerialGC",
        ),
        Collector::Z if count(Use::Heap) > 1 => refuse(
            "ZGC without generations maps its heap three times, which is three memories on the model: take JDK 21 with \
             -XX:+ZGenerational, a newer one, or another collector, such as -XX:+UseSerialGC",
        ),
        _ if count(Use::Young) + count(Use::Old) + count(Use::Heap) == 0 => refuse(
            "the Java virtual machine has not said where its heap is: record it again with another collector, such as \
             -XX:+UseSerialGC",
        ),
        _ => Ok(()),
    }
}

/// A replay of a recorded Java program.
#[derive(Clone, Debug)]
pub struct JavaSpec {
    /// The machine, with two memories. The instances have one socket of it.
    pub machine: Machine,
    /// The recorded program.
    pub recorded: Arc<Recorded>,
    /// The plan, `name` or `name:outside=slow`.
    pub plan: String,
    /// Fast memory of an instance, bytes; `None`: its part of the socket's.
    pub budget: Option<u64>,
    /// Instances alike that share the machine, each with all its threads. One is run, and the others load the memory as it does.
    pub instances: u32,
    /// Where threads and memory are.
    pub numa: Numa,
    /// The part of the run that is measured; none: all of it.
    pub steady: Option<SteadyPart>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether the result has the data for pictures; nothing else of it changes, and kept results have none.
    pub pictures: bool,
}

impl Spec for JavaSpec {
    type Result = JavaResult;
    type End = ();

    /// A command is recorded anew each time, and has none.
    fn identity(&self) -> Option<String> {
        let recorded = self.recorded.identity.as_ref()?;
        let steady = self.steady.as_ref();
        let steady = steady.map_or(String::new(), |part| format!(" {part:?}"));
        Some(format!(
            "{recorded} {} {} {} {:?} {} {} {}{steady}",
            self.recorded.busy,
            serde_json::to_string(&self.machine).unwrap_or_default(),
            self.plan,
            self.budget,
            self.instances,
            self.numa,
            self.seed
        ))
    }

    fn what(&self) -> String {
        let trace = self.recorded.trace.file_name().unwrap_or_default();
        format!(
            "{} under {}, {} at a time",
            trace.to_string_lossy(),
            self.plan,
            self.instances
        )
    }

    fn trace(&self) -> Option<Replayed<'_>> {
        let (path, code) = (&*self.recorded.trace, self.pictures);
        Some(Replayed { path, code })
    }

    fn run(
        &self,
        in_step: &InStep,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(JavaResult, ()), Error> {
        Ok((run_in_step(self, in_step, watch)?, ()))
    }
}

/// DRAM of one socket, bytes.
fn dram_bytes(m: &Machine) -> u64 {
    m.dram.dimm_bytes.0 * u64::from(m.dram.channels * m.dram.dimms_per_channel)
}

impl JavaSpec {
    /// Sockets whose cores the instances have.
    fn sockets(&self) -> u32 {
        match self.numa {
            Numa::Auto => self.machine.sockets,
            Numa::Local | Numa::Remote => 1,
        }
    }

    /// DRAM of a socket that each instance may take, bytes.
    fn share(&self) -> u64 {
        dram_bytes(&self.machine) / u64::from(self.instances.max(1))
    }

    /// Fast memory of an instance under a plan, bytes.
    fn fast_bytes(&self, by: &By) -> u64 {
        match (by, self.budget) {
            (By::Fast, _) | (_, None) => self.share(),
            (_, Some(budget)) => budget.min(self.share()),
        }
    }

    /// The machine of the run: an instance's part of the DRAM of a socket; one socket unless distance matters.
    fn own_machine(&self, by: &By) -> Machine {
        let mut m = self.machine.clone();
        if self.numa == Numa::Local {
            m.sockets = 1;
        }
        let dimms = u64::from(m.dram.channels * m.dram.dimms_per_channel).max(1);
        let each = self
            .fast_bytes(by)
            .div_ceil(dimms)
            .next_multiple_of(PAGE)
            .max(PAGE);
        m.dram.dimm_bytes = Bytes(each.min(m.dram.dimm_bytes.0));
        if let By::Pages(policy) = by {
            scaled_policy::machine_for(policy, &mut m);
        }
        m
    }

    /// Busy threads that share a core: cores take a second one when each has a first.
    fn per_core(&self) -> Result<u32, Error> {
        let core = &self.machine.core;
        let threads = self.instances.saturating_mul(self.recorded.busy);
        let cores = core.per_socket * self.sockets();
        // One instance is the recorded program, however many threads it has.
        if self.instances > 1 && threads > cores * core.threads {
            let room = cores * core.threads;
            return Err(Error::Java(format!(
                "--instances {}: a socket of `{}` has {room} hardware threads, and each instance keeps {} busy: run {} at most, or \
                 record it with fewer threads (-XX:ActiveProcessorCount=N)",
                self.instances,
                self.machine.name,
                self.recorded.busy,
                (room / self.recorded.busy).max(1)
            )));
        }
        Ok(threads.div_ceil(cores).clamp(1, core.threads))
    }
}

/// A run's pictures: pauses of all threads in one lane, and waits by use of memory.
fn seen_of(machine: &Machine, outcome: &Outcome, eye: &Eye) -> Seen {
    let mut seen = Seen::of(
        machine,
        outcome,
        &program::CLASSES.map(String::from),
        1,
        eye,
    );
    // They are pauses, which the lane shows.
    seen.rates.retain(|rate| rate.name != "requests");
    let is_pause = |lane: &Lane| lane.name.contains(", thread ");
    let (pauses, rest) = seen.lanes.into_iter().partition::<Vec<Lane>, _>(is_pause);
    let mut spans: Vec<_> = pauses.into_iter().flat_map(|lane| lane.spans).collect();
    spans.sort_by_key(|span| span.begin_ns);
    seen.lanes = rest;
    if !spans.is_empty() {
        let name = "collections".into();
        seen.lanes.push(Lane { name, spans });
    }
    let uses = Use::ALL.into_iter().map(Some).chain([None]);
    let waits = uses.filter_map(|what| {
        let counts = outcome.owners.get(program::owner(what) as usize)?;
        let name = what.map_or("outside", Use::name);
        let heap = !matches!(what, Some(Use::Metaspace | Use::Code) | None);
        let kind = if heap {
            "Java heap"
        } else {
            "outside of the heap"
        };
        Some(Wait {
            of: vec![kind.into(), name.into()],
            ns: counts.stall_ps / 1000,
        })
    });
    seen.waits = waits.filter(|wait| wait.ns > 0).collect();
    seen
}

fn run_in_step(
    spec: &JavaSpec,
    in_step: &InStep,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<JavaResult, Error> {
    let plan = PLANS.find(&spec.plan)?;
    let recorded = &spec.recorded;
    if let LiveSupport::Only(_, why) = plan.live {
        return Err(Error::Java(format!(
            "--plan {}: {why}: take it with --live",
            plan.name
        )));
    }
    if plan.by.by_generation() && !recorded.java.collector.has_generations() {
        return Err(Error::Java(format!(
            "--plan {}: parts of the heap of {} change their role, so that no generation has a place: this plan is for Serial and \
             Parallel (-XX:+UseSerialGC, -XX:+UseParallelGC)",
            plan.name,
            recorded.java.collector.name()
        )));
    }
    let by = match plan.by {
        By::Pages(policy) => {
            let budget = spec.fast_bytes(&By::Pages(policy.clone()));
            By::Pages(scaled_policy::for_run(&policy, spec.share(), budget))
        }
        by => by,
    };
    let machine = spec.own_machine(&by);
    if has_one_memory(&machine) || machine.dram_cache.is_some() {
        return Err(Error::NoSlowNode(machine.name));
    }
    if spec.numa != Numa::Local && machine.sockets < 2 {
        return Err(Error::OneSocket {
            machine: machine.name,
            numa: spec.numa,
        });
    }
    let options = Options {
        seed: spec.seed,
        replicas: spec.instances.max(1),
        spread: spec.numa == Numa::Auto,
        per_core: spec.per_core()?,
        sockets: vec![spec.numa.socket(0, machine.sockets)],
        ..Options::default()
    };
    let topology = Topology::of(&machine, PAGE).map_err(varve_pages::Error::from)?;
    let name = match &by {
        By::Pages(policy) => policy.clone(),
        _ => spec.plan.clone(),
    };
    let ranges = recorded.ranges.clone();
    let what = move |vpn: u64| ranges.at(vpn * PAGE);
    let (frames, policy): (Frames, Box<dyn Policy>) = match by {
        By::Pages(policy) => {
            let (_, given) = varve_spec::split(&policy);
            policies::entry(&policy)?.make(given, &topology)?
        }
        by => {
            let nodes = [false, true].map(|fast| topology.nodes_of(fast));
            let what = what.clone();
            let policy = ByTier::new(nodes, move |vpn| by.is_fast(what(vpn)))
                .or_other(true)
                .in_turn(spec.numa == Numa::Auto);
            (Frames::in_order(&topology), Box::new(policy))
        }
    };
    let owner = move |vpn| program::owner(what(vpn)) as usize;
    let placement = Placement::with(&name, topology, frames, policy);
    let mut placement = placement.counted(Counting::new(program::OWNERS, owner));
    let mut live = program::LiveRanges::default();
    let trace = in_step.program(Replayed {
        path: &recorded.trace,
        code: spec.pictures,
    })?;
    let steady = spec.steady.as_ref();
    let places = steady.map(SteadyPart::places).unwrap_or_default();
    let mut program = JavaProgram::new(trace.with_phases(&places), live.clone());
    let name = program.name();
    let programs: &mut [&mut dyn Program] = &mut [&mut program];
    let eye = Eye::new(spec.pictures, placement.topology());
    let mut outcome = seen::run(
        &machine,
        &mut placement,
        programs,
        &options,
        Some(&mut live),
        &eye,
        watch,
    )?;
    let most = placement.counting().map(Counting::most);
    let most = most.cloned().unwrap_or_default();
    // Of the whole run.
    let energy = Energy::of(&machine, &outcome).ok();
    let measured = steady.and_then(|_| steady::ends_with(&mut outcome));
    let mut result = JavaResult::new(spec, &machine, &name, &outcome, &most);
    result.measured.energy_j = energy.map(|energy| energy.total());
    result.steady = measured.and(steady).map(|part| part.run(&outcome));
    let (pages, slow) = (result.most_bytes / PAGE, result.slow_bytes / PAGE);
    let scale = scaled_policy::scale(placement.spec());
    result.measured.policy_scale = Some(scale).filter(|scale| *scale > 1);
    result.measured.undecided = scaled_policy::undecided(&spec.plan, &placement, pages, slow);
    if eye.looks() {
        let mut seen = seen_of(&machine, &outcome, &eye);
        seen.add_code(&outcome, &program, 1);
        result.seen = Some(Box::new(seen));
    }
    Ok(result)
}
