//! Costs: D12 metadata, D13 sampling, D14 an adversary.

use super::setup::{Setup, steady};
use super::{claim, cooling};
use crate::plan::{Plan, Results};
use varve_pages::Placement;
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Claim, Data, StudyResult, Value};
use varve_run::{Error, RunResult};

/// Sampling periods: one access in each is sampled (section 5.4.2).
const PERIODS: [&str; 4] = ["1k", "5k", "10k", "50k"];
fn periods(setup: &Setup) -> &'static [&'static str] {
    if setup.quick() {
        &["1k", "10k"]
    } else {
        &PERIODS
    }
}

const SAMPLING_S: f64 = 30.0;
const ADVERSARY_S: f64 = 60.0;

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    let o = &setup.options;
    if o.wants("D13") {
        cooling::plan(setup, plan)?;
        let work = |seconds: f64| format!("ycsb:mix=C,requests=0,{}", setup.time(seconds));
        for p in periods(setup) {
            for policy in ["hotset", "dynamic"] {
                let spec = setup.spec(
                    &format!("{policy}:sample-period={p}"),
                    &work(SAMPLING_S),
                    setup.scale,
                );
                plan.run(format!("sampling/{policy}-{p}"), spec);
            }
        }
        plan.run(
            "sampling/static",
            setup.spec("static", &work(8.0), setup.scale),
        );
    }
    if o.wants("D14") {
        let work = format!("adversary:hot=5%,updates=0,{}", setup.time(ADVERSARY_S));
        for (key, policy) in [
            // The adversary knows the order in which equal bins are taken.
            ("static", "static:seed=0"),
            ("rare", "dynamic:seed=0,sample-period=50k,period=100ms"),
            ("dynamic", "dynamic:seed=0"),
            ("chance", "static"),
        ] {
            plan.run(
                format!("adversary/{key}"),
                setup.spec(policy, &work, setup.scale),
            );
        }
    }
    Ok(())
}

fn updates(r: &RunResult) -> f64 {
    steady(r, |p| p.updates)
}

fn requests(r: &RunResult) -> f64 {
    steady(r, |p| p.requests)
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) -> Result<(), Error> {
    let o = &setup.options;
    if o.wants("D12") {
        // Both sockets: 128 GB of DRAM and 1 TB of PM.
        let machine = o.machine("optane-6230-memory-mode")?;
        for policy in ["static", "dynamic"] {
            let bytes = Placement::new(policy, &machine, 2 << 20)?.bytes();
            out.claims.push(claim(
                "D12",
                &format!("metadata of {policy}, 128 GB DRAM and 1 TB PM"),
                Value::AtMost { at_most: 50.0 },
                Some(bytes as f64 / 1e6),
                "MB",
                "2 MiB pages",
            ));
        }
    }
    if o.wants("D13") {
        sampling(results, out);
        cooling::claims(results, out);
    }
    if o.wants("D14") {
        let against = |a: &str, b: &str| {
            results.of_two(
                &format!("adversary/{a}"),
                &format!("adversary/{b}"),
                |x, y| 100.0 * updates(x) / updates(y),
            )
        };
        let behind = against("static", "dynamic");
        let answer = behind.map_or(Value::Missing, |x| Value::from(x < 95.0));
        let note = behind.map_or(String::new(), |x| {
            format!("static reaches {x:.0} % of dynamic")
        });
        out.claims.push(
            Claim::new(
                "D14",
                "an adversary makes static fall behind",
                true,
                answer,
                "",
            )
            .with_note(note),
        );
        let back = against("rare", "dynamic");
        let answer = back.map_or(Value::Missing, |x| Value::from(x > 90.0));
        let note = back.map_or(String::new(), |x| {
            format!("one access in 50 k sampled, 10 wake-ups a second: {x:.0} % of the full daemon")
        });
        out.claims.push(
            Claim::new(
                "D14",
                "a rare daemon with few samples gets it back",
                true,
                answer,
                "",
            )
            .with_note(note),
        );
    }
    Ok(())
}

fn sampling(results: &Results, out: &mut StudyResult) {
    let speed =
        |policy: &str, p: &str| results.get(&format!("sampling/{policy}-{p}")).map(requests);
    let of_hemem: Vec<(&str, f64)> = PERIODS
        .iter()
        .filter_map(|p| Some((*p, speed("hotset", p)?)))
        .collect();
    let best = of_hemem.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let text = best.map_or(Value::Missing, |(p, _)| Value::from(*p));
    let note: Vec<String> = match best {
        Some((_, top)) => of_hemem
            .iter()
            .map(|(p, x)| format!("{p} {:.0} %", 100.0 * x / top))
            .collect(),
        None => Vec::new(),
    };
    out.claims.push(
        Claim::new(
            "D13",
            "HeMem's best sample period, accesses",
            "5k to 10k",
            text,
            "",
        )
        .with_note(note.join(", ")),
    );
    let all: Vec<f64> = PERIODS
        .iter()
        .flat_map(|p| [speed("hotset", p), speed("dynamic", p)])
        .flatten()
        .collect();
    let fixed = results.get("sampling/static").map(requests);
    let top = all.iter().copied().chain(fixed).reduce(f64::max);
    let loss = fixed.zip(top).map(|(f, t)| 100.0 * (1.0 - f / t));
    out.claims.push(claim(
        "D13",
        "JC-static behind the best configuration",
        Value::AtMost { at_most: 5.0 },
        loss,
        "%",
        "without any samples",
    ));
    let bars: Vec<Bars> = [("hotset", "HeMem"), ("dynamic", "JC-dyn")]
        .iter()
        .map(|(policy, name)| {
            Bars::new(
                *name,
                PERIODS
                    .iter()
                    .map(|p| speed(policy, p).unwrap_or(f64::NAN))
                    .collect(),
            )
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let mut chart = Chart::new(
        "sampling",
        "Figure 9: YCSB C, speed by sample period",
        Axis::new("accesses for each sample", "", Format::Number),
        Axis::new("speed", "requests", Format::PerSecond).between(0.0, None),
        Data::Bars {
            groups: PERIODS.iter().map(|p| p.to_string()).collect(),
            bars,
            stacked: false,
        },
    );
    if let Some(f) = fixed {
        chart = chart.with_level("JC-static", f);
    }
    out.charts.push(chart);
}
