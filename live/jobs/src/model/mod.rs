//! A group on a modelled machine: its programs run together on shared caches, queues and memory.
//!
//! ```text
//! member.rs   a program of the group: waits for its turn, runs, says when it has ended
//! inside.rs   programs whose own memory is placed
//! stage.rs    what the programs share: whose turn it is, and when what happened
//! rooms.rs    pages: each program's in its memory, moved where another needs the room
//! run.rs      one run
//! profile.rs  demands, from each program alone
//! head.rs     the first part of a program, enough for its speed
//! ```

mod head;
mod inside;
mod member;
pub mod profile;
mod rooms;
mod run;
mod stage;

use crate::class::Limits;
use crate::error::Error;
use crate::group::{Group, Modelled};
use crate::plan::Host;
use crate::policy::place::Capacity;
use varve_access::Program;
use varve_machine::Machine;
use varve_observed::{ManagedMember, ManagedProgram};
use varve_pages::Topology;
use varve_spec::Bytes;

pub use inside::cannot;
pub use run::run;

/// The usual divisor of sizes and times: groups take minutes on a real machine, and as many seconds of ours at this scale.
pub const SCALE: u32 = 512;

/// Lines of 8 streams, 20 ahead, with as much room again for what is in use.
const LEAST_L2: Bytes = Bytes(32 << 10);

/// A modelled machine for groups.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The machine at full size.
    pub machine: Machine,
    /// Divisor of every size, a power of two.
    pub scale: u32,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
}

impl ModelSpec {
    /// A machine at the usual scale.
    pub fn new(machine: Machine) -> ModelSpec {
        ModelSpec {
            machine,
            scale: SCALE,
            seed: 1,
        }
    }

    /// The default scale for a group: [`SCALE`], and 1 where no program can be scaled.
    pub fn scale_for(group: &Group) -> u32 {
        let workload =
            |p: &crate::group::Program| p.modelled.as_ref().is_some_and(|m| !m.is_fixed());
        match group.programs.iter().any(workload) {
            true => SCALE,
            false => 1,
        }
    }

    /// The scaled machine. Second-level caches keep [`LEAST_L2`]: what the prefetcher fetches ahead does not become less by
    /// scaling, and would push itself out.
    fn scaled(&self) -> Machine {
        let mut m = self.machine.scaled(self.scale);
        m.l2.bytes = m.l2.bytes.max(self.machine.l2.bytes.min(LEAST_L2));
        m.llc.bytes = m.llc.bytes.max(m.l2.bytes);
        m
    }

    /// Bytes of a page on the scaled machine: of a large page, as far as pages can be that small.
    fn page_bytes(&self) -> u64 {
        ((2 << 20) / u64::from(self.scale)).max(4096)
    }

    fn topology(&self) -> Result<Topology, Error> {
        if !self.scale.is_power_of_two() || self.scale > 1 << 16 {
            return Err(varve_run::Error::Scale(self.scale).into());
        }
        let topology = Topology::of(&self.scaled(), self.page_bytes())
            .map_err(|e| varve_run::Error::from(varve_pages::Error::from(e)))?;
        match topology.has_tiers() {
            true => Ok(topology),
            false => Err(Error::OneMemory(self.machine.name.clone())),
        }
    }

