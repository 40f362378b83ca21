//! Runs of a trace in step have the same results as each alone, to the bit: all counts, times, and the timeline.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use varve_access::{Daemons, Kind, Op, Pager};
use varve_machine::{Machine, load};
use varve_pages::Placement;
use varve_run::{Error, Keep, RunResult, RunSpec, Work, compare, policies_for, run};
use varve_trace::{
    BLOCK_OPS, End, Event, FileHeader, Footprint, TraceInfo, TraceReader, TraceWriter,
};

/// Part of a thread of a generated program.
#[derive(Clone, Debug)]
struct Stretch {
    thread: u32,
    ops: usize,
    /// First page, and how many from there on.
    pages: (u64, u64),
    /// Bytes between two accesses; 0: anywhere.
    step: u64,
    store: bool,
    dependent: bool,
}

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let one = (
        0u32..3,
        1usize..12_000,
        (0u64..900, 1u64..300),
        prop::sample::select(vec![0u64, 0, 8, 64, 200, 4096]),
        any::<bool>(),
        any::<bool>(),
    );
    let one = one.prop_map(|(thread, ops, pages, step, store, dependent)| Stretch {
        thread,
        ops,
        pages,
        step,
        store,
        dependent,
    });
    prop::collection::vec(one, 1..14)
}

/// Records them: threads that take turns, and wait for each other now and then.
fn record(path: &Path, stretches: &[Stretch], seed: u64) {
    let file = std::fs::File::create(path).unwrap();
    let header = FileHeader {
        command: vec!["generated".into()],
        ..FileHeader::default()
    };
    let mut writer = TraceWriter::new(file, path, &header).unwrap();
    let mut state = seed | 1;
    for (tick, s) in (1..).zip(stretches) {
        let ops = (0..s.ops as u64).map(|i| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let bytes = 4096 * s.pages.1;
            let at = match s.step {
                0 => (state >> 30) % bytes,
                step => step * i % bytes,
            };
            let addr = 4096 * s.pages.0 + at;
            let instructions = 1 + (state >> 61) as u32;
            match i % 997 {
                995 => return Op::new(Kind::Flush, addr, 8, 1),
                996 => return Op::mark(Kind::Fence, 0),
                500 => return Op::new(Kind::NtWrite, addr & !63, 64, 2),
                501 if i > 5_000 => return Op::new(Kind::Unmap, addr & !4095, 2, 1),
                _ => {}
            }
            let op = match s.store && state >> 63 == 0 {
                true => Op::write(addr, 8, instructions),
                false => Op::read(addr, 8, instructions),
            };
            if s.dependent { op.after_load() } else { op }
        });
        let ops: Vec<Op> = ops.collect();
        writer.push(s.thread, &ops).unwrap();
        writer.event(s.thread, Event::Wait { tick }).unwrap();
    }
    writer.finish(End::default()).unwrap();
}

/// One result, or its error.
fn told(result: Result<RunResult, Error>) -> Result<RunResult, String> {
    result.map_err(|e| e.to_string())
}

fn together(specs: &[RunSpec], workers: usize) -> Vec<Result<RunResult, String>> {
    let made = compare(
        specs,
        workers,
        &Keep::nothing(),
        &|_, _| true,
        &|_, _, _| {},
    );
    made.into_iter().map(told).collect()
}

fn alone(specs: &[RunSpec]) -> Vec<Result<RunResult, String>> {
    specs
        .iter()
        .map(|spec| told(run(spec, &mut |_| true)))
        .collect()
}

/// A run for each policy of a machine.
fn specs(machine: &Machine, scale: u32, path: &Path) -> Vec<RunSpec> {
    let policies = policies_for("all", &machine.scaled(scale), 4096).unwrap();
    let spec = |policy: &String| {
        let mut spec = RunSpec::new(machine.clone(), policy, Work::Trace(path.into()));
        (spec.page_bytes, spec.scale, spec.point_ns) = (4096, scale, 10_000);
        spec
    };
    policies.iter().map(spec).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn runs_in_step_end_as_each_does_alone(
        stretches in stretches(),
        machine in prop::sample::select(load::names(&[])),
        scale in 8u32..17,
        cores in 0u32..4,
        per_core in 1u32..3,
        until_ns in prop::option::of(100_000u64..2_000_000),
        looked in any::<bool>(),
        workers in 1usize..4,
        seed in any::<u64>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        record(&path, &stretches, seed);
        let reader = TraceReader::open(&path).unwrap();
        let footprint = Footprint::read(&reader, workers).unwrap();
        let info = TraceInfo::read(&reader).unwrap();
        prop_assert_eq!((footprint.ops, footprint.pages), (info.ops, info.pages));
        let machine = Machine::load(&machine).unwrap();
        let mut specs = specs(&machine, 1 << scale, &path);
        for spec in &mut specs {
            (spec.per_core, spec.seed) = (per_core, seed);
            (spec.on.cores, spec.on.until_s) = (cores, until_ns.map(|ns: u64| ns as f64 / 1e9));
        }
        let expected = alone(&specs);
        for spec in &mut specs {
            spec.footprint = looked.then_some(footprint);
        }
        prop_assert_eq!(together(&specs, workers), expected);
    }
}

