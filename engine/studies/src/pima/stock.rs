//! Stock Java virtual machines: real programs on OpenJDK, recorded once, and replayed as one to eight instances of four threads each
//! (A9 to A12, A15), and what the paper's appendix has of OpenJDK (A17).

use super::recordings::{Recording, Recordings};
use super::table1;
use crate::plan::{Plan, Results};
use crate::{Effort, StudyOptions, Watch, claim};
use varve_report::fmt::Format;
use varve_report::{Better, Claim, Column, RunTable, StudyResult, Value};
use varve_run::jvm::{JavaResult, JavaSpec};
use varve_run::{Error, Numa, StallShares};

/// Instances when all cores are in use.
const MOST: u32 = 8;
const STOCK: &str = "OpenJDK: ";

/// The program of the paper's table 1 that a program is nearest to, and its values on 32 cores.
struct Kin {
    program: &'static str,
    name: &'static str,
}

const fn kin(program: &'static str, name: &'static str) -> Kin {
    Kin { program, name }
}

/// For the table alone: nothing is computed from it.
const KIN: &[Kin] = &[
    kin("h2", "Pjbb"),
    kin("hsqldb", "Hsqldb"),
    kin("luindex", "Luindex"),
    kin("lusearch", "Lusearch"),
    kin("xalan", "Xalan"),
    kin("fop", "Fop"),
    kin("ecj", "Eclipse"),
    kin("pmd", "Pmd"),
    kin("jython", "Antlr"),
    kin("tracer", "Sunflow"),
    kin("pagerank", "PR"),
    kin("components", "CC"),
];

/// A program under one collector, with a recording for each seed of its input.
struct Program<'a> {
    name: String,
    recordings: Vec<&'a Recording>,
}

impl Program<'_> {
    fn is(&self, name: &str, collector: &str) -> bool {
        let about = &self.recordings[0].about;
        about.program == name && about.collector == collector
    }

    fn is_graph(&self) -> bool {
        ["pagerank", "components"].contains(&self.recordings[0].about.program.as_str())
    }

    /// Which recordings are replayed, with the seed of the model: a replay itself draws nothing by chance.
    fn seeds(&self, seed: u64) -> Vec<(usize, u64)> {
        (0..self.recordings.len()).map(|at| (at, seed)).collect()
    }
}

/// All of the study's half.
struct Stock<'a> {
    programs: Vec<Program<'a>>,
    instances: Vec<u32>,
    seed: u64,
    runs: Results<JavaResult>,
}

fn key(program: &str, at: (usize, u64), plan: &str, instances: u32, numa: Numa) -> String {
    format!("{program}/{}/{}/{plan}/{instances}/{numa}", at.0, at.1)
}

/// The recordings to replay; none if no claim of this half is requested.
///
/// # Errors
/// A recording that cannot be read.
pub fn recordings(o: &StudyOptions) -> Result<Option<Recordings>, Error> {
    let claims = ["A9", "A10", "A11", "A12", "A15", "A17"];
    let wanted = claims.iter().any(|id| o.wants(id));
    wanted.then(|| Recordings::open(o)).transpose()
}

