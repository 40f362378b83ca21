//! A program's pages under page policies.

use super::options::Pages;
use crate::advice::{Advice, Size, of_pages};
use crate::pipeline::{Comparison, Facts, Role};
use crate::{Error, Outcomes, RunResult, RunSpec, Work, policies_for};
use varve_machine::Machine;
use varve_pages::policies;
use varve_trace::{Footprint, TraceReader};

/// Scale of a workload when none is given: a 48 GB cache becomes 768 MB, a minute becomes a second.
const WORKLOAD_SCALE: u32 = 64;
/// First distance of two points on the timeline, ns of the machine; it grows with the run.
const POINT_NS: u64 = 10_000;

/// A workload, a trace or a command on a modelled machine.
#[derive(Clone, Debug)]
pub struct PagesRequest {
    /// The machine at full size.
    pub machine: Machine,
    /// The program.
    pub work: Work,
    /// Which policies, at which scale, and how the model runs the program.
    pub options: Pages,
    /// Page size, bytes, at full size for a workload; `None`: 2 MiB for a workload, else 4 KiB.
    pub page_bytes: Option<u64>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether results have the data for pictures.
    pub pictures: bool,
    /// How much memory the trace touches, if the caller has scanned it already.
    pub footprint: Option<Footprint>,
}

impl PagesRequest {
    /// All policies, with seed 1 and the defaults of the work.
    pub fn new(machine: Machine, work: Work) -> PagesRequest {
        PagesRequest {
            machine,
            work,
            options: Pages::default(),
            page_bytes: None,
            seed: 1,
            pictures: false,
            footprint: None,
        }
    }

    /// Does the scale depend on the contents of a trace?
    pub fn looks_into_trace(&self) -> bool {
        matches!(self.work, Work::Trace(_)) && self.options.scale.is_none()
    }

    /// The workload, under no policy yet; and the number of its accesses, if that is known.
    ///
    /// # Errors
    /// A scale that cannot be, a trace that cannot be read.
    pub fn base(&self) -> Result<(RunSpec, Option<u64>), Error> {
        let (scale, page, footprint) = self.sizes()?;
        if !scale.is_power_of_two() {
            return Err(Error::Scale(scale));
        }
        let factor = match self.work {
            Work::Workload(_) => u64::from(scale),
            Work::Trace(_) | Work::Command(_) => 1,
        };
        let mut spec = RunSpec::new(self.machine.clone(), "", self.work.clone());
        (spec.scale, spec.page_bytes) = (scale, page);
        spec.seed = self.seed;
        spec.on = self.options.on.clone();
        spec.point_ns = POINT_NS * factor;
        spec.pictures = self.pictures;
        spec.footprint = footprint;
        Ok((spec, footprint.map(|trace| trace.ops)))
    }

    /// The policies that are meant, for the run that [`PagesRequest::base`] gave.
    ///
    /// # Errors
    /// A policy that is unknown, or none that goes with the machine.
    pub fn policies(&self, base: &RunSpec) -> Result<Vec<String>, Error> {
        let machine = base.machine.scaled(base.scale);
        policies_for(&self.options.policy, &machine, scaled_page(base).max(4096))
    }

    /// One run for each policy.
    ///
    /// # Errors
    /// As [`PagesRequest::policies`].
    pub fn runs(&self, base: &RunSpec) -> Result<PageRuns, Error> {
        let of = |policy: String| RunSpec {
            policy,
            ..base.clone()
        };
        Ok(PageRuns {
            specs: self.policies(base)?.into_iter().map(of).collect(),
            list: self.options.policy.clone(),
        })
    }

    /// Scale and page size: those that were asked for, or the defaults of the work; and how much memory it touches, if
    /// that is known.
    fn sizes(&self) -> Result<(u32, u64, Option<Footprint>), Error> {
        let page = |default: u64| self.page_bytes.unwrap_or(default);
        match (&self.work, self.options.scale) {
            (Work::Workload(_), scale) => {
                Ok((scale.unwrap_or(WORKLOAD_SCALE), page(2 << 20), None))
            }
            (Work::Command(_), scale) => Ok((scale.unwrap_or(1), page(4096), None)),
            (Work::Trace(_), Some(scale)) => Ok((scale, page(4096), self.footprint)),
            (Work::Trace(path), None) => {
                let footprint = match self.footprint {
                    Some(footprint) => footprint,
                    None => Footprint::read(&TraceReader::open(path)?, 1)?,
                };
                let scale = fitting_scale(&self.machine, footprint.bytes());
                Ok((scale, page(4096), Some(footprint)))
            }
        }
    }
}

/// The runs of a request, which depend on no others.
pub struct PageRuns {
    /// One for each policy.
    pub specs: Vec<RunSpec>,
    list: String,
}

impl Comparison for PageRuns {
    type Spec = RunSpec;

    fn names(&self) -> Vec<String> {
        self.specs.iter().map(|spec| spec.policy.clone()).collect()
    }

    fn role(&self, run: usize) -> Role {
        Role::of(Some(&self.list), &self.specs[run].policy, true)
    }

    fn facts(&self, run: usize) -> Facts {
        let cached = self.specs[run].machine.dram_cache.is_some();
        let Ok(policy) = policies::entry(&self.specs[run].policy) else {
            return Facts::default();
        };
        let all = policies::policies();
        Facts {
            rank: all
                .iter()
                .position(|p| p.name == policy.name)
                .unwrap_or(all.len()),
            about: policy.about,
            advised: policy.is_advised(cached),
            linux: policy.is_linux(cached),
            budget: None,
        }
    }

    fn first(&self) -> Vec<RunSpec> {
        Vec::new()
    }

    fn then(&mut self, _: &[Result<RunResult, Error>]) -> Result<Vec<RunSpec>, Error> {
        Ok(self.specs.clone())
    }

    fn advise(&self, came: &Outcomes<RunResult>, _: Size) -> Advice {
        of_pages(self, came)
    }
}

/// The page on the scaled machine, bytes.
fn scaled_page(spec: &RunSpec) -> u64 {
    match spec.work {
        Work::Workload(_) => spec.page_bytes / u64::from(spec.scale),
        Work::Trace(_) | Work::Command(_) => spec.page_bytes,
    }
}

/// The power of two that makes the machine's fast memory about half of a trace's footprint: small enough that
/// placement matters, as when a full-size program fills a full-size machine.
fn fitting_scale(machine: &Machine, footprint: u64) -> u32 {
    let fast = machine
        .dram_cache
        .as_ref()
        .map_or(machine.dram_bytes(), |c| c.bytes.0);
    let wanted = (2.0 * fast as f64 / footprint.max(1) as f64).log2().round();
    1 << (wanted.clamp(0.0, 16.0) as u32)
}