/// A trace of more blocks than are kept, a policy that moves pages, and one that runs out of memory: the others go on.
#[test]
fn a_run_that_ends_early_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("a.trace");
    let stretch = |thread, page| Stretch {
        thread,
        ops: 3 * BLOCK_OPS,
        pages: (page, 1200),
        step: 0,
        store: page % 2 == 0,
        dependent: thread == 1,
    };
    let all: Vec<Stretch> = (0..14).map(|i| stretch(i as u32 % 2, 90 * i)).collect();
    record(&path, &all, 7);
    let machine = Machine::load("cxl-spr").unwrap();
    let specs = specs(&machine, 1 << 15, &path);
    let (alone, together) = (alone(&specs), together(&specs, 2));
    assert_eq!(together, alone);
    assert!(
        alone
            .iter()
            .any(|r| r.as_ref().is_err_and(|e| e.contains("out of memory")))
    );
    assert!(alone.iter().flatten().any(|r| r.moved_bytes > 0));
}

/// Stopping one run stops all that run, those too that wait for others: nothing hangs.
#[test]
fn a_comparison_that_is_stopped_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let stretch = Stretch {
        thread: 0,
        ops: 12 * BLOCK_OPS,
        pages: (0, 1000),
        step: 0,
        store: true,
        dependent: false,
    };
    record(&path, &vec![stretch; 4], 3);
    let specs = specs(&Machine::load("cxl-spr").unwrap(), 1 << 15, &path);
    let stop = |_: usize, now: Option<&varve_machine::model::Progress>| {
        now.is_none_or(|now| now.accesses < 1_000_000)
    };
    let made = compare(&specs, 2, &Keep::nothing(), &stop, &|_, _, _| {});
    assert!(
        made.iter()
            .any(|r| r.as_ref().is_err_and(Error::is_interrupt))
    );
    assert_eq!(made.len(), specs.len());
}

/// A trace that stores to `pages` pages, and gives the last `back` of them back.
fn record_pages(path: &Path, pages: u64, back: u16) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = TraceWriter::new(file, path, &FileHeader::default()).unwrap();
    let stores = (0..pages).map(|page| Op::write(4096 * page, 8, 1));
    writer.push(0, &stores.collect::<Vec<_>>()).unwrap();
    let first = 4096 * (pages - u64::from(back));
    writer
        .push(0, &[Op::new(Kind::Unmap, first, back, 1)])
        .unwrap();
    writer.finish(End::default()).unwrap();
}

/// A run that is refused before its trace is opened ends in the same way when it is begun. Only one that unmaps pages,
/// or whose policy moves pages, may be out of memory later.
#[test]
fn what_is_refused_would_have_ended_out_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let (mut refused, mut late) = (0, 0);
    let full = |e: &String| e.contains("out of memory");
    for back in [0, 900] {
        record_pages(&path, 3_000, back);
        let footprint = Footprint::read(&TraceReader::open(&path).unwrap(), 2).unwrap();
        assert_eq!(footprint.kept_pages, 3_000 - u64::from(back));
        for name in load::names(&[]) {
            let machine = Machine::load(&name).unwrap();
            for spec in specs(&machine, 1 << 15, &path) {
                let missing = RunSpec {
                    work: Work::Trace(folder.path().join("no.trace")),
                    footprint: Some(footprint),
                    ..spec.clone()
                };
                let ended = told(run(&spec, &mut |_| true)).map(drop);
                let before = told(run(&missing, &mut |_| true)).map(drop);
                if before.as_ref().is_err_and(full) {
                    refused += 1;
                    assert_eq!(before, ended, "{} on {name}", spec.policy);
                } else if ended.as_ref().is_err_and(full) {
                    late += 1;
                    let scaled = machine.scaled(spec.scale);
                    let placement = Placement::new(&spec.policy, &scaled, 4096).unwrap();
                    let moves = placement.daemons() != Daemons::default();
                    assert!(back > 0 || moves, "{} on {name}", spec.policy);
                }
            }
        }
    }
    assert!(refused > 0 && late > 0, "{refused} refused, {late} late");
}
