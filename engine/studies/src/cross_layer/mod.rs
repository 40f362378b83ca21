//! Cross-layer memory management to improve DRAM energy efficiency (Olson et al., TACO 2018). Claims B6 to B10.
//!
//! One machine (`haswell-2620v3`), channels not interleaved. MemBench and NUMABench are native kernels at a fraction of full size, with the
//! paper's twelve threads on six cores; programs are Java ones, on a machine that is as much smaller.

mod dimm;
mod numa;
mod overhead;
mod programs;
mod spread;

use crate::claim;
use crate::plan::Plan;
use crate::{Effort, StudyOptions, StudyProgress, Watch};
use varve_pages::governor::{BandwidthModel, SHARE};
use varve_report::StudyResult;
use varve_run::membench::MemBench;
use varve_run::{Error, RunResult, VERSION};

/// The state shared by the parts of the study.
struct Setup<'a> {
    options: &'a StudyOptions,
    bench: MemBench,
}

impl Setup<'_> {
    fn quick(&self) -> bool {
        self.options.effort != Effort::Full
    }

    fn tiny(&self) -> bool {
        self.options.effort == Effort::Tiny
    }
}

pub fn run(options: &StudyOptions, watch: Watch) -> Result<StudyResult, Error> {
    let (scale, writes, most_ns) = match options.effort {
        Effort::Tiny => (128, 500, 200_000),
        Effort::Quick => (32, 4_000, 3_000_000),
        Effort::Full => (8, 20_000, 20_000_000),
    };
    let setup = Setup {
        options,
        bench: MemBench {
            machine: options.machine("haswell-2620v3")?,
            scale,
            writes,
            most_ns,
            seed: options.seed,
        },
    };
    let mut plan = Plan::default();
    dimm::plan(&setup, &mut plan)?;
    spread::plan(&setup, &mut plan)?;
    numa::plan(&setup, &mut plan)?;
    overhead::plan(&setup, &mut plan)?;
    let results = plan.make(options, watch)?;
    let mut out = StudyResult::new("cross-layer", "haswell-2620v3", options.seed, VERSION);
    out.title = "Colours, trays and DRAM energy".into();
    // The programs' governor uses the results of MemBench.
    results.all_there()?;
    let model = spread::model(&setup, &results);
    let ran = programs::run(&setup, model.as_ref(), watch)?;
    options.goes_on()?;
    out.about = about(&setup, model.as_ref());
    dimm::claims(&setup, &results, &mut out);
    spread::claims(&setup, &results, &mut out);
    numa::claims(&setup, &results, &mut out);
    if let Some(ran) = &ran {
        programs::claims(&setup, ran, &mut out);
    }
    watch(&StudyProgress {
        done: 1,
        runs: 1,
        what: "sampling on this host".into(),
    });
    overhead::claims(&setup, &results, &mut out)?;
    if let Some(ran) = ran.as_ref().filter(|_| options.wants("B10")) {
        programs::sampler_claims(ran, &mut out);
    }
    out.claims.retain(|c| options.wants(&c.id));
    let ran = ran.iter().flat_map(programs::Ran::failures);
    for (name, why) in results.failures().chain(ran) {
        out.failures.push(format!("the run {name} failed: {why}"));
    }
    Ok(out)
}

fn about(setup: &Setup, model: Option<&BandwidthModel>) -> Vec<String> {
    let mut about = vec![
        format!(
            "MemBench and NUMABench at 1/{} of full size, caches and objects alike, twelve threads on six cores. Energies are of the socket \
             that the program uses, of both where it uses both.",
            setup.bench.scale
        ),
        "The paper's watts are the processor's own estimate of its memory; ours are computed from data sheets. The processors' part is a base and \
         so much per busy core."
            .into(),
        "Programs are SciMark's kernels and other Java programs of Varve's, not DaCapo: they stand for its low and middle bandwidths. An instance \
         is a thread; eleven of them share the machine."
            .into(),
    ];
    if let Some(model) = model {
        let limits: Vec<String> = model.limits().iter().map(|l| format!("{l:.1}")).collect();
        about.push(format!(
            "The governor's model, {SHARE} of what DIMMs carry in our sweep of MemBench: more than 1, 2, ... hot DIMMs from {} GB/s on (the \
             paper's machine: 10.1, 12.5, 16.3).",
            limits.join(", ")
        ));
    }
    about
}

/// W of the memory of `sockets` sockets.
fn watts(r: &RunResult, sockets: usize) -> f64 {
    r.power
        .as_ref()
        .map_or(f64::NAN, |p| p.sockets.iter().take(sockets).sum())
}

/// W of processors and memory of `sockets` sockets.
fn all_watts(r: &RunResult, sockets: usize) -> f64 {
    let cpu = r.power.as_ref().and_then(|p| p.cpu);
    let [busy, asleep] = cpu.unwrap_or([f64::NAN; 2]);
    let cpu = if sockets > 1 { busy + asleep } else { busy };
    watts(r, sockets) + cpu
}

/// Bytes a second from and to all memory.
fn traffic(r: &RunResult) -> f64 {
    r.power
        .as_ref()
        .map_or(f64::NAN, |p| p.traffic.iter().sum())
}

/// Percent that `a` has less of something than `b`.
fn saved(a: f64, b: f64) -> f64 {
    100.0 * (1.0 - a / b)
}
