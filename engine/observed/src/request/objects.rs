//! A WebAssembly program's objects under heap plans.

use super::{plans, usual_plans};
use crate::{ManagedProgram, ManagedSpec, PlanResult};
use std::sync::Arc;
use varve_machine::Machine;
use varve_machine::energy::Energy;
use varve_machine::model::nodes;
use varve_run::advice::{Advice, Size, of_energy, of_plans};
use varve_run::request::options::{Instances, Plans, Trays};
use varve_run::request::{BASE, Budgets, Fast, Limited, PlannedRun};
use varve_run::{Comparison, Error, Facts, Outcomes, Role, TrayOptions, has_one_memory};
use varve_runtime::{Config, plans as catalogue};
use varve_sites::Profile;
use varve_spec::Bytes;

/// A program on a modelled machine.
#[derive(Clone)]
pub struct ObjectsRequest {
    /// The machine.
    pub machine: Machine,
    /// The program, and its inputs.
    pub program: ManagedProgram,
    /// The engine's settings ([`super::Heap`]), with the profile that plans use.
    pub config: Config,
    /// The most memory of the program that was asked for, if it was.
    pub heap_max: Option<Bytes>,
    /// Heap plans (`None`: the few that tell most), and fast memory of the program's objects (`None`: all that the machine has). The
    /// profile is read into `config`.
    pub plans: Plans,
    /// Page size, bytes; `None`: 4 KiB.
    pub page_bytes: Option<u64>,
    /// Instances of the program that share the machine.
    pub instances: Instances,
    /// How memories are colours on DIMMs.
    pub trays: Trays,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether results have data for pictures.
    pub pictures: bool,
}

impl ObjectsRequest {
    /// One instance under the plans that tell most, seed 1, with all the fast memory that there is.
    pub fn new(machine: Machine, program: ManagedProgram) -> ObjectsRequest {
        ObjectsRequest {
            machine,
            program,
            config: Config::default(),
            heap_max: None,
            plans: Plans::default(),
            page_bytes: None,
            instances: Instances::default(),
            trays: Trays::default(),
            seed: 1,
            pictures: false,
        }
    }

    /// Are memories colours on DIMMs of this machine?
    pub fn colours(&self) -> bool {
        has_one_memory(&self.machine)
    }

    /// Checks the machine before the program runs.
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
        match &self.trays.trays {
            Some(_) if !self.colours() => Err(Error::NoTrays(self.machine.name.clone())),
            Some(text) => TrayOptions::parse(text).map_err(|e| Error::Asked(e.to_string())),
            None => Ok(TrayOptions::default()),
        }
    }

    /// Is a profile of this very run wanted, for plans by allocation sites, where none was given? Better than leaving such plans
    /// out: where memories are colours, or memory is short.
    pub fn wants_profile(&self) -> bool {
        let wanted = self.plans.plan.as_deref().unwrap_or(varve_spec::ALL);
        let of_use = self.colours() || self.plans.fast.is_some();
        of_use && wanted == varve_spec::ALL && self.config.profile.is_none()
    }

    /// Makes that profile, and uses it.
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
    /// A plan that is unknown, or that needs a profile where there is none.
    pub fn plans(&self) -> Result<Vec<String>, Error> {
        let profile: Option<&Profile> = self.config.profile.as_deref();
        match self.plans.plan.as_deref() {
            Some(list) => plans(list, profile, self.colours()),
            None => Ok(usual_plans(
                profile,
                self.colours(),
                self.program.reports_intervals(),
            )),
        }
    }

    /// One run for each plan, and for each budget of fast memory.
    ///
    /// # Errors
    /// As [`ObjectsRequest::check`] and [`ObjectsRequest::plans`].
    pub fn runs(&self) -> Result<ObjectRuns, Error> {
        let asked = self.plans()?;
        // The size of the program is known from a run in fast memory alone, so this run is the first.
        let shares = matches!(self.plans.fast, Some(Fast::Percent(_)));
        let plans: Vec<String> = match shares {
            true => asked.iter().filter(|plan| *plan != BASE).cloned().collect(),
            false => asked.clone(),
        };
        let limited: Vec<(String, Limited)> = plans
            .iter()
            .map(|plan| (plan.clone(), Limited::Asked))
            .collect();
        let mut config = self.config.clone();
        config.slower = self.instances.slower;
        // All plans, those without a budget too: a nursery that does not pay is no fair base.
        if self.plans.fast.is_some() {
            config.save_memory();
        }
        let base = ManagedSpec {
            config,
            page_bytes: self.page_bytes.unwrap_or(4096),
            instances: self.instances.instances,
            every: self.instances.co_run,
            numa: self.instances.numa,
            trays: self.tray_options()?,
            seed: self.seed,
            pictures: self.pictures,
            ..ManagedSpec::new(self.machine.clone(), BASE, self.program.clone())
        };
        Ok(ObjectRuns {
            budgets: Budgets::new(&limited, self.plans.fast.as_ref()),
            list: self.plans.plan.clone(),
            base,
            shares,
            asked,
            plans,
        })
    }
}

