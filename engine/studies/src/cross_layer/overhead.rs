//! B10: the cost of remapping, on the model; the cost of sampling, on this host.

use super::{Setup, claim};
use crate::managed::module;
use crate::plan::{Plan, Results};
use varve_observed::ManagedProgram;
use varve_report::fmt::Format;
use varve_report::{Better, Column, Kind, RunTable, StudyResult};
use varve_run::membench::HotPlacement;
use varve_run::{Error, RunResult};
use varve_runtime::host::{Console, Input, Output};
use varve_runtime::{Config, Engine, Module, Store};

const REMAPPED: &str = "hot pages remapped";

/// A microbenchmark of remapping: hot pages go from one DIMM to all as soon as the governor has seen any traffic.
pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if setup.options.wants("B10") {
        // At full size: a page is 4 KiB, and costs what it costs. Few accesses, so that it is remapping that takes time.
        let mut bench = setup.bench.clone();
        (bench.scale, bench.writes) = (1, if setup.tiny() { 300 } else { 20_000 });
        bench.most_ns = 20_000 * bench.writes;
        let mut spec = bench.spec(HotPlacement::Hot(1), 20_000, 0)?;
        spec.policy = format!(
            "{},model=0.001/0.001/0.001,undo=0,sample=1ms,tick=1ms",
            spec.policy
        );
        spec.point_ns = 1_000_000;
        plan.run(REMAPPED, spec);
    }
    Ok(())
}

/// Seconds for each GB while pages moved: from the first point at which some had to the last before all had.
fn seconds_per_gb(r: &RunResult) -> Option<f64> {
    let all = r.timeline.last()?.moved_bytes;
    let moving = r
        .timeline
        .iter()
        .filter(|p| p.moved_bytes > 0.0 && p.moved_bytes < all);
    let points: Vec<_> = moving.collect();
    let (first, last) = (points.first()?, points.last()?);
    Some((last.at_s - first.at_s) / (last.moved_bytes - first.moved_bytes) * 1e9)
}

pub fn claims(setup: &Setup, all: &Results, out: &mut StudyResult) -> Result<(), Error> {
    if !setup.options.wants("B10") {
        return Ok(());
    }
    let per_gb = all.get(REMAPPED).and_then(seconds_per_gb);
    out.claims.push(claim(
        "B10",
        "remapping",
        0.95,
        per_gb,
        "s/GB",
        "published: 0.75 to 1.15; here the program goes on meanwhile, page by page of 4 KiB",
    ));
    let Some((table, slowest)) = sampling(setup)? else {
        return Ok(());
    };
    out.claims.push(claim(
        "B10",
        "time with sampling every 10 us, over that without",
        1.0,
        slowest.map(|s| s.median),
        "x",
        &slowest.map_or(String::new(), |s| {
            format!(
                "the program's thread on this host, 95 % certainly {:.3} to {:.3}; published: about nothing with a free core",
                s.from, s.to
            )
        }),
    )
    .of_kind(Kind::Measured));
    out.tables.push(table);
    Ok(())
}

/// Time of a program's thread on this host, and the sampler's for each sample, both s.
fn seconds(plan: &str, argument: &str) -> Result<(f64, Option<f64>), varve_runtime::Error> {
    let (file, bytes) = module!("trees");
    let program = ManagedProgram::new(file, &bytes[..]).with_arguments([argument]);
    let engine = Engine::new(Config {
        plan: Some(plan.into()),
        ..Config::default()
    });
    let module = Module::new(&engine, &program.bytes)?;
    let console = Console {
        input: Input::new(Box::new(std::io::empty())),
        out: Output::new(Box::new(std::io::sink())),
        err: Output::new(Box::new(std::io::sink())),
    };
    let mut store = Store::new(&engine, program.state(console)?)?;
    let begun = on_core();
    program.start(&mut store, &module)?;
    Ok((on_core() - begun, sample_cost()))
}

/// Seconds that the sampler was on a core for each time that it slept, in which it falls asleep, is woken and reads the word; none if there
/// is no sampler, or it has not slept.
fn sample_cost() -> Option<f64> {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let mut tasks = tasks.filter_map(|task| Some(task.ok()?.path()));
    let sampler =
        tasks.find(|task| read(&task.join("comm")).is_some_and(|c| c.trim() == "varve-sampler"))?;
    let status = read(&sampler.join("status"))?;
    let slept = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    let slept: f64 = slept.trim().parse().ok().filter(|n| *n > 0.0)?;
    let ns: f64 = read(&sampler.join("schedstat"))?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some(ns / 1e9 / slept)
}

