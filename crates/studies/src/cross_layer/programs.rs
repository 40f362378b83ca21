//! B9: programs under offline and online partitions (figures 10 to 18).
//!
//! The machine is scaled down and SciMark's large data with it. Times of samplers and of the governor shrink as well: a run here takes
//! some hundredths of a second, not minutes.

use super::{Setup, claim};
use crate::managed::{ManagedPlan, ManagedResults};
use crate::{Effort, Watch};
use std::sync::Arc;
use varve_machine::Machine;
use varve_pages::governor::BandwidthModel;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Better, Chart, Column, Data, RunTable, Series, StudyResult, Value};
use varve_run::{Error, ManagedProgram, ManagedSpec, PlanResult, TrayOptions};
use varve_runtime::Config;
use varve_runtime::sites::Profile;

/// A program, its input, and a smaller one that its site profile is made on.
struct Entry {
    name: &'static str,
    module: (&'static str, &'static [u8]),
    /// Arguments: at a sliver of the size, coarse, and full; `SHRINK` stands for the machine's divisor.
    input: [&'static str; 3],
    training: &'static str,
    scimark: bool,
    quick: bool,
}

macro_rules! module {
    ($name:literal) => {
        (
            concat!($name, ".wasm"),
            include_bytes!(concat!("../../../../programs/dist/", $name, ".wasm")),
        )
    };
}

const fn kernel(name: &'static str, input: [&'static str; 3], training: &'static str) -> Entry {
    Entry {
        name,
        module: module!("scimark"),
        input,
        training,
        scimark: true,
        quick: true,
    }
}

const fn other(
    name: &'static str,
    module: (&'static str, &'static [u8]),
    input: [&'static str; 3],
    training: &'static str,
    quick: bool,
) -> Entry {
    Entry {
        name,
        module,
        input,
        training,
        scimark: false,
        quick,
    }
}

const ALL: [Entry; 10] = [
    kernel(
        "fft",
        [
            "fft 1 --large 1 --shrink 256",
            "fft 1 --large 1 --shrink SHRINK",
            "fft 1 --large 1 --shrink SHRINK",
        ],
        "fft 1",
    ),
    kernel(
        "lu",
        [
            "lu 1",
            "lu 1 --large 1 --shrink SHRINK",
            "lu 1 --large 1 --shrink SHRINK",
        ],
        "lu 1",
    ),
    kernel(
        "sor",
        [
            "sor 1",
            "sor 2 --large 1 --shrink SHRINK",
            "sor 2 --large 1 --shrink SHRINK",
        ],
        "sor 1",
    ),
    kernel(
        "sparse",
        [
            "sparse 1",
            "sparse 8 --large 1 --shrink SHRINK",
            "sparse 4 --large 1 --shrink SHRINK",
        ],
        "sparse 1",
    ),
    other("trees", module!("trees"), ["6", "13", "16"], "11", true),
    other(
        "kv",
        module!("kv"),
        [
            "300 --records 50",
            "6000 --records 2000",
            "40000 --records 10000",
        ],
        "4000 --records 1000 --seed 7",
        true,
    ),
    other(
        "maps",
        module!("collections"),
        ["maps 200", "maps 5000", "maps 15000"],
        "maps 3000",
        true,
    ),
    other(
        "PR",
        module!("graph"),
        [
            "pagerank --scale 8 --iterations 2",
            "pagerank --scale 12 --iterations 2",
            "pagerank --scale 15 --iterations 3",
        ],
        "pagerank --scale 10 --iterations 3 --seed 7",
        true,
    ),
    other(
        "strings",
        module!("strings"),
        ["100", "800", "3000"],
        "500 --seed 7",
        false,
    ),
    other(
        "deltablue",
        module!("classics"),
        ["deltablue 30", "deltablue 500", "deltablue 3000"],
        "deltablue 200",
        false,
    ),
];

/// What is done about bandwidth and capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    /// One hot DIMM, always enough room.
    Nothing,
    /// The governor.
    Governor,
    /// 25 % of the peak on each hot DIMM.
    Limit,
}

/// The instances of SciMark's kernels: the paper's one and eleven threads.
const MANY: u32 = 11;

