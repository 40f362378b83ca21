//! A Java virtual machine's generations under plans: a recorded run is replayed with them where each plan has them.

use super::options::Generations;
use super::{BASE, Budgets, Limited, PlannedRun};
use crate::advice::course::{self, start_up_under};
use crate::advice::java::why;
use crate::advice::{Advice, EQUAL, Size, of_plans};
use crate::catalogue::LiveSupport;
use crate::jvm::{By, JavaResult, JavaSpec, PLANS, Plan, Recorded};
use crate::pipeline::{Compared, Comparison, Facts, Role};
use crate::steady::Course;
use crate::{Error, Outcomes, has_one_memory, objects};
use std::path::Path;
use std::sync::Arc;
use varve_machine::Machine;
use varve_trace::TraceReader;

/// The least share of a run's accesses that its steady state has: a virtual machine that starts and compiles does the same for a while,
/// too.
const STEADY: f64 = 0.2;
/// The plan with all in slow memory.
const SLOW: &str = "slow";

/// A recorded Java program on a modelled machine.
#[derive(Clone, Debug)]
pub struct JavaRequest {
    /// The machine. The instances have one socket of it.
    pub machine: Machine,
    /// Plans (`None` are all that go with the collector), fast memory of an instance (`None`: a quarter of its memory
    /// for page policies, and the plan's own need for others), and instances.
    pub options: Generations,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Whether results have the data for pictures.
    pub pictures: bool,
}

impl JavaRequest {
    /// All plans, for one instance, seed 1.
    pub fn new(machine: Machine) -> JavaRequest {
        JavaRequest {
            machine,
            options: Generations::default(),
            seed: 1,
            pictures: false,
        }
    }

    /// Finds errors of the request before a program is recorded for it.
    ///
    /// # Errors
    /// A machine without two memories, no instance, a plan that is unknown or needs more than a recording has.
    pub fn check(&self) -> Result<(), Error> {
        if has_one_memory(&self.machine) || self.machine.dram_cache.is_some() {
            return Err(Error::NoSlowNode(self.machine.name.clone()));
        }
        if self.options.instances.instances == 0 {
            return Err(Error::Asked("--instances 0: run one at least".into()));
        }
        self.chosen().map(drop)
    }

    /// The plans that are meant, whatever the collector.
    fn chosen(&self) -> Result<Vec<Plan>, Error> {
        let on_model = |plan: &Plan| !matches!(plan.live, LiveSupport::Only(..));
        let list = self.options.plan.as_deref().unwrap_or(varve_spec::ALL);
        let chosen = PLANS
            .list(list, on_model)
            .map_err(|e| named_elsewhere(list, e))?;
        for plan in &chosen {
            if let LiveSupport::Only(_, why) = plan.live {
                let name = &plan.spec;
                return Err(Error::Asked(format!(
                    "--plan {name}: {why}: take it with --live"
                )));
            }
        }
        Ok(chosen)
    }

    /// One run for each plan that goes with the collector, and for each budget.
    ///
    /// # Errors
    /// As [`JavaRequest::check`]; a plan by name that the collector has no generations for.
    pub fn runs(&self, recorded: Recorded) -> Result<JavaRuns, Error> {
        self.check()?;
        let collector = recorded.java.collector;
        let chosen = self.chosen()?;
        let goes = |plan: &Plan| collector.has_generations() || !plan.by.by_generation();
        let (plans, without): (Vec<Plan>, Vec<Plan>) = chosen.into_iter().partition(goes);
        let role = |plan: &Plan| Role::of(self.options.plan.as_deref(), &plan.spec, true);
        if let Some(plan) = without.iter().find(|plan| role(plan) == Role::Named) {
            return Err(Error::Java(format!(
                "--plan {}: {} has no generations in places of their own: record the program with -XX:+UseSerialGC or \
                 -XX:+UseParallelGC",
                plan.spec,
                collector.name()
            )));
        }
        let notes = (!without.is_empty()).then(|| {
            let names: Vec<&str> = without.iter().map(|plan| plan.name).collect();
            format!(
                "Not compared: {}, for Serial and Parallel alone: parts of the heap of {} change their role, so that no generation \
                 has a place.",
                names.join(", "),
                collector.name()
            )
        });
        let others = plans.iter().filter(|plan| plan.by != By::Fast);
        let others: Vec<Plan> = others.cloned().collect();
        let limited = |plan: &Plan| match plan.by {
            By::Pages(_) => Limited::Always,
            By::Ranges { young, old, .. } if !young && !old => Limited::Never,
            By::Ranges { .. } => Limited::Asked,
            By::Fast | By::Sampled(_) => Limited::Never,
        };
        let named: Vec<(String, Limited)> = others
            .iter()
            .map(|plan| (plan.spec.clone(), limited(plan)))
            .collect();
        let course = match Course::of(&TraceReader::open(&recorded.trace)?) {
            Course::Steady(part) if part.share < STEADY => Course::Changing,
            course => course,
        };
        Ok(JavaRuns {
            course,
            budgets: Budgets::new(&named, self.options.fast.as_ref()),
            notes: notes.into_iter().collect(),
            asked: plans.into_iter().map(|plan| plan.spec).collect(),
            plans: others,
            recorded: Arc::new(recorded),
            request: self.clone(),
        })
    }
}

