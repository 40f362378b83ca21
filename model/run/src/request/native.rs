//! A native program's memory under plans: a recorded run is replayed with its objects, or its pages, where each plan has them.

use super::options::{Plans, Stale, Trays};
use super::{BASE, Budgets, Limited, PlannedRun};
use crate::advice::course::{self, start_up_under};
use crate::advice::native::{fits, slow_sites};
use crate::advice::{Advice, EQUAL, Size, of_energy, of_plans};
use crate::objects::{
    self, By, Groups, Known, MOST_SITES, ObjectResult, ObjectSpec, PLANS, Placed, PlacedSite, Plan,
    Quotas, TraceSites, check_trays, colours, truth,
};
use crate::pipeline::{Comparison, Facts, Role};
use crate::steady::{Course, SteadyPart};
use crate::{Error, Outcomes, TrayOptions, has_one_memory, jvm};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use varve_machine::Machine;
use varve_sites::native::{Key, Module, Profile, names};
use varve_sites::{AnyProfile, Counts};
use varve_trace::{ColoredBytes, TraceReader};

/// The machine of native programs where none is named: a current one.
pub const NATIVE_MACHINE: &str = "cxl-spr";
/// The plan with all in slow memory, which no budget changes.
const SLOW: &str = "slow";
/// The least part of its time that a steady state must lose in slow memory for its sites to differ: what the model knows.
const COSTS: f64 = EQUAL - 1.0;
/// Limit of the sites in results.
const SITES: usize = 50;

/// A recorded native program on a modelled machine.
#[derive(Clone, Debug)]
pub struct NativeRequest {
    /// The machine. The program has one socket of it.
    pub machine: Machine,
    /// Plans: `None` are all that go with the machine, and fast memory without a given size is a quarter of the
    /// program's memory.
    pub plans: Plans,
    /// The profile of another run that [`Plans::profile`] names, for plans by site; `None`: they use the counts of this
    /// very run.
    pub profile: Option<Profile>,
    /// Whether that profile is of another build of the program.
    pub stale: Stale,
    /// How hot and cold sites become colours on DIMMs.
    pub trays: Trays,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether a long run is replayed whole. If not, its beginning is, and windows of the rest, which stand for it.
    pub whole: bool,
    /// Whether results have the data for pictures.
    pub pictures: bool,
}

impl NativeRequest {
    /// All plans with a quarter of the program's memory as fast memory, the whole run, seed 1.
    pub fn new(machine: Machine) -> NativeRequest {
        NativeRequest {
            machine,
            plans: Plans::default(),
            profile: None,
            stale: Stale::default(),
            trays: Trays::default(),
            seed: 1,
            whole: true,
            pictures: false,
        }
    }

    /// Finds errors of the request before a program is recorded for it.
    ///
    /// # Errors
    /// A machine that has no place for an object, a plan that is unknown or does not go with it, options that say nothing there.
    pub fn check(&self) -> Result<(), Error> {
        let machine = &self.machine;
        if machine.dram_cache.is_some() {
            return Err(Error::NoSlowNode(machine.name.clone()));
        }
        if self.stale.stale && self.profile.is_none() {
            return Err(Error::Asked(
                "--stale is about a profile of another build: name it with --sites FILE.sites"
                    .into(),
            ));
        }
        self.chosen()?;
        match (&self.plans.fast, has_one_memory(machine)) {
            (Some(fast), true) => Err(Error::Asked(format!(
                "--fast {fast}: machine `{}` has one memory and no budget: take --plan trays:capacity=5%, or --trays limit=8MiB",
                machine.name
            ))),
            (_, true) => check_trays(machine, &self.tray_options()?),
            (_, false) if self.trays.trays.is_some() => Err(Error::NoTrays(machine.name.clone())),
            (_, false) => Ok(()),
        }
    }

    fn tray_options(&self) -> Result<TrayOptions, Error> {
        match &self.trays.trays {
            Some(text) => TrayOptions::parse(text).map_err(|e| Error::Asked(e.to_string())),
            None => Ok(TrayOptions::default()),
        }
    }