/// Makes the runs, and says what came of them.
///
/// # Errors
/// An interrupt.
pub fn run(
    o: &StudyOptions,
    recordings: &Recordings,
    watch: Watch,
    out: &mut StudyResult,
) -> Result<(), Error> {
    let mut programs: Vec<Program> = Vec::new();
    for recording in &recordings.all {
        let about = &recording.about;
        match programs
            .iter_mut()
            .find(|p| p.is(&about.program, &about.collector))
        {
            Some(known) => known.recordings.push(recording),
            None => programs.push(Program {
                name: match &about.collector[..] {
                    "parallel" => about.program.clone(),
                    other => format!("{} ({})", about.program, other.to_uppercase()),
                },
                recordings: vec![recording],
            }),
        }
    }
    let instances = match o.effort {
        Effort::Full => vec![1, 2, 4, MOST],
        Effort::Quick => vec![1, 2, MOST],
        Effort::Tiny => vec![1, MOST],
    };
    if o.effort == Effort::Tiny {
        programs.retain(Program::is_graph);
    }
    let machine = o.machine("optane-6242")?;
    let mut plan = Plan::default();
    for program in &programs {
        let mut ask = |at: (usize, u64), name: &str, instances, numa| {
            let spec = JavaSpec {
                machine: machine.clone(),
                recorded: program.recordings[at.0].recorded.clone(),
                plan: name.into(),
                budget: None,
                instances,
                numa,
                steady: None,
                seed: at.1,
                pictures: false,
            };
            plan.run(key(&program.name, at, name, instances, numa), spec);
        };
        let first = (0, o.seed);
        let grows = o.wants("A9") || (o.wants("A17") && program.is_graph());
        for name in ["dram", "slow"] {
            for &instances in instances.iter().filter(|_| grows) {
                ask(first, name, instances, Numa::Local);
            }
            for at in program.seeds(o.seed) {
                ask(at, name, MOST, Numa::Local);
            }
            if o.wants("A12") || (o.wants("A17") && program.is_graph()) {
                ask(first, name, MOST, Numa::Auto);
            }
            if o.wants("A12") {
                ask(first, name, MOST, Numa::Remote);
            }
        }
        let parallel = program.recordings[0]
            .recorded
            .java
            .collector
            .has_generations();
        if parallel && (o.wants("A10") || (o.wants("A17") && program.is_graph())) {
            for name in ["slow-scan", "kg-n"] {
                ask(first, name, MOST, Numa::Local);
            }
            if program.is_graph() {
                ask(first, "kg-n", MOST, Numa::Auto);
            }
        }
    }
    let stock = Stock {
        instances,
        seed: o.seed,
        runs: plan.make(o, watch)?,
        programs,
    };
    out.about.push(about(&stock, recordings.small));
    cores(&stock, o, out);
    collector(&stock, out);
    distance(&stock, out);
    stalls(&stock, out);
    appendix(&stock, out);
    out.tables.push(table(&stock));
    for (name, why) in stock.runs.failures() {
        out.failures
            .push(format!("the run {STOCK}{name} failed: {why}"));
    }
    Ok(())
}

fn about(stock: &Stock, small: bool) -> String {
    let names: Vec<&str> = stock.programs.iter().map(|p| &p.name[..]).collect();
    let from = match small {
        true => {
            "the small windows that are built in, with young generations of 1.5 MiB (programs/jvm/record FOLDER makes larger ones, for --jvm FOLDER)"
        }
        false => "the recordings that --jvm names",
    };
    format!(
        "{STOCK}real programs on a stock virtual machine, up to {MOST} instances of four threads and two collector threads: {}. These are \
         {from}. Means are of those with Parallel.",
        names.join(", ")
    )
}

impl Stock<'_> {
    fn get(&self, p: &Program, plan: &str, instances: u32, numa: Numa) -> Option<&JavaResult> {
        let name = key(&p.name, (0, self.seed), plan, instances, numa);
        self.runs.get(&name)
    }

    fn most(&self, p: &Program, plan: &str) -> Option<&JavaResult> {
        self.get(p, plan, MOST, Numa::Local)
    }

    fn ratio(
        &self,
        p: &Program,
        (over, under): (&str, &str),
        (instances, numa): (u32, Numa),
        of: impl Fn(&JavaResult) -> f64,
    ) -> Option<f64> {
        let a = of(self.get(p, over, instances, numa)?);
        let b = of(self.get(p, under, instances, numa)?);
        (b > 0.0 && a > 0.0).then(|| a / b)
    }

    fn slowdown(&self, p: &Program, instances: u32, numa: Numa) -> Option<f64> {
        self.ratio(p, ("slow", "dram"), (instances, numa), |r| r.seconds)
    }

    fn parallel(&self) -> impl Iterator<Item = &Program<'_>> {
        let all = self.programs.iter();
        all.filter(|p| p.recordings[0].about.collector == "parallel")
    }

    /// Those that slow memory slows by 20 % on the most cores.
    fn sensitive(&self) -> Vec<&Program<'_>> {
        let is = |p: &&Program| {
            self.slowdown(p, MOST, Numa::Local)
                .is_some_and(|s| s >= 1.2)
        };
        self.parallel().filter(is).collect()
    }

    fn graphs(&self) -> Vec<&Program<'_>> {
        self.parallel().filter(|p| p.is_graph()).collect()
    }

    fn named(&self, name: &str, collector: &str) -> Option<&Program<'_>> {
        self.programs.iter().find(|p| p.is(name, collector))
    }

    /// Slowdowns on the most cores, one for each seed.
    fn by_seed(&self, p: &Program, plan: &str) -> Vec<f64> {
        let of = |at: (usize, u64)| {
            let name = key(&p.name, at, plan, MOST, Numa::Local);
            Some(self.runs.get(&name)?.seconds)
        };
        p.seeds(self.seed).into_iter().filter_map(of).collect()
    }

    /// Standard deviation of the slowdowns by seed over their mean, %: inputs of several seeds take different times.
    fn spread(&self, p: &Program) -> Option<f64> {
        let (slow, dram) = (self.by_seed(p, "slow"), self.by_seed(p, "dram"));
        let all: Vec<f64> = slow.iter().zip(&dram).map(|(a, b)| a / b).collect();
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let squares: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
        (n > 1.0).then(|| 100.0 * (squares / (n - 1.0)).sqrt() / mean)
    }
}