/// The programs with what their runs have in common.
pub struct Suite {
    entries: Vec<&'static Entry>,
    machine: Machine,
    shrink: u32,
    size: usize,
    seed: u64,
    profiles: Vec<Arc<Profile>>,
    model: Option<BandwidthModel>,
}

/// What came out.
pub struct Ran {
    first: ManagedResults,
    second: ManagedResults,
}

impl Ran {
    fn get(&self, name: &str) -> Option<&PlanResult> {
        self.first.get(name).or(self.second.get(name))
    }

    /// Why runs failed, by name.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.first.failures().chain(self.second.failures())
    }
}

impl Suite {
    fn new(setup: &Setup, model: Option<&BandwidthModel>) -> Result<Suite, Error> {
        let (shrink, size) = match setup.options.effort {
            Effort::Tiny => (64, 0),
            Effort::Quick => (64, 1),
            Effort::Full => (16, 2),
        };
        let mut suite = Suite {
            entries: ALL.iter().filter(|e| e.quick || !setup.quick()).collect(),
            machine: setup.bench.machine.scaled(shrink),
            shrink,
            size,
            seed: setup.options.seed,
            profiles: Vec::new(),
            model: model.cloned(),
        };
        for entry in suite.entries.clone() {
            let config = Config {
                background: false,
                ..suite.config()
            };
            let program = suite.program(entry, entry.training);
            let profile = program.profile(config).map_err(|error| Error::Managed {
                file: program.file.clone(),
                error: Box::new(error),
                err: Vec::new(),
            })?;
            suite.profiles.push(Arc::new(profile));
        }
        Ok(suite)
    }

    fn config(&self) -> Config {
        Config {
            nursery: (4 << 20) / u64::from(self.shrink),
            ..Config::default()
        }
    }

    fn program(&self, entry: &Entry, arguments: &str) -> ManagedProgram {
        let shrink = self.shrink.to_string();
        let words = arguments
            .split(' ')
            .map(|w| if w == "SHRINK" { &shrink[..] } else { w });
        ManagedProgram::new(entry.module.0, entry.module.1).with_arguments(words)
    }

    fn spec(&self, at: usize, plan: &str, instances: u32, trays: TrayOptions) -> ManagedSpec {
        let entry = self.entries[at];
        let program = self.program(entry, entry.input[self.size]);
        let mut spec = ManagedSpec::new(self.machine.clone(), plan, program);
        spec.config = Config {
            profile: Some(Arc::clone(&self.profiles[at])),
            ..self.config()
        };
        (spec.instances, spec.seed, spec.trays) = (instances, self.seed, trays);
        spec
    }

    /// Trays whose times shrink with the runs: a sample in a tenth of a millisecond.
    fn trays(&self, with: With, peak: Option<u64>) -> Option<TrayOptions> {
        let usual = TrayOptions {
            sample_ns: 100_000,
            tick_ns: 50_000,
            ..TrayOptions::default()
        };
        match with {
            With::Nothing => Some(usual),
            With::Governor => Some(TrayOptions {
                model: Some(self.model.clone()?),
                ..usual
            }),
            With::Limit => Some(TrayOptions {
                limit: Some((peak? / 4).max(4096)),
                ..usual
            }),
        }
    }

    /// Offline by capacity, online by interval: what the paper calls them, and what they are here.
    fn strategies(&self) -> Vec<(&'static str, String)> {
        let cool = 100_000 / self.shrink;
        let online = |us: u32| format!("sampled:interval={us}us,cool={cool}us");
        let mut all = vec![
            ("offline-1%", "knapsack:capacity=0.01".to_string()),
            ("offline-2%", "knapsack:capacity=0.02".to_string()),
            (OFFLINE, "knapsack:capacity=0.05".to_string()),
            ("offline-10%", "knapsack:capacity=0.1".to_string()),
            ("offline-20%", "knapsack:capacity=0.2".to_string()),
            (CONTINUOUS, online(0)),
            (ONLINE, online(1_000 / self.shrink)),
            ("online-100ms", online(100_000 / self.shrink)),
        ];
        if self.size < 2 {
            all.retain(|s| [OFFLINE, "offline-20%", CONTINUOUS, ONLINE].contains(&s.0));
        }
        all
    }