    /// The plans that are meant.
    fn chosen(&self) -> Result<Vec<Plan>, Error> {
        let colours = has_one_memory(&self.machine);
        let able = |plan: &Plan| match plan.by {
            By::Fast | By::Hints => true,
            By::Colours(_) => colours,
            _ => !colours,
        };
        let list = self.plans.plan.as_deref().unwrap_or(varve_spec::ALL);
        let chosen = PLANS
            .list(list, able)
            .map_err(|e| named_elsewhere(list, e))?;
        match chosen.iter().find(|plan| !able(plan)) {
            Some(plan) if colours => Err(Error::Asked(format!(
                "--plan {}: machine `{}` has no slow memory: take dram and trays there, or another machine, such as cxl-spr",
                plan.spec, self.machine.name
            ))),
            Some(_) => Err(Error::NoTrays(self.machine.name.clone())),
            None => Ok(chosen),
        }
    }

    /// The plans without the one that goes by what the program said of its memory, if it said nothing.
    fn hinted(&self, plans: Vec<Plan>, said: Option<ColoredBytes>) -> Result<Vec<Plan>, Error> {
        let list = self.plans.plan.as_deref().unwrap_or(varve_spec::ALL);
        let goes = |plan: &Plan| said.is_some() || !matches!(plan.by, By::Hints);
        match plans.iter().find(|plan| !goes(plan)) {
            Some(plan) if varve_spec::list(list).contains(&plan.spec) => {
                Err(Error::Asked(format!(
                    "--plan {}: the program called none of its memory hot or cold, or its trace is cut short: it is to call varve_mcolor or varve_malloc of varve.h",
                    plan.spec
                )))
            }
            _ => Ok(plans.into_iter().filter(goes).collect()),
        }
    }

    /// One run for each plan, and for each budget.
    ///
    /// # Errors
    /// As [`NativeRequest::check`]; a trace that cannot be read, or that has too many sites.
    pub fn runs(&self, trace: &Path) -> Result<NativeRuns, Error> {
        self.check()?;
        let sites = TraceSites::read(trace)?;
        if sites.keys.len() > MOST_SITES {
            return Err(Error::Asked(format!(
                "{}: {} allocation sites, at most {MOST_SITES} can be distinguished",
                trace.display(),
                sites.keys.len()
            )));
        }
        let plans = self.hinted(self.chosen()?, sites.colors)?;
        // With one memory the energy of all of the run counts.
        let course = match has_one_memory(&self.machine) {
            true => Course::Unknown,
            false => Course::of(&TraceReader::open(trace)?),
        };
        let first: &[&str] = match has_one_memory(&self.machine) {
            true => &[BASE],
            false => &[BASE, SLOW],
        };
        let others = plans.iter().filter(|plan| !first.contains(&plan.name));
        let others: Vec<Plan> = others.cloned().collect();
        let limited = |plan: &Plan| match plan.by {
            By::Fast | By::Slow | By::Arenas | By::Colours(_) => Limited::Never,
            By::Hints if has_one_memory(&self.machine) => Limited::Never,
            By::Hints | By::Pages(_) | By::Sites(_) | By::Truth(_) => Limited::Always,
        };
        let named: Vec<(String, Limited)> = others
            .iter()
            .map(|plan| (plan.spec.clone(), limited(plan)))
            .collect();
        Ok(NativeRuns {
            budgets: Budgets::new(&named, self.plans.fast.as_ref()),
            list: self.plans.plan.clone(),
            asked: plans.into_iter().map(|plan| plan.spec).collect(),
            first,
            plans: others,
            trays: self.tray_options()?,
            request: self.clone(),
            trace: trace.into(),
            sites: Arc::new(sites),
            course,
            keys: Vec::new(),
            stacks: Vec::new(),
            own: Seen::default(),
            known: Seen::default(),
            notes: Vec::new(),
            quotas: Vec::new(),
        })
    }
}

