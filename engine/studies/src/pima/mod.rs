//! Performance evaluation of Optane memory for managed workloads, and PIMA (Akram, TACO 2021). Claims A9 to A17.
//!
//! One machine (`optane-6242`), an instance of a program on each of 4 to 32 cores of one socket. One instance is run, the others
//! load the memory as it does. Times are normalized to those of as many instances with all memory in DRAM, as in the paper.

mod collector;
mod hybrids;
mod pace;
mod recordings;
mod sampling;
mod scaling;
mod stock;
mod suite;
mod table1;

use crate::managed::{ManagedPlan, ManagedResults};
use crate::{StudyOptions, Watch};
use suite::{PimaProgram, PimaSuite, key};
use varve_observed::PlanResult;
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, Kind, RunTable, StudyResult, Value};
use varve_run::{Error, Numa, VERSION};

/// The note of claims that hang on how fast programs allocate.
const OWN_RATE: &str =
    "with all memory in DRAM, programs allocate at the rates of table 1: see docs/pima-study.md";

/// The note of claims that follow from those rates, which the paper's table 1 set: how much slower slow memory is under a load
/// hangs on the load. They are inputs.
const FOLLOWS: &str =
    "follows from the rates of allocation, which are those of table 1: see docs/pima-study.md";

/// A claim of this study; an input where its note says that it [`FOLLOWS`].
fn claim(
    id: &str,
    what: &str,
    published: impl Into<Value>,
    ours: Option<f64>,
    unit: &str,
    note: &str,
) -> Claim {
    let made = crate::claim(id, what, published, ours, unit, note);
    match note == FOLLOWS {
        true => made.of_kind(Kind::Input),
        false => made,
    }
}

/// Both halves, or that of stock virtual machines alone.
pub fn run(options: &StudyOptions, watch: Watch) -> Result<StudyResult, Error> {
    let mut out = StudyResult::new("pima", "optane-6242", options.seed, VERSION);
    out.title = "Managed programs on DRAM and Optane, and PIMA".into();
    // First, so that a missing folder is reported before an hour of runs.
    let recordings = stock::recordings(options)?;
    if !options.stock_only {
        own(options, watch, &mut out)?;
    }
    if let Some(recordings) = &recordings {
        stock::run(options, recordings, watch, &mut out)?;
    }
    out.claims.retain(|c| options.wants(&c.id));
    Ok(out)
}

/// The half of our own heap.
fn own(options: &StudyOptions, watch: Watch, out: &mut StudyResult) -> Result<(), Error> {
    let mut suite = PimaSuite::new(options, watch)?;
    suite.slower = pace::find(&suite, options, watch)?;
    let mut plan = ManagedPlan::default();
    let mut ask = Ask {
        suite: &suite,
        plan: &mut plan,
    };
    scaling::plan(options, &mut ask);
    collector::plan(options, &mut ask);
    hybrids::plan(options, &mut ask);
    sampling::plan(options, &mut ask);
    let results = plan.make(options, watch)?;
    let all = Results {
        suite: &suite,
        all: &results,
    };
    out.about.extend(about(&suite));
    scaling::claims(options, &all, out);
    collector::claims(options, &all, out);
    hybrids::claims(options, &all, out);
    sampling::claims(options, &all, out);
    out.tables.push(programs(&all));
    for (name, why) in results.failures() {
        out.failures.push(format!("the run {name} failed: {why}"));
    }
    Ok(())
}

fn about(suite: &PimaSuite) -> Vec<String> {
    let graphs = suite.programs.iter().filter(|e| e.graph).count();
    vec![
        format!(
            "{graphs} programs on a graph engine and {} others, an instance on each core, with a part of the paper's nursery. Site profiles \
             are of other inputs than those measured.",
            suite.programs.len() - graphs
        ),
        format!(
            "An instance is a single thread with a smaller input than the paper's four threads have: PageRank runs on {} edges per core. \
             Heaps are smaller accordingly, nurseries a larger part of them.",
            varve_report::fmt::integer(suite.edges() as f64)
        ),
        "An instruction of a program counts so many times that all instances allocate as fast as what the program stands for, in table 1 of the paper, \
         with all memory in DRAM. These rates are inputs. A program that is slower already is left as it is."
            .into(),
        "Sensitive programs are those that take at least 20 % longer with all memory in Optane on 32 cores, as in the paper."
            .into(),
    ]
}

/// Asks for runs.
struct Ask<'a> {
    suite: &'a PimaSuite,
    plan: &'a mut ManagedPlan,
}

