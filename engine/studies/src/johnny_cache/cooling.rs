//! When heat is halved (sections 4 and 5.2.1): D13's second part. The paper halves it when a page is super-hot, with
//! double the heat that makes it hot, and says that no other choice did well everywhere.

use super::gups::{CLUSTERED, DYNAMIC_S, HEMEM_S, STATIC_S, line, oracle, rate};
use super::setup::Setup;
use crate::plan::{Plan, Results};
use varve_report::fmt::Format;
use varve_report::{Axis, Bars, Chart, Claim, Data, StudyResult, Value};
use varve_run::Error;

/// Heat at which all heat is halved. A page is hot from 8 loads or 4 stores on; 16 is the policies' default.
const COOL: [u32; 4] = [10, 16, 32, 64];
const DEFAULT: u32 = 16;

const SYSTEMS: [(&str, &str, f64); 2] = [
    ("hotset", "HeMem", HEMEM_S),
    ("dynamic", "JC-dyn", DYNAMIC_S),
];

/// Threads of GUPS: the configuration that is difficult for what samples (section 5.2.1).
const THREADS: u32 = 8;

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    if setup.quick() {
        return Ok(());
    }
    for (policy, _, seconds) in SYSTEMS {
        let work = line(setup, CLUSTERED, THREADS, seconds);
        for cool in COOL {
            // The default is the run of D5.
            let with = match cool {
                DEFAULT => policy.to_string(),
                _ => format!("{policy}:cool={cool}"),
            };
            let spec = setup.spec(&with, &work, setup.scale);
            plan.run(format!("cooling/{policy}-{cool}"), spec);
        }
    }
    let work = line(setup, CLUSTERED, THREADS, STATIC_S);
    let spec = setup.spec(&oracle(setup, &work)?, &work, setup.scale);
    plan.run("cooling/dram", spec);
    Ok(())
}

pub fn claims(results: &Results, out: &mut StudyResult) {
    let share = |policy: &str, cool: u32| {
        results.of_two(
            &format!("cooling/{policy}-{cool}"),
            "cooling/dram",
            |a, b| 100.0 * rate(a) / rate(b),
        )
    };
    let mut bars = Vec::new();
    for (policy, name, _) in SYSTEMS {
        let shares: Vec<(u32, f64)> = COOL
            .iter()
            .filter_map(|&cool| Some((cool, share(policy, cool)?)))
            .collect();
        let best = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let ours = best.map_or(Value::Missing, |(cool, _)| Value::from(f64::from(*cool)));
        let note: Vec<String> = shares
            .iter()
            .map(|(cool, x)| format!("{cool} {x:.0} % of DRAM"))
            .collect();
        let what = format!("GUPS 8+2: {name}'s best cooling threshold");
        out.claims.push(
            Claim::new("D13", &what, Value::Missing, ours, "samples").with_note(note.join(", ")),
        );
        let of = |&cool: &u32| share(policy, cool).unwrap_or(f64::NAN);
        bars.push(Bars::new(name, COOL.iter().map(of).collect()));
    }
    if results.get("cooling/dram").is_none() {
        return;
    }
    out.charts.push(Chart::new(
        "cooling",
        "GUPS 8+2: speed by cooling threshold",
        Axis::new(
            "samples of a page at which all heat is halved",
            "",
            Format::Number,
        ),
        Axis::new(
            "of the speed with all hot data in DRAM",
            "",
            Format::Percent,
        )
        .between(0.0, None),
        Data::Bars {
            groups: COOL.iter().map(u32::to_string).collect(),
            bars,
            stacked: false,
        },
    ));
}