/// A profile of a native program.
///
/// # Errors
/// It cannot be read, or is of a program of another kind.
pub fn native_profile(path: &Path) -> Result<Profile, Error> {
    let shown = path.display();
    match AnyProfile::read(path).map_err(|e| Error::Asked(e.to_string()))? {
        AnyProfile::Native(profile) => Ok(profile),
        AnyProfile::Managed(_) => Err(Error::Asked(format!(
            "{shown}: a profile of a WebAssembly program; make one of this program with `varve profile -o FILE.sites -- COMMAND`"
        ))),
        AnyProfile::Java(_) => Err(Error::Asked(format!(
            "{shown}: a profile of a Java program, whose objects are placed by generation: leave --sites out, and take --plan kg-n"
        ))),
    }
}

/// The error for a plan that exists, but for other programs: it names them.
fn named_elsewhere(list: &str, e: Error) -> Error {
    let all = varve_spec::list(list);
    let java = |spec: &&String| PLANS.find(spec).is_err() && jvm::PLANS.find(spec).is_ok();
    match all.iter().find(java) {
        Some(spec) => Error::Asked(format!(
            "--plan {spec}: is for Java virtual machines, and none has reported its heap here: record one with `varve trace -o FILE -- java \
             ...`"
        )),
        None => e,
    }
}

/// The runs of a request.
pub struct NativeRuns {
    /// Budgets of the runs after the first ones.
    pub budgets: Budgets,
    /// The course of the run: the steady state is what is measured, if there is one.
    pub course: Course,
    /// The key of each stack of the program; known from the first runs on.
    pub keys: Vec<Key>,
    /// Cost and benefit of each, by the first runs.
    pub stacks: Vec<Counts>,
    /// Notes about the profile.
    pub notes: Vec<String>,
    list: Option<String>,
    /// The plans that were asked for.
    asked: Vec<String>,
    /// Plans whose runs come first: budgets, and the costs and benefits of sites, depend on them.
    first: &'static [&'static str],
    /// The plans of all other runs.
    plans: Vec<Plan>,
    trays: TrayOptions,
    /// The request.
    pub request: NativeRequest,
    trace: PathBuf,
    sites: Arc<TraceSites>,
    /// Sites as this very run shows them.
    own: Seen,
    /// Sites as plans know them: by the profile, if there is one.
    known: Seen,
    /// By run after the first ones, the fast memory of each site; `None` for plans that do not place by sites.
    quotas: Vec<Option<Quotas>>,
}

/// Sites, and their counts.
#[derive(Clone, Default)]
struct Seen {
    groups: Groups,
    /// Counts that plans decide by.
    counts: Vec<Counts>,
    /// Counts of this very run.
    truth: Vec<Counts>,
}

impl NativeRuns {
    /// The sites of this very run, with the cost and benefit of each; known from the first runs on.
    pub fn sites(&self) -> (&Groups, &[Counts]) {
        (&self.own.groups, &self.own.counts)
    }

    /// Programs and libraries of the run.
    pub fn modules(&self) -> &[Module] {
        &self.sites.modules
    }

    /// The part of the run that is measured, if it is not the whole.
    pub fn steady(&self) -> Option<&SteadyPart> {
        self.course.steady()
    }

    /// Whether all in one memory was the machine's only choice, so that sites differ by DIMM.
    fn colours(&self) -> bool {
        self.first.len() == 1
    }

    fn spec(&self, plan: &str, placed: Placed, budget: Option<u64>, by_site: bool) -> ObjectSpec {
        ObjectSpec {
            machine: self.request.machine.clone(),
            trace: self.trace.clone(),
            sites: self.sites.clone(),
            plan: plan.into(),
            placed,
            budget,
            seed: self.request.seed,
            steady: self.steady().cloned(),
            whole: self.request.whole,
            by_site,
            pictures: self.request.pictures,
        }
    }

    /// A run's plan and budget, by its number.
    fn run(&self, run: usize) -> Option<(&Plan, &PlannedRun)> {
        let run = self.budgets.runs.get(run.checked_sub(self.first.len())?)?;
        Some((&self.plans[run.plan], run))
    }