/// The runs of a request.
pub struct ObjectRuns {
    /// Budgets of the runs; where they are shares of memory, of those after the first.
    pub budgets: Budgets,
    /// The run with all in fast memory.
    pub base: ManagedSpec,
    list: Option<String>,
    /// Whether budgets are shares of the base run's size, so that it comes first.
    shares: bool,
    /// The plans that were asked for.
    pub asked: Vec<String>,
    /// The plans of the runs with budgets.
    plans: Vec<String>,
}

impl ObjectRuns {
    /// A run's plan, and its budget if it has one.
    fn run(&self, run: usize) -> Option<&PlannedRun> {
        self.budgets
            .runs
            .get(run.checked_sub(usize::from(self.shares))?)
    }

    /// The specification of a run.
    pub fn spec(&self, run: usize) -> ManagedSpec {
        let mut spec = self.base.clone();
        if let Some(run) = self.run(run) {
            spec.plan.clone_from(&self.plans[run.plan]);
            spec.config.fast_max = run.bytes.or(spec.config.fast_max);
        }
        spec
    }
}

impl Comparison for ObjectRuns {
    type Spec = ManagedSpec;

    fn names(&self) -> Vec<String> {
        let base = self.shares.then(|| BASE.to_string());
        let runs = self.budgets.runs.iter().map(|run| run.name.clone());
        base.into_iter().chain(runs).collect()
    }

    fn role(&self, run: usize) -> Role {
        let plan = self.run(run).map_or(BASE, |run| &*self.plans[run.plan]);
        let asked = self.asked.iter().any(|spec| spec == plan);
        Role::of(self.list.as_deref(), plan, asked)
    }

    fn facts(&self, run: usize) -> Facts {
        let planned = self.run(run);
        let plan = planned.map_or(BASE, |run| &*self.plans[run.plan]);
        let Ok(entry) = catalogue::entry(plan) else {
            return Facts::default();
        };
        let all = catalogue::plans();
        Facts {
            rank: all
                .iter()
                .position(|p| p.name == entry.name)
                .unwrap_or(all.len()),
            about: entry.about,
            advised: entry.name != BASE,
            linux: entry.name == catalogue::first_touch::ENTRY.name,
            budget: planned.and_then(|run| run.bytes),
        }
    }

    fn first(&self) -> Vec<ManagedSpec> {
        self.shares.then(|| self.base.clone()).into_iter().collect()
    }

    fn then(&mut self, first: &[Result<PlanResult, Error>]) -> Result<Vec<ManagedSpec>, Error> {
        if let Some(Ok(base)) = first.first() {
            self.budgets.set(base.most_bytes);
        }
        let first = first.len();
        Ok((0..self.budgets.runs.len())
            .map(|run| self.spec(first + run))
            .collect())
    }

    fn advise(&self, came: &Outcomes<PlanResult>, size: Size) -> Advice {
        match came.base() {
            Some(base) if base.trays.is_some() => of_energy(base, &came.shown(), size),
            Some(base) if base.plan == BASE => of_plans(self, came, base, size),
            _ => Advice::default(),
        }
    }
}
