//! Measurements that runs of pages and of objects share.

use serde_json::Value;
use varve_machine::Machine;
use varve_observed::{Access, ManagedProgram, ManagedSpec, PlanResult, run_managed};
use varve_run::{Measured, RunResult, RunSpec, Work, run};

fn pages(machine: &str, policy: &str, scale: u32) -> RunResult {
    let work = Work::parse("gups:bytes=1GiB,updates=20k,threads=2").unwrap();
    let mut spec = RunSpec::new(Machine::load(machine).unwrap(), policy, work);
    spec.scale = scale;
    run(&spec, &mut |_| true).unwrap()
}

/// One name for one thing: rows of both kinds have the same keys.
#[test]
fn pages_and_plans_say_the_same_by_the_same_names() {
    let trees = include_bytes!("../../../programs/dist/trees.wasm");
    let program = ManagedProgram::new("trees.wasm", &trees[..]).with_arguments(["6"]);
    let spec = ManagedSpec::new(Machine::load("optane-6242").unwrap(), "kg-n", program);
    let plan = run_managed(&spec, &mut |_| true).unwrap().0;
    let policy = pages("cxl-spr", "first-touch", 64);
    let rows = [
        serde_json::to_value(&plan).unwrap(),
        serde_json::to_value(&policy).unwrap(),
    ];
    let Value::Object(names) = serde_json::to_value(Measured::default()).unwrap() else {
        panic!("an object")
    };
    for (row, decided) in rows.iter().zip(["plan", "policy"]) {
        assert!(row[decided].is_string(), "{row}");
        for name in names.keys() {
            assert!(row.get(name).is_some(), "no {name} beside `{decided}`");
        }
    }
    // The saved row is read again.
    let [one, two] = rows;
    assert_eq!(
        serde_json::from_value::<varve_observed::PlanResult>(one).unwrap(),
        plan
    );
    assert_eq!(serde_json::from_value::<RunResult>(two).unwrap(), policy);
}

/// Bytes of pages are at full size, and each is in one memory; a DRAM cache holds none of its own.
#[test]
fn every_page_is_in_one_memory() {
    for scale in [64, 128] {
        let fast = pages("cxl-spr", "fast", scale);
        let all = fast.placement.pages * fast.page_bytes;
        assert!(all >= 1 << 30, "1 GiB of table");
        assert_eq!((fast.fast_bytes, fast.slow_bytes), (all, 0));
        assert!(fast.fast_read_bytes > 0 && fast.slow_read_bytes == 0);
        let both = pages("cxl-spr", "interleave", scale);
        assert_eq!(both.fast_bytes + both.slow_bytes, all);
        assert!(both.fast_bytes > 0 && both.slow_bytes > 0);
        assert_eq!(both.slow_read_bytes, 64 * both.slow_reads);
        assert_eq!(both.slow_written_bytes, 64 * both.slow_writes);
    }
    let cached = pages("optane-6230-memory-mode", "static", 64);
    assert_eq!(cached.fast_bytes, 0);
    assert!(cached.slow_bytes > 0 && cached.fast_read_bytes > 0);
    let one = pages("haswell-2620v3", "first-touch", 64);
    assert!(one.fast_bytes > 0);
    assert_eq!((one.slow_bytes, one.slow_read_bytes), (0, 0));
}

/// PageRank on the model, its graph in memory or in a file.
fn ranks(in_file: bool) -> PlanResult {
    let graph = include_bytes!("../../../programs/dist/graph.wasm");
    let program = ManagedProgram::new("graph.wasm", &graph[..]);
    let words = ["pagerank", "--scale", "12", "--iterations", "2"];
    let program = match in_file {
        false => program.with_arguments(words),
        true => ManagedProgram {
            access: Access::to_own_folder(),
            ..program.with_arguments(words.into_iter().chain(["--shards", "shards"]))
        },
    };
    let spec = ManagedSpec::new(Machine::load("optane-6242").unwrap(), "slow", program);
    run_managed(&spec, &mut |_| true).unwrap().0
}

/// A graph in a file is read through the system's cache, which is in fast memory whatever the plan is. That is not the program's.
#[test]
fn what_is_in_files_is_in_no_memory_of_the_program() {
    let [own, file] = [false, true].map(ranks);
    // Linear memory is in fast memory, too.
    assert!(file.fast_read_bytes > 4 * own.fast_read_bytes);
    // But for the buffer of a copy, which is in linear memory.
    assert!(file.fast_bytes < own.fast_bytes + (64 << 10));
    assert_eq!(file, ranks(true), "the same each time, whatever the folder");
}