    /// Takes the counts of sites from the first runs.
    fn look(
        &mut self,
        dram: &ObjectResult,
        slow: Result<&ObjectResult, &Error>,
    ) -> Result<(), Error> {
        self.keys = objects::keys(&self.sites, dram);
        // With one memory nothing is known of another one: misses count.
        self.stacks = truth(dram, slow.unwrap_or(dram));
        if slow.is_err() {
            for counts in &mut self.stacks {
                (counts.fast_ns, counts.slow_ns) = (0, 0);
            }
            self.notes.push(format!(
                "Sites count by their misses: their cost in slow memory is unknown, since `{SLOW}` did not run."
            ));
        }
        let decisive = self.decisive(dram, slow.ok());
        let decisive = decisive.as_ref().unwrap_or(&self.stacks);
        let groups = Groups::by_heat(&self.keys, decisive);
        self.own = Seen {
            truth: groups.sum(&self.stacks, &dram.live),
            counts: groups.sum(decisive, &dram.live),
            groups,
        };
        self.known = match &self.request.profile {
            None => self.own.clone(),
            Some(profile) => {
                let known = Known {
                    profile,
                    stale: self.request.stale.stale,
                    otherwise: if self.colours() { "hot" } else { SLOW },
                };
                let (groups, counts) =
                    known.of(&self.keys, &self.stacks, &dram.live, &mut self.notes)?;
                Seen {
                    truth: groups.sum(&self.stacks, &dram.live),
                    groups,
                    counts,
                }
            }
        };
        Ok(())
    }

    /// The counts that sites are chosen by, where these are not those of the steady state: if that costs nothing in slow memory, the
    /// start-up may still do.
    fn decisive(
        &mut self,
        dram: &ObjectResult,
        slow: Option<&ObjectResult>,
    ) -> Option<Vec<Counts>> {
        let slow = slow.filter(|slow| slow.steady.is_some())?;
        let more = slow.seconds - dram.seconds;
        if more > COSTS * dram.seconds {
            return None;
        }
        self.notes.push(
            "Slow memory costs next to nothing in the steady state: plans by site go by the start-up."
                .into(),
        );
        Some(objects::whole_truth(dram, slow))
    }

    /// The placement of the sites by a plan, and the fast memory of each.
    fn placed(&self, plan: &Plan, budget: u64, whole: u64) -> (Placed, Option<Quotas>) {
        match &plan.by {
            By::Fast => (Placed::Fast, None),
            By::Slow => (Placed::Slow, None),
            By::Arenas => (Placed::Arenas, None),
            By::Pages(policy) => (Placed::Pages(policy.clone()), None),
            By::Sites(choose) => {
                let quotas = choose.quotas(&self.known.counts, budget);
                let placed = Placed::Sites(self.known.groups.clone(), quotas.clone(), whole);
                (placed, Some(quotas))
            }
            By::Truth(choose) => {
                let quotas = choose.quotas(&self.own.counts, budget);
                let placed = Placed::Sites(self.own.groups.clone(), quotas.clone(), whole);
                (placed, Some(quotas))
            }
            By::Hints => {
                let groups = Groups::by_hints(self.sites.keys.len());
                let bytes = match self.colours() {
                    // On DIMMs what is not known is hot.
                    true => vec![u64::MAX, u64::MAX, 0],
                    false => vec![0, budget, 0],
                };
                let quotas = Quotas { bytes };
                let placed = match self.colours() {
                    true => Placed::Coloured(groups, quotas, self.trays.clone()),
                    false => Placed::Sites(groups, quotas, whole),
                };
                (placed, None)
            }
            By::Colours(capacity) => {
                let quotas = colours::colours(&self.known.counts, *capacity);
                let groups = self.known.groups.clone();
                let placed = Placed::Coloured(groups, quotas.clone(), self.trays.clone());
                (placed, Some(quotas))
            }
        }
    }
}

impl Comparison for NativeRuns {
    type Spec = ObjectSpec;

    fn names(&self) -> Vec<String> {
        let first = self.first.iter().map(|name| name.to_string());
        let rest = self.budgets.runs.iter().map(|run| run.name.clone());
        first.chain(rest).collect()
    }

    fn role(&self, run: usize) -> Role {
        let plan = match self.first.get(run) {
            Some(name) => name,
            None => match self.run(run) {
                Some((plan, _)) => &*plan.spec,
                None => return Role::Hidden,
            },
        };
        let asked = self.asked.iter().any(|spec| spec == plan);
        Role::of(self.list.as_deref(), plan, asked)
    }

