//! Plan `sampled` in programs that run: on this machine beside them, and on the model by its time.

use varve_machine::Machine;
use varve_observed::{ManagedProgram, ManagedSpec, run_managed};
use varve_run::TrayOptions;
use varve_runtime::host::{Console, Input, Output};
use varve_runtime::{Config, Engine, Module, Store};

fn trees(depth: &str) -> ManagedProgram {
    let bytes = include_bytes!("../../../programs/dist/trees.wasm");
    ManagedProgram::new("trees.wasm", &bytes[..]).with_arguments([depth])
}

/// A thread of its own sees functions run; the program's answer is the same as ever.
#[test]
fn a_sampler_sees_what_runs_without_stopping_it() {
    let program = trees("12");
    let out = |plan: &str| {
        let engine = Engine::new(Config {
            plan: Some(plan.into()),
            nursery: 256 << 10,
            ..Config::default()
        });
        let module = Module::new(&engine, &program.bytes).unwrap();
        let console = Console {
            input: Input::new(Box::new(std::io::empty())),
            out: Output::new(Box::new(std::io::sink())),
            err: Output::new(Box::new(std::io::sink())),
        };
        let mut store = Store::new(&engine, program.state(console).unwrap()).unwrap();
        assert_eq!(program.start(&mut store, &module).unwrap(), 0);
        (store.warmth(), store.gc_stats().allocated)
    };
    let (none, allocated) = out("hints");
    assert_eq!(none, None);
    let (warmth, same) = out("sampled:interval=0s,cool=10s");
    let warmth = warmth.unwrap();
    assert_eq!(allocated, same);
    assert!(warmth.samples > warmth.empty, "{warmth:?}");
    assert!(
        warmth.methods > 10 && warmth.hot_methods > 0 && warmth.hot_types > 0,
        "{warmth:?}"
    );
    assert!(warmth.hot_methods < warmth.methods, "{warmth:?}");
}

/// On the model a run is the same every time, and what is warm moves objects: with a cool-down that is short enough, some are cold.
#[test]
fn samples_on_the_model_come_at_the_same_accesses_in_every_run() {
    let machine = Machine::load("haswell-2620v3").unwrap();
    let run = |plan: &str| {
        let mut spec = ManagedSpec::new(machine.clone(), plan, trees("12"));
        spec.config.nursery = 256 << 10;
        spec.trays = TrayOptions::default();
        run_managed(&spec, &mut |_| true).unwrap().0
    };
    let (one, two) = (
        run("sampled:interval=10us,cool=1ms"),
        run("sampled:interval=10us,cool=1ms"),
    );
    assert_eq!(one, two);
    assert!(
        one.slow_bytes > 0 && one.fast_bytes > 0,
        "hot {} cold {}",
        one.fast_bytes,
        one.slow_bytes
    );
    let never = run("sampled:interval=100s,cool=1ms");
    assert!(
        never.slow_bytes > one.slow_bytes,
        "nothing is warm without samples"
    );
}