    /// The machine as plans see it, at full size: one socket's cores, and the memory that the group may have.
    ///
    /// # Errors
    /// A machine with one memory; a group that asks for more than the machine has.
    pub fn host(&self, group: &Group) -> Result<Host, Error> {
        let topology = self.topology()?;
        let bytes = self.page_bytes() * u64::from(self.scale);
        let of = |fast| u64::from(topology.frames_of(fast)) * bytes;
        let m = &self.machine;
        let cores = m.core.per_socket;
        let wrong = |key: &str, what: String| {
            let remedy = "lower it, or leave it out for all that the machine has";
            Error::from(group.problem(usize::MAX, key, what, remedy))
        };
        if let Some(asked) = group.cores.filter(|&c| c > cores) {
            let what = format!("{asked} cores, and {} has {cores} on a socket", m.name);
            return Err(wrong("cores", what));
        }
        let mut room = [of(true), of(false)];
        let asked = [(group.fast, "fast"), (group.slow, "slow")];
        for (has, (asked, key)) in room.iter_mut().zip(asked) {
            if let Some(asked) = asked {
                if asked > *has {
                    let size = |b: u64| varve_report::fmt::bytes(b as f64);
                    let what = format!(
                        "{} of {key} memory, and {} has {}",
                        size(asked),
                        m.name,
                        size(*has)
                    );
                    return Err(wrong(key, what));
                }
                *has = asked;
            }
        }
        for (i, p) in group.programs.iter().enumerate() {
            let cores = group.cores.unwrap_or(cores);
            if p.threads > cores {
                let what = format!(
                    "{} threads, and {} has {cores} cores on a socket",
                    p.threads, m.name
                );
                return Err(group.problem(i, "threads", what, "lower it").into());
            }
        }
        Ok(Host {
            name: m.name.clone(),
            cores: group.cores.unwrap_or(cores),
            capacity: Capacity {
                fast: room[0],
                slow: room[1],
            },
            limits: Limits {
                slow_write_gbps: slow_write_gbps(m),
            },
            alike: false,
        })
    }

    /// A program of a group with `threads` threads, ready to run at this scale.
    fn program(&self, group: &Group, i: usize, threads: u32) -> Result<Box<dyn Program>, Error> {
        let wrong = |key: &str, what: String, remedy: &str| {
            Error::from(group.problem(i, key, what, remedy))
        };
        match &group.programs[i].modelled {
            Some(Modelled::Workload(line)) => {
                let mut line = line.clone();
                let (scale, seed) = (u64::from(self.scale), self.seed);
                for (key, value) in [
                    ("threads", threads.into()),
                    ("scale", scale),
                    ("seed", seed),
                ] {
                    if varve_spec::gives(&line, key) {
                        let remedy = "take it out: the plan, --scale and --seed say it";
                        let what = format!("the workload sets `{key}=` itself");
                        return Err(wrong("workload", what, remedy));
                    }
                    line = varve_spec::with(&line, key, value);
                }
                varve_workloads::build(&line).map_err(|e| {
                    wrong(
                        "workload",
                        e.to_string(),
                        "change it, or take a smaller --scale",
                    )
                })
            }
            Some(Modelled::Trace(file)) => match varve_trace::TraceProgram::open(file) {
                Ok(trace) if trace.stretches().is_some() => Err(wrong(
                    "trace",
                    format!(
                        "{}: only windows of the run were recorded, which stand for it where it runs alone",
                        file.display()
                    ),
                    "record all of it, or one part by `varve trace --skip --for`",
                )),
                Ok(trace) => Ok(Box::new(trace)),
                Err(e) => Err(wrong(
                    "trace",
                    e.to_string(),
                    "record it with `varve trace`",
                )),
            },
            Some(Modelled::Managed(file, words)) => {
                let bytes = std::fs::read(file).map_err(|e| {
                    let remedy = "name a WebAssembly module, such as those in programs/dist";
                    wrong("managed", format!("{}: {e}", file.display()), remedy)
                })?;
                let program = ManagedProgram::new(&file.display().to_string(), bytes)
                    .with_arguments(words.iter().map(String::as_str));
                Ok(Box::new(ManagedMember::new(program, self.page_bytes())))
            }
            None => Err(wrong(
                "name",
                "it has nothing to run on a model".into(),
                "give it `workload`, `trace` or `managed`, or run the group on this machine with --live",
            )),
        }
    }
}

/// GB/s that the slow memory of a machine writes.
fn slow_write_gbps(m: &Machine) -> Option<f64> {
    if let Some(pm) = &m.pm {
        return Some(pm.media_write_gbps * f64::from(pm.dimms));
    }
    None
}