    fn facts(&self, run: usize) -> Facts {
        let found = |name: &&str| PLANS.find(name).ok();
        match (self.run(run), self.first.get(run).and_then(found)) {
            (Some((plan, run)), _) => plan.facts(&PLANS, run.bytes),
            (None, Some(plan)) => plan.facts(&PLANS, None),
            (None, None) => Facts::default(),
        }
    }

    fn first(&self) -> Vec<ObjectSpec> {
        let placed = |name: &&str| match (*name, self.colours()) {
            (SLOW, _) => Placed::Slow,
            (_, true) => Placed::Spread,
            (_, false) => Placed::Fast,
        };
        let spec = |name: &&str| self.spec(name, placed(name), None, true);
        self.first.iter().map(spec).collect()
    }

    fn then(&mut self, first: &[Result<ObjectResult, Error>]) -> Result<Vec<ObjectSpec>, Error> {
        let Some(Ok(dram)) = first.first() else {
            return Ok(Vec::new());
        };
        let last = first.last().unwrap_or(&first[0]);
        self.look(dram, last.as_ref())?;
        self.budgets.set(dram.most_bytes);
        let (mut specs, mut quotas) = (Vec::new(), Vec::new());
        for run in &self.budgets.runs {
            let budget = run.bytes.unwrap_or(dram.most_bytes);
            let (placed, of) = self.placed(&self.plans[run.plan], budget, dram.most_bytes);
            quotas.push(of);
            specs.push(self.spec(&run.name, placed, run.bytes, false));
        }
        self.quotas = quotas;
        Ok(specs)
    }

    /// The sites that take most, with the fast memory that each may take.
    fn finish(&self, run: usize, result: &mut ObjectResult) {
        let plan = self.run(run).map(|(plan, _)| plan);
        let by_profile = plan.is_some_and(|plan| matches!(plan.by, By::Sites(_) | By::Colours(_)));
        let seen = if by_profile { &self.known } else { &self.own };
        let counts = &seen.truth;
        let quotas = run
            .checked_sub(self.first.len())
            .and_then(|run| self.quotas[run].as_ref());
        let quota = |site: usize| {
            let peak = counts[site].peak_bytes;
            match (quotas, self.first.get(run)) {
                (Some(quotas), _) => Some(quotas.bytes.get(site).copied().unwrap_or(0).min(peak)),
                (None, Some(&SLOW)) => Some(0),
                (None, Some(_)) => Some(peak),
                // Under a page policy, sites have no tier.
                (None, None) => None,
            }
        };
        let shown = names::names(&seen.groups.keys);
        let mut order: Vec<usize> = (0..counts.len())
            .filter(|&site| counts[site].peak_bytes > 0)
            .collect();
        order.sort_by_key(|&site| std::cmp::Reverse(counts[site].peak_bytes));
        let of = |&site: &usize| PlacedSite {
            site: shown[site].clone(),
            fast_quota_bytes: quota(site),
            counts: counts[site].clone(),
        };
        result.placed = order.iter().take(SITES).map(of).collect();
    }

    /// By plan, and which sites have their memory in slow memory then.
    fn advise(&self, came: &Outcomes<ObjectResult>, size: Size) -> Advice {
        let Some(base) = came.base() else {
            return Advice::default();
        };
        if self.colours() {
            return of_energy(base, &came.shown(), size);
        }
        let slow = came.named(SLOW);
        let first = course::said(&self.course, base, slow);
        if let Some(fits) = fits(&self.request.machine, base, slow, size) {
            return Advice {
                run: None,
                said: first.into_iter().chain([fits]).collect(),
            };
        }
        let mut advice = of_plans(self, came, base, size);
        let told = advice.run.as_deref().and_then(|run| came.named(run));
        let sites = told.and_then(|told| slow_sites(told, size));
        let longer = told.and_then(|told| start_up_under(told, base));
        advice.said.extend(longer.into_iter().chain(sites));
        advice.said.splice(0..0, first);
        advice
    }
}
