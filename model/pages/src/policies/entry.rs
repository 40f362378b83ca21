//! Properties of a policy that are known without making it.

use varve_spec::{Param, Values, Want};

use super::daemon;
use crate::error::Error;
use crate::frames::Frames;
use crate::policy::Policy;
use crate::topology::Topology;
use crate::trays::DimmMap;

/// The word for a policy in errors.
pub(super) const KIND: &str = "page policy";

/// The parameter that every policy has.
pub const SCALE: Param = Param::new(
    "scale",
    Want::Count {
        min: 1,
        max: 1 << 40,
    },
    "1",
    "the machine is scaled down by this factor, pages included: sample period, daemon period and run length are divided by it, so that a page gets as many samples as at full size",
);

/// One policy: its name, parameters, needs, uses, and constructor.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in a specification, such as `static`.
    pub name: &'static str,
    /// One line: its effect.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// The machine that it needs.
    pub needs: Needs,
    /// Whether it differs from `first-touch` only where there are several nodes; `all` leaves it out elsewhere.
    pub several_nodes: bool,
    /// Whether a comparison may advise it.
    pub advised: Advised,
    /// The machines on which Linux itself places pages this way.
    pub linux: Option<Needs>,
    /// The command that places programs with it on this machine too, or the reason why it runs on the model alone.
    pub live: Live,
    /// Its inputs besides first touches of pages.
    pub observes: &'static [Observed],
    /// The parameter for the period of its daemon, if it has one.
    pub period: Option<&'static str>,
    /// Its own parameters; [`SCALE`] comes on top.
    pub params: &'static [Param],
    /// Makes it for a machine.
    pub build: Build,
}

/// A policy's input while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Sampled accesses, which distinguish hot pages from cold ones.
    Uses,
    /// Bytes that memory moves in a time.
    Traffic,
}

impl Observed {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Observed::Uses => "sampled accesses",
            Observed::Traffic => "bandwidth",
        }
    }
}

/// Makes a policy and the frames that it works on.
pub type Build = fn(&Values, &Topology) -> Result<Made, Error>;

/// A policy, and the frames that it works on.
pub type Made = (Frames, Box<dyn Policy>);

/// Whether a comparison may advise a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advised {
    /// Wherever it runs.
    Anywhere,
    /// Not under a DRAM cache: there it takes frames in order, which only a freshly booted system has.
    NotUnderCache,
    /// Nowhere: it is a limit to compare with, or about something other than time.
    Never,
}

/// How a policy places programs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Frames under a DRAM cache: `varve run --live`.
    Cache,
    /// Fast and slow nodes: `varve tier`.
    Nodes,
    /// Chosen frames, for pages that are there: `varve tier`.
    Frames,
    /// Nothing does; why.
    No(&'static str),
}

/// The machine that a policy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any machine.
    Any,
    /// DRAM as a cache of slow memory.
    MemoryMode,
    /// Fast and slow memory as nodes of their own.
    Flat,
    /// DIMMs that lie one after the other: channels that are not interleaved.
    Trays,
}

impl Entry {
    /// A policy that goes with any machine and has no parameters. It is not advised, and not for this machine.
    pub const fn new(name: &'static str, about: &'static str, build: Build) -> Entry {
        Entry {
            name,
            about,
            source: "",
            needs: Needs::Any,
            several_nodes: false,
            advised: Advised::Never,
            linux: None,
            live: Live::No("no way is known"),
            observes: &[],
            period: None,
            params: &[],
            build,
        }
    }

    /// Reads its parameters, `key=value,...`.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated, unreadable or missing.
    pub fn values(&self, given: &str) -> Result<Values, Error> {
        let values = Values::parse(KIND, self.name, self.params, &[SCALE], given)?;
        Ok(values)
    }

    /// Time between two wake-ups with these parameters, ns; none if it never wakes.
    ///
    /// # Errors
    /// As [`Entry::values`].
    pub fn wakes(&self, given: &str) -> Result<Option<u64>, Error> {
        let values = self.values(given)?;
        let period = self.period.map(|key| values.count(key));
        Ok(period.filter(|ns| *ns > 0))
    }

    /// Whether it decides by accessed pages, with these parameters.
    ///
    /// # Errors
    /// As [`Entry::values`].
    pub fn goes_by_use(&self, given: &str) -> Result<bool, Error> {
        let samples = self.values(given)?;
        let by_use = self.observes.contains(&Observed::Uses);
        let samples = by_use && samples.count(daemon::SAMPLE_PERIOD) > 0;
        Ok(samples && self.wakes(given)?.is_some())
    }

    /// Makes the policy with the parameters `given` for a machine.
    ///
    /// # Errors
    /// A wrong parameter, or a machine that it does not go with.
    pub fn make(&self, given: &str, topology: &Topology) -> Result<Made, Error> {
        let values = self.values(given)?;
        self.needs.check(self.name, topology)?;
        (self.build)(&values, topology)
    }

    /// Whether it can be had on a machine without saying more, so that `all` means it too.
    pub fn is_for(&self, topology: &Topology) -> bool {
        let asks = self.params.iter().any(|param| param.default.is_empty());
        let differs = !self.several_nodes || topology.nodes.len() > 1;
        !asks && differs && self.needs.check(self.name, topology).is_ok()
    }

    /// Whether a comparison on a machine with or without a DRAM cache may advise it.
    pub fn is_advised(&self, cached: bool) -> bool {
        match self.advised {
            Advised::Anywhere => true,
            Advised::NotUnderCache => !cached,
            Advised::Never => false,
        }
    }

    /// Whether Linux itself places pages this way on a machine with or without a DRAM cache.
    pub fn is_linux(&self, cached: bool) -> bool {
        match self.linux {
            Some(Needs::MemoryMode) => cached,
            Some(_) => !cached,
            None => false,
        }
    }
}

impl Needs {
    /// Does the policy `policy` go with `topology`?
    ///
    /// # Errors
    /// One line about the memory that the machine lacks.
    pub fn check(self, policy: &str, topology: &Topology) -> Result<(), Error> {
        let (fits, needs, mode) = match self {
            Needs::Any => return Ok(()),
            Needs::Trays => return DimmMap::of(topology).map(|_| ()).map_err(Error::from),
            Needs::MemoryMode => (
                topology.has_cache(),
                "a DRAM cache in front of slow memory",
                "memory-mode",
            ),
            Needs::Flat => (
                topology.has_tiers() && !topology.has_cache(),
                "fast and slow memory as separate nodes",
                "flat",
            ),
        };
        if fits {
            return Ok(());
        }
        let has = match (topology.has_cache(), topology.has_tiers()) {
            (true, _) => "its DRAM as a cache",
            (_, true) => "fast and slow nodes without a cache",
            _ => "only one kind of memory",
        };
        Err(Error::Unfit {
            policy: policy.into(),
            needs,
            has,
            mode,
        })
    }
}