    fn strategy(&self, name: &str) -> Option<(&'static str, String)> {
        self.strategies().into_iter().find(|s| s.0 == name)
    }
}

const OFFLINE: &str = "offline-5%";
const CONTINUOUS: &str = "online-ct";
const ONLINE: &str = "online-1ms";

fn key(entry: &Entry, strategy: &str, instances: u32, with: With) -> String {
    format!("{}, {instances}, {strategy}, {with:?}", entry.name)
}

/// Loads of the run with changing ones.
fn loads(setup: &Setup) -> &'static [u32] {
    match setup.quick() {
        true => &[2, 9],
        false => &[1, 3, 5, 8, 10],
    }
}

/// Makes all runs: first those with all pages on all DIMMs, by whose peaks capacities go.
pub fn run(
    setup: &Setup,
    model: Option<&BandwidthModel>,
    watch: Watch,
) -> Result<Option<(Suite, Ran)>, Error> {
    if !setup.options.wants("B9") {
        return Ok(None);
    }
    let suite = Suite::new(setup, model)?;
    let (mut first, mut second) = (ManagedPlan::default(), ManagedPlan::default());
    let usual = suite.trays(With::Nothing, None).unwrap_or_default();
    let counts = |entry: &Entry| {
        if entry.scimark {
            vec![1, MANY]
        } else {
            vec![1]
        }
    };
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut instances = counts(entry);
        if entry.scimark {
            instances.extend(loads(setup));
        }
        for n in instances {
            let name = key(entry, "default", n, With::Nothing);
            first.run(name, || suite.spec(at, "dram", n, usual.clone()));
        }
    }
    let first = first.make(setup.options, watch)?;
    for (at, entry) in suite.entries.iter().enumerate() {
        let mut ask = |strategy: &(&'static str, String), n: u32, with: With| {
            let peak = first
                .get(&key(entry, "default", n, With::Nothing))
                .map(|r| r.fast_bytes);
            if let Some(trays) = suite.trays(with, peak) {
                let name = key(entry, strategy.0, n, with);
                second.run(name, || suite.spec(at, &strategy.1, n, trays));
            }
        };
        for n in counts(entry) {
            for strategy in suite.strategies() {
                ask(&strategy, n, With::Nothing);
            }
        }
        for name in [OFFLINE, CONTINUOUS] {
            let Some(strategy) = suite.strategy(name) else {
                continue;
            };
            if entry.scimark {
                ask(&strategy, MANY, With::Governor);
                for n in loads(setup) {
                    ask(&strategy, *n, With::Governor);
                }
            }
            for n in counts(entry) {
                ask(&strategy, n, With::Limit);
            }
        }
    }
    let second = second.make(setup.options, watch)?;
    Ok(Some((suite, Ran { first, second })))
}

/// Looks results up beside the default.
struct Look<'a> {
    suite: &'a Suite,
    ran: &'a Ran,
}

impl Look<'_> {
    fn pair(
        &self,
        entry: &Entry,
        strategy: &str,
        n: u32,
        with: With,
    ) -> Option<(&PlanResult, &PlanResult)> {
        let base = self.ran.get(&key(entry, "default", n, With::Nothing))?;
        Some((base, self.ran.get(&key(entry, strategy, n, with))?))
    }

    fn time(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.seconds / base.seconds)
    }

    fn energy(&self, entry: &Entry, strategy: &str, n: u32, with: With) -> Option<f64> {
        let (base, r) = self.pair(entry, strategy, n, with)?;
        Some(r.energy_j? / base.energy_j?)
    }

    fn entries(&self, scimark: bool) -> impl Iterator<Item = &'static Entry> + '_ {
        let all = self.suite.entries.iter().copied();
        all.filter(move |e| e.scimark == scimark)
    }

    fn mean(&self, scimark: bool, of: impl Fn(&Entry) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.entries(scimark).filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Energy of all loads together over that of the default.
    fn changing(&self, setup: &Setup, strategy: &str) -> Option<f64> {
        self.mean(true, |entry| {
            let (mut ours, mut theirs) = (0.0, 0.0);
            for &n in loads(setup) {
                let (base, r) = self.pair(entry, strategy, n, With::Governor)?;
                ours += r.energy_j?;
                theirs += base.energy_j?;
            }
            Some(ours / theirs)
        })
    }
}

