//! `varve machine governor`: which bandwidth needs how many hot DIMMs, by a sweep of MemBench on the model.

use crate::ui::{self, Done, failed, of_run, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use varve_machine::energy::Energy;
use varve_pages::governor::BandwidthModel;
use varve_report::fmt;
use varve_run::membench::{HotPlacement, MemBench, capacities};
use varve_run::{Keep, RunResult, compare};

/// Delays between two writes of a thread, ns, from the heaviest load to light ones.
const DELAYS: [u64; 12] = [0, 25, 50, 75, 100, 125, 150, 200, 250, 300, 500, 1000];

pub fn governor(name: &str, quick: bool, json: bool) -> Done {
    let machine = varve_tier::machine(name).map_err(wrong)?;
    Energy::during(&machine, 0.0, &[]).map_err(wrong)?;
    let bench = MemBench {
        machine,
        scale: if quick { 32 } else { 8 },
        writes: if quick { 4_000 } else { 16_000 },
        most_ns: 4_000_000,
        seed: 1,
    };
    let step = if quick { 2 } else { 1 };
    let delays: Vec<u64> = DELAYS.into_iter().step_by(step).collect();
    let few = bench.dimms() - 1;
    let mut specs = Vec::new();
    for &delay in &delays {
        specs.push(bench.spec(HotPlacement::Hot(0), delay, 0).map_err(wrong)?);
        for dimms in 1..=few {
            specs.push(
                bench
                    .spec(HotPlacement::Hot(dimms), delay, 0)
                    .map_err(wrong)?,
            );
        }
    }
    let stop = ui::stop_flag();
    let bar = ui::bar(specs.len() as u64, "loads");
    let watch = |_, progress: Option<&_>| {
        if progress.is_none() {
            bar.inc(1);
        }
        !stop.load(Ordering::Relaxed)
    };
    let results = compare(
        &specs,
        ui::workers(0),
        &Keep::nothing(),
        &watch,
        &|_, _, _| {},
    );
    bar.finish_and_clear();
    let results = results
        .into_iter()
        .collect::<Result<Vec<RunResult>, _>>()
        .map_err(|e| of_run(&e))?;
    let sweep: Vec<(&RunResult, Vec<&RunResult>)> = results
        .chunks(few + 1)
        .map(|load| (&load[0], load[1..].iter().collect()))
        .collect();
    let carried = capacities(&sweep);
    let model = BandwidthModel::of_capacities(&carried).map_err(|e| {
        failed(format!(
            "{name}: in the sweep one DIMM carries as much as all ({e}): there is nothing to govern on this machine"
        ))
    })?;
    let limits: Vec<String> = model.limits().iter().map(|l| format!("{l:.1}")).collect();
    let gbps = |r: &RunResult| {
        r.power
            .as_ref()
            .map_or(0.0, |p| p.traffic.iter().sum::<f64>() / 1e9)
    };
    if json {
        let loads: Vec<_> = delays
            .iter()
            .zip(&sweep)
            .map(|(delay, (all, few))| {
                let slower: Vec<f64> = few.iter().map(|r| r.seconds / all.seconds).collect();
                json!({"delay_ns": delay, "gbps": gbps(all), "slowdown": slower})
            })
            .collect();
        let all = json!({"machine": name, "loads": loads, "capacities_gbps": carried, "limits_gbps": model.limits()});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![format!(
        "MemBench on {name}: time on few hot DIMMs over that on all"
    )];
    let heads: String = (1..=few)
        .map(|d| format!("{:>9}", format!("{d} hot")))
        .collect();
    lines.push(format!("  {:>8} {:>10}{heads}", "delay", "bandwidth"));
    for (delay, (all, few)) in delays.iter().zip(&sweep) {
        let slower: String = few
            .iter()
            .map(|r| format!("{:>9.2}", r.seconds / all.seconds))
            .collect();
        lines.push(format!(
            "  {:>8} {:>10}{slower}",
            fmt::duration_ns(*delay as f64),
            fmt::bandwidth(1e9 * gbps(all))
        ));
    }
    let most: String = carried[..few]
        .iter()
        .map(|g| format!("{:>9}", format!("{g:.1}")))
        .collect();
    lines.push(format!("  {:>8} {:>10.1}{most}", "max GB/s", carried[few]));
    lines.push(String::new());
    for (dimms, limit) in limits.iter().enumerate() {
        lines.push(format!("{} hot below {limit} GB/s", dimms + 1));
    }
    lines.push(format!(
        "use it with: varve run ... --trays model={}",
        limits.join("/")
    ));
    print(lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}