/// Seconds that this thread was on a core. Other threads, the sampler among them, do not count: this measures the effect of sampling on the program
/// when there is a core for the sampler.
fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// The compared configurations: name and heap plan. First the same heap without a sampler, then one whose code records the running function without a
/// reader.
const INTERVALS: [(&str, &str); 9] = [
    ("none", "hints"),
    ("never", "sampled:interval=3600s"),
    ("1 s", "sampled:interval=1s"),
    ("100 ms", "sampled:interval=100ms"),
    ("10 ms", "sampled:interval=10ms"),
    ("1 ms", "sampled:interval=1ms"),
    ("100 us", "sampled:interval=100us"),
    (AT, "sampled:interval=10us"),
    ("continuous", "sampled:interval=0s"),
];

/// The interval that the claim is about.
const AT: &str = "10 us";

/// By interval, medians of rounds in which each runs once; and the ratio at 10 us.
fn sampling(setup: &Setup) -> Result<Option<(RunTable, Option<Middle>)>, Error> {
    // Many short runs: others' work on this host comes and goes, and a run and the one that it is compared with are to see
    // the same of it.
    let (rounds, argument) = match (setup.tiny(), setup.quick()) {
        (true, _) => (1, "6"),
        (_, true) => (15, "14"),
        _ => (61, "15"),
    };
    // Each interval's times, and what the run without took in the same round.
    let mut times = vec![Vec::new(); INTERVALS.len()];
    let mut costs = vec![Vec::new(); INTERVALS.len()];
    for round in 0..4 * rounds {
        let mut base = f64::NAN;
        for (i, (name, plan)) in INTERVALS.iter().enumerate() {
            // The interval of the claim more often than the others.
            if i > 0 && *name != AT && round % 4 != 0 {
                continue;
            }
            let (took, cost) = seconds(plan, argument).map_err(|error| Error::Managed {
                file: "trees.wasm".into(),
                error: Box::new(error),
                log: Default::default(),
            })?;
            if i == 0 {
                base = took;
            }
            times[i].push((took, base));
            costs[i].extend(cost);
        }
    }
    let ratios: Vec<Middle> = times
        .iter()
        .map(|own| Middle::of(own.iter().map(|(t, base)| t / base)))
        .collect();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_string();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut table = RunTable::new(
        format!(
            "Time of a program's thread on a core by sampling interval; this host has {cores} cores and a load of {load}"
        ),
        "interval",
    );
    table.columns = vec![
        Column::new("time", Format::DurationNs, Better::Lower),
        Column::new("over none", Format::Ratio, Better::Lower),
        Column::new("from", Format::Ratio, Better::Neither),
        Column::new("to (95 %)", Format::Ratio, Better::Neither),
        Column::new("sampler, each sample", Format::DurationNs, Better::Lower),
    ];
    let all = times.into_iter().zip(costs).zip(&ratios);
    for ((name, _), ((times, costs), ratio)) in INTERVALS.iter().zip(all) {
        table.push(
            *name,
            [
                (1e9 * Middle::of(times.into_iter().map(|t| t.0)).median).into(),
                ratio.median.into(),
                ratio.from.into(),
                ratio.to.into(),
                // Not a number where it never slept, which the table leaves out.
                (1e9 * Middle::of(costs).median).into(),
            ],
        );
    }
    let at = INTERVALS.iter().position(|i| i.0 == AT);
    Ok(Some((table, at.map(|i| ratios[i]))))
}

/// The middle of some numbers, and between which of them the middle of all such numbers is, 95 % certainly.
#[derive(Clone, Copy)]
struct Middle {
    median: f64,
    from: f64,
    to: f64,
}

impl Middle {
    /// By ranks (the normal approximation of the sign test), so that a few wild ones change nothing.
    fn of(values: impl IntoIterator<Item = f64>) -> Middle {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let n = all.len();
        let below = (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).floor().max(0.0) as usize;
        let at = |rank: usize| all.get(rank).copied().unwrap_or(f64::NAN);
        Middle {
            median: at(n / 2),
            from: at(below),
            to: at(n.saturating_sub(1 + below)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Middle;

    #[test]
    fn the_middle_of_many_numbers_is_known_well_and_of_few_is_not() {
        let few = Middle::of([3.0, 1.0, 2.0]);
        assert_eq!((few.from, few.median, few.to), (1.0, 2.0, 3.0));
        let many = Middle::of((0..101).rev().map(f64::from));
        assert_eq!((many.from, many.median, many.to), (40.0, 50.0, 60.0));
        // A wild one changes nothing.
        let wild = Middle::of((0..101).map(|i| if i == 100 { 1e9 } else { f64::from(i) }));
        assert_eq!((wild.median, wild.to), (many.median, many.to));
        assert!(Middle::of([]).median.is_nan());
    }
}