pub fn claims(setup: &Setup, ran: &(Suite, Ran), out: &mut StudyResult) {
    let all = Look {
        suite: &ran.0,
        ran: &ran.1,
    };
    let saved = |ratio: Option<f64>| ratio.map(|r| 100.0 * (1.0 - r));
    let energy = |scimark, strategy: &str, n| {
        let strategy = strategy.to_string();
        saved(all.mean(scimark, |e| all.energy(e, &strategy, n, With::Nothing)))
    };
    let many = |strategy: &str, with| all.mean(true, |e| all.time(e, strategy, MANY, with));
    let slow = "2 to 3 in the paper";
    let changing = "a run for each load, each beginning with one hot DIMM";
    out.claims.extend([
        claim(
            "B9",
            "DRAM energy saved, small programs, online 1 ms",
            19.8,
            energy(false, ONLINE, 1),
            "%",
            "Java programs of ours in place of DaCapo",
        ),
        claim(
            "B9",
            "DRAM energy saved, SciMark, 1 thread, offline 5 %",
            25.5,
            energy(true, OFFLINE, 1),
            "%",
            "",
        ),
        claim(
            "B9",
            "SciMark, 11 threads, one hot DIMM, offline 5 %: time",
            2.5,
            many(OFFLINE, With::Nothing),
            "x default",
            slow,
        ),
        claim(
            "B9",
            "the same with the governor",
            1.0,
            many(OFFLINE, With::Governor),
            "x default",
            "",
        ),
        claim(
            "B9",
            "DRAM energy saved with changing load, offline 5 %",
            16.7,
            saved(all.changing(setup, OFFLINE)),
            "%",
            changing,
        ),
        claim(
            "B9",
            "DRAM energy saved with changing load, online continuous",
            13.8,
            saved(all.changing(setup, CONTINUOUS)),
            "%",
            changing,
        ),
    ]);
    out.tables.push(table(&all));
    charts(&all, out);
}

/// Columns of programs as the paper's figures have them: one and eleven threads of each kernel.
fn columns(all: &Look) -> Vec<(&'static Entry, u32)> {
    let many = all.entries(true).map(|e| (e, MANY));
    let one = all.entries(false).chain(all.entries(true)).map(|e| (e, 1));
    one.chain(many).collect()
}