/// The error for a plan that exists, but for other programs: it names them.
fn named_elsewhere(list: &str, e: Error) -> Error {
    let all = varve_spec::list(list);
    let native = |spec: &&String| PLANS.find(spec).is_err() && objects::PLANS.find(spec).is_ok();
    match all.iter().find(native) {
        Some(spec) => Error::Asked(format!(
            "--plan {spec}: is for native programs, and a Java virtual machine's memory is placed by generation: take {}",
            PLANS.names().join(", ")
        )),
        None => e,
    }
}

/// The runs of a request.
pub struct JavaRuns {
    /// Budgets of the runs after the first one.
    pub budgets: Budgets,
    /// Notes about plans that are left out.
    pub notes: Vec<String>,
    /// The course of the run: the steady state is what is measured, if there is one.
    course: Course,
    asked: Vec<String>,
    /// The plans of all runs after the first.
    plans: Vec<Plan>,
    recorded: Arc<Recorded>,
    request: JavaRequest,
}

impl JavaRuns {
    fn spec(&self, plan: &str, budget: Option<u64>) -> JavaSpec {
        JavaSpec {
            machine: self.request.machine.clone(),
            recorded: self.recorded.clone(),
            plan: plan.into(),
            budget,
            instances: self.request.options.instances.instances,
            numa: self.request.options.instances.numa,
            steady: self.course.steady().cloned(),
            seed: self.request.seed,
            pictures: self.request.pictures,
        }
    }

    /// A run after the first, by its number.
    fn run(&self, run: usize) -> Option<&PlannedRun> {
        self.budgets.runs.get(run.checked_sub(1)?)
    }
}

impl Comparison for JavaRuns {
    type Spec = JavaSpec;

    fn names(&self) -> Vec<String> {
        let rest = self.budgets.runs.iter().map(|run| run.name.clone());
        std::iter::once(BASE.to_string()).chain(rest).collect()
    }

    fn role(&self, run: usize) -> Role {
        let plan = self
            .run(run)
            .map_or(BASE, |run| &*self.plans[run.plan].spec);
        let asked = self.asked.iter().any(|spec| spec == plan);
        Role::of(self.request.options.plan.as_deref(), plan, asked)
    }

    fn facts(&self, run: usize) -> Facts {
        match self.run(run) {
            Some(run) => self.plans[run.plan].facts(&PLANS, run.bytes),
            None => PLANS
                .find(BASE)
                .map_or(Facts::default(), |plan| plan.facts(&PLANS, None)),
        }
    }

    fn first(&self) -> Vec<JavaSpec> {
        vec![self.spec(BASE, None)]
    }

    fn then(&mut self, first: &[Result<JavaResult, Error>]) -> Result<Vec<JavaSpec>, Error> {
        if let Some(Ok(base)) = first.first() {
            self.budgets.set(base.most_bytes);
        }
        let spec = |run: &PlannedRun| self.spec(&self.plans[run.plan].spec, run.bytes);
        Ok(self.budgets.runs.iter().map(spec).collect())
    }

    /// Advice by plan, and the memory that makes the difference.
    fn advise(&self, came: &Outcomes<JavaResult>, size: Size) -> Advice {
        let Some(base) = came.base() else {
            return Advice::default();
        };
        let mut advice = of_plans(self, came, base, size);
        let slow = came.named(SLOW);
        let told = advice.run.as_deref().and_then(|run| came.named(run));
        let longer = told.and_then(|told| start_up_under(told, base));
        advice.said.extend(longer);
        advice
            .said
            .splice(0..0, course::said(&self.course, base, slow));
        let slow = slow.filter(|slow| slow.slowdown(base) > EQUAL);
        advice
            .said
            .extend(slow.and_then(|slow| why(&base.memory, &slow.memory)));
        advice
    }
}

/// The recording of a Java program; `what` names it if the trace is a file that no user knows.
///
/// # Errors
/// No Java virtual machine runs in the trace, or nothing is known of its heap.
pub fn recorded(trace: &Path, what: Option<&str>) -> Result<Recorded, Error> {
    let shown = trace.display().to_string();
    let name = what.unwrap_or(&shown);
    match Recorded::open(trace) {
        Ok(Some(recorded)) => return Ok(recorded),
        Ok(None) => {}
        Err(Error::Java(why)) => {
            let why = why
                .strip_prefix(&format!("{shown}: "))
                .unwrap_or(&why)
                .to_string();
            return Err(Error::Java(format!("{name}: {why}")));
        }
        Err(e) => return Err(e),
    }
    let reader = TraceReader::open(trace)?;
    if let Some(cut) = reader.cut() {
        return Err(Error::Java(format!(
            "{name}: a recording of Java that was cut off at byte {}, before it said where its heap is: record it again ({})",
            cut.offset, cut.why
        )));
    }
    let code = reader.end().and_then(|end| end.exit_code);
    let code = code.map_or(String::new(), |code| format!(" (exit code {code})"));
    Err(Error::NoJava(format!(
        "{name}: no Java virtual machine has started{code}; see what it wrote above"
    )))
}
