//! Everything that decides a result.

use crate::request::options::OnModel;
use crate::{Error, InStep, Replayed, RunResult, Work, keep, run_in_step};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use varve_machine::Machine;
use varve_machine::model::{Options, Progress};
use varve_pages::policies;
use varve_trace::Footprint;

/// Everything that decides a result, whether pages are placed ([`RunSpec`]) or objects (`varve_observed::ManagedSpec`).
pub trait Spec: Sync {
    /// Measurements.
    type Result: Serialize + DeserializeOwned + Clone + Send;
    /// Data that a run leaves besides, which is not kept.
    type End;

    /// A text that is the same for runs with the same result. None where the result depends on more than this.
    fn identity(&self) -> Option<String>;

    /// Description for people: the program and how it is placed.
    fn what(&self) -> String;

    /// The trace that it replays, if it replays one.
    fn trace(&self) -> Option<Replayed<'_>> {
        None
    }

    /// Makes the run, in step with others that replay its trace. `watch` is called now and then and ends it by returning `false`.
    ///
    /// # Errors
    /// The run's parts do not go together, or it did not end well.
    fn run(
        &self,
        in_step: &InStep,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(Self::Result, Self::End), Error>;
}

/// One run.
///
/// With a `scale` S the machine's capacities, pages and fixed costs and the workload's sizes are divided by S: S times
/// as fast to run, the same ratios. Results are given at full size again: times, moved bytes and counts times S.
/// The sizes of a trace do not shrink, so it is run on a machine that is scaled down *to it*, and its times are its
/// own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The machine at full size.
    pub machine: Machine,
    /// Page policy, `name` or `name:key=value,...`.
    pub policy: String,
    /// The program.
    pub work: Work,
    /// Page size, bytes: at full size for a workload, as it is for a trace or a command.
    pub page_bytes: u64,
    /// Divisor of every size, a power of two.
    pub scale: u32,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Threads that run on each core at once.
    pub per_core: u32,
    /// How the model runs it; times are at full size.
    #[serde(flatten)]
    pub on: OnModel,
    /// Time between two points of the timeline, ns at full size; it doubles whenever there are many. 0 takes none.
    pub point_ns: u64,
    /// Whether the result has the data for pictures; nothing else of it changes, and kept results have none.
    #[serde(skip)]
    pub pictures: bool,
    /// How much memory the trace touches, if it has been scanned: a run that can only end out of memory is not begun.
    #[serde(skip)]
    pub footprint: Option<Footprint>,
}

impl Spec for RunSpec {
    type Result = RunResult;
    type End = ();

    /// A trace counts by its content.
    fn identity(&self) -> Option<String> {
        let mut key = serde_json::to_string(self).unwrap_or_default();
        if let Work::Trace(path) = &self.work {
            key.push_str(&keep::digest(path).unwrap_or_default());
        }
        Some(key)
    }

    fn what(&self) -> String {
        let RunSpec {
            machine, policy, ..
        } = self;
        format!("{} under {policy} on {}", self.work.name(), machine.name)
    }

    fn trace(&self) -> Option<Replayed<'_>> {
        let code = self.pictures;
        match &self.work {
            Work::Trace(path) => Some(Replayed { path, code }),
            _ => None,
        }
    }

    fn run(
        &self,
        in_step: &InStep,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(RunResult, ()), Error> {
        Ok((run_in_step(self, in_step, watch)?, ()))
    }
}

impl RunSpec {
    /// A run at full size with 2 MiB pages, seed 1.
    pub fn new(machine: Machine, policy: &str, work: Work) -> RunSpec {
        RunSpec {
            machine,
            policy: policy.into(),
            work,
            page_bytes: 2 << 20,
            scale: 1,
            seed: 1,
            per_core: 1,
            on: OnModel::default(),
            point_ns: 0,
            pictures: false,
            footprint: None,
        }
    }

    /// When it ends at the latest, ns at full size.
    pub fn until_ns(&self) -> Option<u64> {
        self.on.until_s.map(|s| (s * 1e9) as u64)
    }

    /// The factor between the model's times and counts and those reported.
    pub(crate) fn factor(&self) -> u64 {
        match self.work {
            Work::Workload(_) => self.scale as u64,
            Work::Trace(_) | Work::Command(_) => 1,
        }
    }

    pub(crate) fn scaled_machine(&self) -> Result<Machine, Error> {
        if !self.scale.is_power_of_two() || self.scale > 1 << 16 {
            return Err(Error::Scale(self.scale));
        }
        Ok(self.machine.scaled(self.scale))
    }

    pub(crate) fn scaled_page_bytes(&self) -> Result<u64, Error> {
        let scaled = self.page_bytes / self.factor();
        if scaled < 4096 {
            let (page_bytes, scale) = (self.page_bytes, self.scale);
            return Err(Error::PageTooSmall {
                page_bytes,
                scaled,
                scale,
            });
        }
        Ok(scaled)
    }

    /// The policy with the run's scale, and its seed where it takes one and none is written.
    pub(crate) fn scaled_policy(&self) -> String {
        let mut text = self.policy.clone();
        let entry = policies::entry(&text).ok();
        let takes_seed = entry.is_some_and(|p| p.params.iter().any(|q| q.key == "seed"));
        let (scale, seed) = (u64::from(self.scale), self.seed);
        for (key, value, is_due) in [("scale", scale, scale > 1), ("seed", seed, takes_seed)] {
            if is_due && !varve_spec::gives(&text, key) {
                text = varve_spec::with(&text, key, value);
            }
        }
        text
    }

    pub(crate) fn options(&self) -> Options {
        let f = self.factor();
        Options {
            until_ns: self.until_ns().map(|ns| ns / f),
            snapshot_ns: if self.point_ns == 0 {
                0
            } else {
                (self.point_ns / f).max(1)
            },
            cores: self.on.cores,
            per_core: self.per_core,
            seed: self.seed,
            ..Options::default()
        }
    }
}
