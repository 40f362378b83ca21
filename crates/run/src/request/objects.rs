//! A WebAssembly program's objects under heap plans.

use super::{BASE, Fast, Shares, plans, usual_plans};
use crate::{Error, ManagedProgram, ManagedSpec, Numa, PlanResult, TrayOptions, has_one_memory};
use std::sync::Arc;
use varve_machine::energy::Energy;
use varve_machine::model::nodes;
use varve_machine::{Bytes, Machine};
use varve_runtime::Config;
use varve_sites::Profile;

/// A program on a modelled machine.
#[derive(Clone)]
pub struct ObjectsRequest {
    /// The machine.
    pub machine: Machine,
    /// The program, and what it is given.
    pub program: ManagedProgram,
    /// The engine's settings ([`super::EngineRequest`]), with the profile that plans go by.
    pub config: Config,
    /// The most memory of the program that was asked for, if it was.
    pub heap_max: Option<Bytes>,
    /// Heap plans: `all`, or specifications separated by commas; `None`: the few that tell most.
    pub plans: Option<String>,
    /// Fast memory of the program's objects; `None`: all that the machine has.
    pub fast: Option<Fast>,
    /// Page size, bytes; `None`: 4 KiB.
    pub page_bytes: Option<u64>,
    /// Instances of the program that share the machine.
    pub instances: u32,
    /// Whether every instance is run, and not one that stands for all.
    pub every: bool,
    /// Where threads and memory are.
    pub numa: Numa,
    /// How memories are colours on DIMMs, as a user writes it.
    pub trays: Option<String>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether results have what pictures are made of.
    pub pictures: bool,
}

/// The runs of a request.
pub struct ObjectRuns {
    /// Each run; those with shares of fast memory get their limits once the first has ended.
    pub specs: Vec<ManagedSpec>,
    /// What each is called: its plan, and its share where there are several.
    pub names: Vec<String>,
    /// Shares of the memory that the program takes, if they were asked for.
    pub shares: Option<Shares>,
}

impl ObjectsRequest {
    /// One instance under the plans that tell most, seed 1, with all the fast memory that there is.
    pub fn new(machine: Machine, program: ManagedProgram) -> ObjectsRequest {
        ObjectsRequest {
            machine,
            program,
            config: Config::default(),
            heap_max: None,
            plans: None,
            fast: None,
            page_bytes: None,
            instances: 1,
            every: false,
            numa: Numa::Local,
            trays: None,
            seed: 1,
            pictures: false,
        }
    }

    /// Are memories colours on DIMMs of this machine?
    pub fn colours(&self) -> bool {
        has_one_memory(&self.machine)
    }

    /// What is wrong with the machine, said before the program runs.
    ///
    /// # Errors
    /// A machine that plans do not go with, or that the heap does not fit into; trays that cannot be.
    pub fn check(&self) -> Result<(), Error> {
        let colours = self.colours();
        if colours && self.machine.dram.interleave_bytes.0 != 0 {
            return Err(Error::NoTiers(self.machine.name.clone()));
        }
        if colours {
            Energy::during(&self.machine, 0.0, &[])?;
        }
        if let Some(asked) = self.heap_max {
            let all: u64 = nodes(&self.machine).iter().map(|n| n.bytes).sum();
            if asked.0 > all {
                return Err(Error::Asked(format!(
                    "--heap-max {asked} is more than the {} of memory that `{}` has: give it less, or take a larger machine",
                    Bytes(all),
                    self.machine.name
                )));
            }
        }
        self.tray_options().map(drop)
    }

    fn tray_options(&self) -> Result<TrayOptions, Error> {
        match &self.trays {
            Some(_) if !self.colours() => Err(Error::NoTrays(self.machine.name.clone())),
            Some(text) => TrayOptions::parse(text).map_err(|e| Error::Asked(e.to_string())),
            None => Ok(TrayOptions::default()),
        }
    }

    /// Is a profile of this very run wanted, for plans by allocation sites, where none was given? Better than leaving such plans
    /// out.
    pub fn wants_profile(&self) -> bool {
        let wanted = self.plans.as_deref().unwrap_or(varve_spec::ALL);
        self.colours() && wanted == varve_spec::ALL && self.config.profile.is_none()
    }

    /// Makes that profile, and goes by it.
    ///
    /// # Errors
    /// A program that does not run.
    pub fn profile(&mut self) -> Result<(), varve_runtime::Error> {
        let config = Config {
            background: false,
            ..self.config.clone()
        };
        self.config.profile = Some(Arc::new(self.program.profile(config)?));
        Ok(())
    }

    /// The plans that are meant.
    ///
    /// # Errors
    /// A plan that is unknown, or that goes by a profile where there is none.
    pub fn plans(&self) -> Result<Vec<String>, Error> {
        let profile: Option<&Profile> = self.config.profile.as_deref();
        match self.plans.as_deref() {
            Some(list) => plans(list, profile, self.colours()),
            None => Ok(usual_plans(profile, self.colours())),
        }
    }

    /// One run for each plan, and for each share of fast memory.
    ///
    /// # Errors
    /// As [`ObjectsRequest::check`] and [`ObjectsRequest::plans`].
    pub fn runs(&self) -> Result<ObjectRuns, Error> {
        let trays = self.tray_options()?;
        let mut plans = self.plans()?;
        let mut config = self.config.clone();
        let mut shares = None;
        match &self.fast {
            None => {}
            Some(Fast::Size(bytes)) => config.fast_max = Some(bytes.0),
            Some(Fast::Percent(percents)) => {
                // What the program takes is known from a run in fast memory alone, so that this one is the first.
                let of = Shares::new(plans, percents);
                plans = of.runs();
                shares = Some(of);
            }
        }
        let spec = |plan: &String| ManagedSpec {
            config: config.clone(),
            page_bytes: self.page_bytes.unwrap_or(4096),
            instances: self.instances,
            every: self.every,
            numa: self.numa,
            trays: trays.clone(),
            seed: self.seed,
            pictures: self.pictures,
            ..ManagedSpec::new(self.machine.clone(), plan, self.program.clone())
        };
        Ok(ObjectRuns {
            specs: plans.iter().map(spec).collect(),
            names: shares.as_ref().map_or(plans, Shares::names),
            shares,
        })
    }
}

/// Results of some runs, in order; each stands for itself.
pub type PlanResults = Vec<Result<PlanResult, Error>>;

impl ObjectRuns {
    /// Makes all runs by `make`, which gets some of them and the number of the first. The first run is made before the others where
    /// they get shares of what it took.
    ///
    /// If that one fails, it is the only result.
    pub fn make(
        &mut self,
        mut make: impl FnMut(&[ManagedSpec], usize) -> PlanResults,
    ) -> PlanResults {
        let mut results = match &self.shares {
            None => make(&self.specs, 0),
            Some(shares) => {
                let mut results = make(&self.specs[..1], 0);
                if let [Ok(base)] = &results[..] {
                    let limits = shares.limits(base.most_bytes);
                    for (spec, limit) in self.specs[1..].iter_mut().zip(limits) {
                        spec.config.fast_max = Some(limit);
                    }
                    results.extend(make(&self.specs[1..], 1));
                }
                results
            }
        };
        for (result, name) in results.iter_mut().zip(&self.names) {
            if let Ok(result) = result {
                result.plan.clone_from(name);
            }
        }
        results
    }

    /// The result that shares of memory are of.
    pub fn base<'r>(&self, results: &'r PlanResults) -> Option<&'r PlanResult> {
        let first = results.first().and_then(|r| r.as_ref().ok());
        first.filter(|r| self.shares.is_some() && r.plan == BASE)
    }
}
