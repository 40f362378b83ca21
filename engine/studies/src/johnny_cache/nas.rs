//! NAS kernels (section 5.6, Figure 11): D11.

use super::claim;
use super::compare::{CORES, bars, time};
use super::setup::{SYSTEMS, Setup, steady};
use crate::plan::{Plan, Results};
use varve_machine::Machine;
use varve_report::fmt::Format;
use varve_report::{Axis, Claim, StudyResult, Value};
use varve_run::RunResult;

/// Kernels of class D, which take a time that can be waited for at the scale of the study.
const CLASS_D: [&str; 3] = ["cg", "ft", "mg"];

/// The largest divisor with pages of 2 MiB at full size: the model has none below 4 KiB.
pub const COARSE: u32 = 512;

/// Length of CG.E, s: an iteration multiplies with its matrix 26 times, alike but for the first, each in some 13 s.
const CG_E_S: f64 = 60.0;

/// HeMem without its daemons: pages touched first stay in DRAM.
const STILL: &str = "hotset:sample-period=0,period=0s";

fn kernels(setup: &Setup) -> &'static [&'static str] {
    if setup.quick() {
        &CLASS_D[..1]
    } else {
        &CLASS_D
    }
}

pub fn plan(setup: &Setup, plan: &mut Plan) {
    if !setup.options.wants("D11") {
        return;
    }
    let spec = |kernel: &str, class: &str, iterations: u32, policy: &str, scale: u32| {
        let work = format!(
            "{kernel}:class={class},iterations={iterations},data=addresses,threads={CORES}"
        );
        let mut spec = setup.spec(policy, &work, scale);
        spec.on.cores = CORES;
        spec
    };
    let scale = setup.apps_scale;
    for (key, _) in SYSTEMS {
        for kernel in kernels(setup) {
            let iterations = if setup.quick() { 1 } else { 3 };
            plan.run(
                format!("{kernel}.D/{key}"),
                spec(kernel, "D", iterations, key, scale),
            );
        }
        if !setup.quick() {
            plan.run(format!("mg.E/{key}"), spec("mg", "E", 1, key, scale));
            let mut cg = spec("cg", "E", 1, key, COARSE);
            let seconds = CG_E_S * setup.length * f64::from(setup.shrink);
            cg.on.until_s = Some(seconds);
            plan.run(format!("cg.E/{key}"), cg);
        }
    }
    if !setup.quick() {
        for (key, policy) in [("static", "static"), ("hotset", "hotset"), ("still", STILL)] {
            let mut spec = spec("mg", "E", 1, policy, COARSE);
            keep_rows(&mut spec.machine, COARSE * setup.shrink);
            plan.run(format!("rows/{key}"), spec);
        }
    }
}

/// Gives a machine processor caches that hold as many rows and planes of MG's grid as at full size.
///
/// Caches shrink with `divisor`, as all memory does, but a row of a cube only with about its cube root. Rows that a core caches at full size are
/// evicted at a fraction of it, and read from memory again.
fn keep_rows(machine: &mut Machine, divisor: u32) {
    // The longest edge is halved first, the slowest among equals: rows are halved last.
    let halvings = divisor.ilog2();
    let (row, slowest) = (halvings / 3, halvings.div_ceil(3));
    machine.l1.bytes.0 <<= halvings - row;
    machine.l2.bytes.0 <<= halvings - row;
    // A plane is all but the slowest edge.
    machine.llc.bytes.0 <<= slowest;
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) {
    if !setup.options.wants("D11") {
        return;
    }
    let ratios: Vec<(String, f64)> = kernels(setup)
        .iter()
        .filter_map(|k| {
            let group = format!("{k}.D");
            let ratio = time(results, &group, "hotset", "static")?;
            Some((group, ratio))
        })
        .collect();
    let best = ratios.iter().map(|r| r.1).reduce(f64::max);
    let note: Vec<String> = ratios.iter().map(|(k, x)| format!("{k} {x:.2}")).collect();
    out.claims.push(claim(
        "D11",
        "NAS class D: JC-static over HeMem, best case",
        2.8,
        best,
        "x",
        &note.join(", "),
    ));
    if !setup.quick() {
        class_e(results, out);
    }
    let groups = kernels(setup).iter().map(|k| format!("{k}.D"));
    out.charts.extend(bars(
        "nas",
        "Figure 11: NAS kernels, time by system",
        groups.chain((!setup.quick()).then(|| "mg.E".into())),
        results,
        |r| r.seconds * 1e9,
        Axis::new("time", "", Format::DurationNs),
    ));
}

/// Kernels whose hot data are several times the cache.
fn class_e(results: &Results, out: &mut StudyResult) {
    let speed = |r: &RunResult| steady(r, |p| p.accesses);
    let cg = results.of_two("cg.E/hotset", "cg.E/static", |a, b| speed(a) / speed(b));
    let faster = cg.map_or(Value::Missing, |x| Value::from(x > 1.0));
    let note = cg.map_or(String::new(), |x| format!("{x:.2}x"));
    let what = "CG.E: HeMem faster than JC-static";
    out.claims
        .push(Claim::new("D11", what, true, faster, "").with_note(note));
    out.charts.extend(bars(
        "cg-e",
        "Figure 11: CG.E, speed by system",
        ["cg.E".to_string()].into_iter(),
        results,
        speed,
        Axis::new("speed", "accesses", Format::PerSecond).between(0.0, None),
    ));
    out.claims.push(claim(
        "D11",
        "MG.E: HeMem over JC-static",
        1.8,
        time(results, "mg.E", "static", "hotset"),
        "x",
        "streams through more than the cache",
    ));
    out.claims.push(claim(
        "D11",
        "MG.E: reads of PM, HeMem over JC-static",
        Value::Missing,
        results.of_two("mg.E/hotset", "mg.E/static", |a, b| {
            a.slow_reads as f64 / b.slow_reads as f64
        }),
        "x",
        "",
    ));
    let kept = |key: &str| time(results, "rows", "static", key);
    out.claims.push(claim(
        "D11",
        "MG.E, caches that hold rows as at full size: HeMem over JC-static",
        1.8,
        kept("hotset"),
        "x",
        "",
    ));
    out.claims.push(claim(
        "D11",
        "... and HeMem without its daemons",
        Value::Missing,
        kept("still"),
        "x",
        "what was touched first stays in DRAM",
    ));
}