fn mean<'a>(
    programs: impl IntoIterator<Item = &'a Program<'a>>,
    of: impl Fn(&Program) -> Option<f64>,
) -> Option<f64> {
    let all: Vec<f64> = programs.into_iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Rows of one claim.
fn rows(
    out: &mut StudyResult,
    id: &str,
    unit: &str,
    note: &str,
    all: Vec<(String, Value, Option<f64>)>,
) {
    for (what, published, ours) in all {
        let what = format!("{STOCK}{what}");
        out.claims
            .push(claim(id, &what, published, ours, unit, note));
    }
}

fn cores(s: &Stock, o: &StudyOptions, out: &mut StudyResult) {
    if !o.wants("A9") {
        return;
    }
    let mut all = Vec::new();
    for (instances, published) in [(1, 1.05), (2, 1.07), (4, 1.32), (MOST, 2.2)] {
        if !s.instances.contains(&instances) {
            continue;
        }
        let of = |p: &Program| s.slowdown(p, instances, Numa::Local);
        let cores = 4 * instances;
        let (whom, ours) = match instances {
            1 | 2 => ("all programs", mean(s.parallel(), of)),
            _ => ("sensitive programs", mean(s.sensitive(), of)),
        };
        let what = format!("Optane-only on {cores} cores, mean of {whom}");
        all.push((what, published.into(), ours));
    }
    let worst = s
        .parallel()
        .filter_map(|p| s.slowdown(p, MOST, Numa::Local));
    let page_rank = s.named("pagerank", "parallel");
    all.push((
        "Optane-only on 32 cores, worst program".into(),
        7.5.into(),
        worst.reduce(f64::max),
    ));
    all.push((
        "Optane-only on 8 cores, PageRank".into(),
        1.49.into(),
        page_rank.and_then(|p| s.slowdown(p, 2, Numa::Local)),
    ));
    rows(out, "A9", "x DRAM-only", "published: Jikes RVM", all);
}

fn collector(s: &Stock, out: &mut StudyResult) {
    let most = (MOST, Numa::Local);
    let part = |plans: (&str, &str), of: fn(&JavaResult) -> f64| {
        mean(s.sensitive(), |p| s.ratio(p, plans, most, of))
    };
    let minor: fn(&JavaResult) -> f64 = |r| r.minor_seconds;
    let mutator: fn(&JavaResult) -> f64 =
        |r| r.seconds - r.minor_seconds - r.full_seconds - r.other_seconds;
    let at_least = Value::AtLeast { at_least: 3.0 };
    let all = vec![
        (
            "mutator on Optane".into(),
            2.0.into(),
            part(("slow", "dram"), mutator),
        ),
        (
            "minor collections on Optane".into(),
            at_least,
            part(("slow", "dram"), minor),
        ),
    ];
    rows(out, "A10", "x DRAM-only", "", all);
    let all = vec![
        (
            "minor collections with survivors in DRAM (Optane-S)".into(),
            1.3.into(),
            part(("slow", "slow-scan"), minor),
        ),
        (
            "minor collections with the young generation in DRAM (Optane-C)".into(),
            1.8.into(),
            part(("slow", "kg-n"), minor),
        ),
        (
            "mutator with old objects in DRAM (Optane-S)".into(),
            1.23.into(),
            part(("slow", "slow-scan"), mutator),
        ),
        (
            "mutator with new objects in DRAM (Optane-C)".into(),
            1.74.into(),
            part(("slow", "kg-n"), mutator),
        ),
    ];
    rows(out, "A10", "x faster", "", all);
    let added = |plan: &str| {
        let of = |p: &Program| s.ratio(p, (plan, "dram"), most, minor);
        mean(s.sensitive(), |p| Some(100.0 * (of(p)? - 1.0)))
    };
    let (copy, scan, slow) = (added("kg-n"), added("slow-scan"), added("slow"));
    let both = copy.zip(scan).zip(slow);
    let all = vec![
        (
            "minor collections: added by copying".into(),
            35.0.into(),
            copy,
        ),
        (
            "minor collections: added by scanning".into(),
            150.0.into(),
            scan,
        ),
        (
            "minor collections: added by interference of both".into(),
            38.0.into(),
            both.map(|((copy, scan), slow)| slow - copy - scan),
        ),
    ];
    let note = "of whole pauses: a stock machine does not tell its roots and tables from the rest";
    rows(out, "A10", "% of DRAM-only", note, all);
    let Some(h2) = s.named("h2", "parallel") else {
        return;
    };
    let all = vec![
        (
            "peak of the pauses".into(),
            1.5.into(),
            s.ratio(h2, ("slow", "dram"), most, |r| r.minor.p50_ns as f64),
        ),
        (
            "longest pause".into(),
            2.0.into(),
            s.ratio(h2, ("slow", "dram"), most, |r| r.longest_pause_ns as f64),
        ),
    ];
    rows(
        out,
        "A11",
        "x DRAM-only",
        "H2 for Pjbb, the median for the peak",
        all,
    );
}

fn distance(s: &Stock, out: &mut StudyResult) {
    let added = |p: &Program, plan: &str| {
        let of = |numa| Some(s.get(p, plan, MOST, numa)?.seconds);
        Some(100.0 * (of(Numa::Remote)? / of(Numa::Auto)? - 1.0))
    };
    let worst = s.parallel().filter_map(|p| added(p, "slow"));
    let all = vec![
        (
            "DRAM-only, remote: added time, mean".into(),
            5.0.into(),
            mean(s.parallel(), |p| added(p, "dram")),
        ),
        (
            "Optane-only, remote: added time, worst program".into(),
            128.0.into(),
            worst.reduce(f64::max),
        ),
    ];
    let note = "beside automatic balancing, which leaves half the pages remote here: an assumption";
    rows(out, "A12", "%", note, all);
}

/// Time lost to a reason, s.
fn lost(r: &JavaResult, share: fn(&StallShares) -> f64) -> f64 {
    r.seconds * share(&r.stalls)
}

fn stalls(s: &Stock, out: &mut StudyResult) {
    let mut all = Vec::new();
    for (title, name, load) in [("Xalan", "xalan", 4.9), ("PageRank", "pagerank", 8.9)] {
        let Some(p) = s.named(name, "parallel") else {
            continue;
        };
        let ratio = |share: fn(&StallShares) -> f64| {
            s.ratio(p, ("slow", "dram"), (MOST, Numa::Local), |r| lost(r, share))
        };
        all.push((
            format!("load stalls on 32 cores, {title}"),
            load.into(),
            ratio(|s| s.load),
        ));
        let stores = ratio(|s| s.store + s.fence);
        all.push((
            format!("store stalls on 32 cores, {title}"),
            8.0.into(),
            stores,
        ));
    }
    rows(
        out,
        "A15",
        "x DRAM-only",
        "fetches of instructions are not recorded",
        all,
    );
}

/// A17: the paper's appendix.
fn appendix(s: &Stock, out: &mut StudyResult) {
    let auto = (MOST, Numa::Auto);
    let slowdown = |numa| mean(s.graphs(), |p| s.slowdown(p, MOST, numa));
    let all = vec![
        (
            "graphs on 32 cores, Optane-only, auto".into(),
            3.0.into(),
            slowdown(Numa::Auto),
        ),
        (
            "graphs on 32 cores, Optane-only, local".into(),
            Value::Missing,
            slowdown(Numa::Local),
        ),
    ];
    rows(
        out,
        "A17",
        "x DRAM-only",
        "Parallel; the graph engine's shards are in files",
        all,
    );
    let gain = |numa| {
        mean(s.graphs(), |p| {
            s.ratio(p, ("slow", "kg-n"), (MOST, numa), |r| r.seconds)
        })
    };
    let all = vec![
        (
            "KG-N over Optane-only, graphs, auto".into(),
            1.31.into(),
            gain(auto.1),
        ),
        (
            "KG-N over Optane-only, graphs, local".into(),
            Value::Missing,
            gain(Numa::Local),
        ),
    ];
    rows(out, "A17", "x faster", "", all);
    let yes = |what: &str, ours: Option<bool>| {
        let ours = ours.map_or(Value::Missing, Value::from);
        Claim::new("A17", format!("{STOCK}{what}"), true, ours, "")
    };
    let of = |collector| {
        let p = s.named("pagerank", collector)?;
        s.slowdown(p, MOST, Numa::Local)
    };
    let g1 = of("g1").zip(of("parallel"));
    let same = g1.map(|(g1, parallel)| g1 >= 1.2 && (g1 / parallel - 1.0).abs() <= 0.25);
    out.claims.push(yes(
        "G1 loses on Optane as Parallel does (PageRank, within a quarter)",
        same,
    ));
    rows(
        out,
        "A17",
        "x DRAM-only",
        "",
        vec![(
            "PageRank on 32 cores under G1, Optane-only, local".into(),
            Value::Missing,
            of("g1"),
        )],
    );
    let grows = mean(s.graphs(), |p| s.slowdown(p, 1, Numa::Local)).zip(slowdown(Numa::Local));
    if s.instances.contains(&1) {
        out.claims.push(yes(
            "Optane-only scales poorly: more lost on 32 cores than on 4",
            grows.map(|(few, many)| many > few),
        ));
    }
}

/// The programs, as the paper's table 1 has them.
fn table(s: &Stock) -> RunTable {
    let title = "Stock virtual machines, 8 instances with all memory in DRAM";
    let mut table = RunTable::new(title, "program");
    table.columns = vec![
        Column::new("heap", Format::Bytes, Better::Neither),
        Column::new("allocated", Format::BytesPerSecond, Better::Neither),
        Column::new("survival", Format::Percent, Better::Neither),
        Column::new("threads", Format::Number, Better::Neither),
        Column::new("load stalls", Format::Percent, Better::Neither),
        Column::new("store stalls", Format::Percent, Better::Neither),
        Column::new("minor", Format::Number, Better::Neither),
        Column::new("Optane-only", Format::Ratio, Better::Lower),
        Column::new("spread", Format::Percent, Better::Neither),
        Column::new("nearest in the paper", Format::Number, Better::Neither),
    ];
    for p in &s.programs {
        let Some(r) = s.most(p, "dram") else {
            continue;
        };
        let about = &p.recordings[0].about;
        let of_all = |bytes: u64| f64::from(MOST) * bytes as f64;
        let survival = 100.0 * about.promoted_bytes as f64 / about.allocated_bytes.max(1) as f64;
        // Under G1 what survives stays young for a while.
        let survival = match r.collector.has_generations() {
            true => survival.into(),
            false => Value::Missing,
        };
        let kin = KIN.iter().find(|kin| kin.program == about.program);
        let near = kin.and_then(|kin| table1::of(kin.name));
        let near = near.map_or("none".into(), |line| line.to_string());
        let or_missing = |x: Option<f64>| x.map_or(Value::Missing, Value::from);
        table.push(
            p.name.clone(),
            [
                of_all(about.young_bytes + about.old_bytes).into(),
                (of_all(about.allocated_bytes) / r.seconds).into(),
                survival,
                f64::from(about.threads).into(),
                (100.0 * r.stalls.load).into(),
                (100.0 * (r.stalls.store + r.stalls.fence)).into(),
                (r.minor.count as f64).into(),
                or_missing(s.slowdown(p, MOST, Numa::Local)),
                or_missing(s.spread(p)),
                near.into(),
            ],
        );
    }
    table
}