fn label((entry, n): &(&'static Entry, u32)) -> String {
    match entry.scimark {
        true => format!("{} {n}T", entry.name),
        false => entry.name.into(),
    }
}

fn table(all: &Look) -> RunTable {
    let mut table = RunTable::new(
        "Programs, offline 5 % and online 1 ms beside default",
        "program",
    );
    table.columns = vec![
        Column::new("bandwidth", Format::BytesPerSecond, Better::Neither),
        Column::new("cold, offline", Format::Percent, Better::Neither),
        Column::new("cold, online", Format::Percent, Better::Neither),
        Column::new("time, offline", Format::Ratio, Better::Lower),
        Column::new("time, online", Format::Ratio, Better::Lower),
        Column::new("energy, offline", Format::Ratio, Better::Lower),
        Column::new("energy, online", Format::Ratio, Better::Lower),
    ];
    let value = |x: Option<f64>| x.map_or(Value::Missing, Value::from);
    for column in columns(all) {
        let (entry, n) = column;
        let Some(base) = all.ran.get(&key(entry, "default", n, With::Nothing)) else {
            continue;
        };
        let cold = |strategy: &str| {
            let (_, r) = all.pair(entry, strategy, n, With::Nothing)?;
            Some(100.0 * (1.0 - r.dram_share()))
        };
        let bytes = (base.fast_read_bytes + base.fast_written_bytes) as f64 / base.seconds;
        table.push(
            label(&column),
            [
                bytes.into(),
                value(cold(OFFLINE)),
                value(cold(ONLINE)),
                value(all.time(entry, OFFLINE, n, With::Nothing)),
                value(all.time(entry, ONLINE, n, With::Nothing)),
                value(all.energy(entry, OFFLINE, n, With::Nothing)),
                value(all.energy(entry, ONLINE, n, With::Nothing)),
            ],
        );
    }
    table
}

/// What of a program with so many instances is drawn, under a strategy.
type Of<'a> = &'a dyn Fn(&(&'static Entry, u32), &str) -> Option<f64>;

fn charts(all: &Look, out: &mut StudyResult) {
    let columns = columns(all);
    let strategies: Vec<&'static str> = all.suite.strategies().iter().map(|s| s.0).collect();
    let bars = |strategies: &[&'static str], of: Of<'_>| {
        let one = |s: &&'static str| {
            let values = columns.iter().map(|c| of(c, s).unwrap_or(f64::NAN));
            Bars::new(*s, values.collect())
        };
        strategies.iter().map(one).collect::<Vec<Bars>>()
    };
    let mut chart = |id: &str, title: &str, what: &str, bars: Vec<Bars>| {
        let data = Data::Bars {
            groups: columns.iter().map(label).collect(),
            bars,
            stacked: false,
        };
        out.charts.push(
            Chart::new(
                id,
                title,
                Axis::new("program", "", Format::Number),
                Axis::new(what, "x default", Format::Number).between(0.0, None),
                data,
            )
            .with_level("default", 1.0),
        );
    };
    let with = |with: With| {
        (
            move |c: &(&'static Entry, u32), s: &str| all.time(c.0, s, c.1, with),
            move |c: &(&'static Entry, u32), s: &str| all.energy(c.0, s, c.1, with),
        )
    };
    let (time, energy) = with(With::Nothing);
    chart(
        "programs-time",
        "Time by strategy, one hot DIMM (figures 10 and 11)",
        "time",
        bars(&strategies, &time),
    );
    chart(
        "programs-energy",
        "DRAM energy by strategy, one hot DIMM (figures 12 and 13)",
        "DRAM energy",
        bars(&strategies, &energy),
    );
    let some = [OFFLINE, CONTINUOUS];
    let (time, energy) = with(With::Limit);
    chart(
        "limit-time",
        "Time with 25 % of the peak on a hot DIMM (figure 14)",
        "time",
        bars(&some, &time),
    );
    chart(
        "limit-energy",
        "DRAM energy with 25 % of the peak on a hot DIMM (figure 15)",
        "DRAM energy",
        bars(&some, &energy),
    );
    let (time, energy) = with(With::Governor);
    chart(
        "governor-time",
        "Time with the governor (figure 16)",
        "time",
        bars(&some, &time),
    );
    chart(
        "governor-energy",
        "DRAM energy with the governor (figure 17)",
        "DRAM energy",
        bars(&some, &energy),
    );
    power(all, out);
}

/// Power of each DIMM over time, of the kernel that needs most bandwidth, as default, on one hot DIMM, and with the governor.
fn power(all: &Look, out: &mut StudyResult) {
    let Some(entry) = all.entries(true).next() else {
        return;
    };
    for (id, title, name) in [
        (
            "power-default",
            "default",
            key(entry, "default", MANY, With::Nothing),
        ),
        (
            "power-one-hot",
            "one hot DIMM, offline 5 %",
            key(entry, OFFLINE, MANY, With::Nothing),
        ),
        (
            "power-governor",
            "governor, offline 5 %",
            key(entry, OFFLINE, MANY, With::Governor),
        ),
    ] {
        let Some(r) = all.ran.get(&name).filter(|r| !r.power.is_empty()) else {
            continue;
        };
        let dimms = r
            .trays
            .iter()
            .flat_map(|t| &t.dimms)
            .filter(|d| d.socket == 0);
        let line = |dimm: usize| {
            let x = r.power.iter().map(|p| 1e9 * p.end).collect();
            let y = r
                .power
                .iter()
                .map(|p| p.watts.get(dimm).copied().unwrap_or(f64::NAN));
            Series::new(format!("DIMM {dimm}"), x, y.collect())
        };
        out.charts.push(Chart::new(
            id,
            format!(
                "Power of each DIMM over time, {} with {MANY} threads, {title}",
                entry.name
            ),
            Axis::new("time", "", Format::DurationNs),
            Axis::new("power", "W", Format::Number).between(0.0, None),
            Data::Lines((0..dimms.count()).map(line).collect()),
        ));
    }
}