impl Ask<'_> {
    fn run(&mut self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) {
        let name = key(entry.name, plan, cores, numa);
        let suite = self.suite;
        self.plan.run(name, suite.spec(entry, plan, cores, numa));
    }

    /// One that is long enough for plans that sample.
    fn long(&mut self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) {
        let spec = self.suite.long(entry, plan, cores, numa);
        self.plan.run(long_key(entry, plan, cores, numa), spec);
    }

    /// The same with every instance run, which says how alike they fare.
    fn every(&mut self, entry: &PimaProgram, plan: &str, cores: u32) {
        let mut spec = self.suite.spec(entry, plan, cores, Numa::Local);
        spec.every = true;
        self.plan.run(every_key(entry, plan, cores), spec);
    }

    /// The same for all programs on the most cores, near their memory.
    fn all(&mut self, plan: &str) {
        for entry in self.suite.programs.clone() {
            self.run(entry, plan, self.suite.most(), Numa::Local);
        }
    }
}

fn long_key(entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> String {
    format!("{}/long", key(entry.name, plan, cores, numa))
}

fn every_key(entry: &PimaProgram, plan: &str, cores: u32) -> String {
    format!("{}/every", key(entry.name, plan, cores, Numa::Local))
}

/// Looks runs up.
struct Results<'a> {
    suite: &'a PimaSuite,
    all: &'a ManagedResults,
}

impl Results<'_> {
    fn get(&self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> Option<&PlanResult> {
        self.all.get(&key(entry.name, plan, cores, numa))
    }

    /// A long run.
    fn long(&self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> Option<&PlanResult> {
        self.all.get(&long_key(entry, plan, cores, numa))
    }

    /// With every instance run.
    fn every(&self, entry: &PimaProgram, plan: &str, cores: u32) -> Option<&PlanResult> {
        self.all.get(&every_key(entry, plan, cores))
    }

    /// On the most cores, near the memory.
    fn most(&self, entry: &PimaProgram, plan: &str) -> Option<&PlanResult> {
        self.get(entry, plan, self.suite.most(), Numa::Local)
    }

    /// How long a plan takes beside all in DRAM with the same load (MNTT).
    fn slowdown(&self, entry: &PimaProgram, plan: &str, cores: u32, numa: Numa) -> Option<f64> {
        let base = self.get(entry, "dram", cores, numa)?;
        Some(self.get(entry, plan, cores, numa)?.turnaround(base).mntt)
    }

    /// Programs that slow memory slows by 20 % on the most cores.
    fn sensitive(&self) -> Vec<&'static PimaProgram> {
        let is = |e: &&PimaProgram| {
            self.slowdown(e, "slow", self.suite.most(), Numa::Local)
                .is_some_and(|s| s >= 1.2)
        };
        self.suite.programs.iter().copied().filter(is).collect()
    }

    fn graphs(&self) -> Vec<&'static PimaProgram> {
        let all = self.suite.programs.iter().copied();
        all.filter(|e| e.graph).collect()
    }

    fn named(&self, name: &str) -> Option<&'static PimaProgram> {
        self.suite.named(name)
    }

    /// The mean over programs of what `of` says; `None` if it says nothing of any.
    fn mean(
        &self,
        programs: &[&PimaProgram],
        of: impl Fn(&PimaProgram) -> Option<f64>,
    ) -> Option<f64> {
        let all: Vec<f64> = programs.iter().filter_map(|e| of(e)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// The same for two plans' quotient on the most cores.
    fn ratio(
        &self,
        programs: &[&PimaProgram],
        (over, under): (&str, &str),
        of: impl Fn(&PlanResult) -> f64,
    ) -> Option<f64> {
        self.mean(programs, |e| {
            let (a, b) = (of(self.most(e, over)?), of(self.most(e, under)?));
            (b > 0.0).then(|| a / b)
        })
    }
}

/// The programs, as the paper's table 1 has them.
fn programs(all: &Results) -> RunTable {
    let most = all.suite.most();
    let title = format!("Programs, {most} instances with all memory in DRAM");
    let mut table = RunTable::new(title, "program");
    table.columns = vec![
        Column::new("heap", Format::Bytes, Better::Neither),
        Column::new("allocated", Format::BytesPerSecond, Better::Neither),
        Column::new("survival", Format::Percent, Better::Neither),
        Column::new("slower", Format::Ratio, Better::Neither).with_unit("x"),
        Column::new("Optane-only", Format::Ratio, Better::Lower),
        Column::new("stands for", Format::Number, Better::Neither),
    ];
    for entry in &all.suite.programs {
        let Some(r) = all.most(entry, "dram") else {
            continue;
        };
        let slowdown = all.slowdown(entry, "slow", most, Numa::Local);
        table.push(
            entry.name,
            [
                (f64::from(most) * r.peak_bytes as f64).into(),
                (f64::from(most) * r.allocated_bytes as f64 / r.seconds).into(),
                (100.0 * r.survived_bytes as f64 / r.allocated_bytes.max(1) as f64).into(),
                all.suite.slower(entry).into(),
                slowdown.map_or(Value::Missing, Value::from),
                table1::of(entry.stands_for)
                    .map_or(entry.stands_for.into(), |line| line.to_string())
                    .into(),
            ],
        );
    }
    table
}
