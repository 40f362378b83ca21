//! Managed programs that are run for a given time, not all of whose instances run all of it.

use varve_machine::Machine;
use varve_observed::{ManagedProgram, ManagedSpec, PlanResult, Shifts, Who, run_managed};
use varve_run::Spec;

/// A millisecond of a kernel whose data fit the caches, again and again; it would take hours.
fn spec(instances: u32, who: Who) -> ManagedSpec {
    let scimark = include_bytes!("../../../programs/dist/scimark.wasm");
    let words = ["sor", "1", "--rounds", "1000000"];
    let program = ManagedProgram::new("scimark.wasm", &scimark[..]).with_arguments(words);
    let machine = Machine::load("haswell-2620v3").unwrap();
    let mut spec = ManagedSpec::new(machine, "dram", program);
    spec.instances = instances;
    spec.shifts = Some(Shifts {
        end_ns: 1_000_000,
        who,
    });
    spec
}

fn run(instances: u32, who: Who) -> PlanResult {
    run_managed(&spec(instances, who), &mut |_| true).unwrap().0
}

#[test]
fn a_run_ends_at_its_time_wherever_its_programs_are_and_is_the_same_each_time() {
    let r = run(2, Who::All);
    // A thread ends after the accesses that it had been given.
    assert!((1e-3..1.1e-3).contains(&r.seconds), "{}", r.seconds);
    assert_eq!(r.instance_seconds.len(), 2, "every instance is run");
    assert!(r.instructions > 100_000);
    assert_eq!(run(2, Who::All), r);
}

#[test]
fn instances_that_are_away_do_nothing_and_draw_nothing() {
    let all = run(2, Who::All);
    let half = run(
        2,
        Who::First {
            counts: vec![2, 1],
            span_ns: 500_000,
        },
    );
    // `instructions` are those of an instance.
    let done = half.instructions as f64 / all.instructions as f64;
    assert!((0.7..0.8).contains(&done), "{done}: three quarters");
    assert!(half.cpu_j.unwrap() < all.cpu_j.unwrap());
}

#[test]
fn a_thread_too_many_takes_its_part_from_all() {
    let all = run(4, Who::All);
    let four_on_three = Who::AllButOne {
        turns: 4,
        slice_ns: 20_000,
        rest_ns: 20_000,
    };
    let r = run(4, four_on_three);
    let done = r.instructions as f64 / all.instructions as f64;
    assert!((0.72..0.78).contains(&done), "{done}: three quarters");
    let times = r.instance_seconds;
    assert!(times.iter().all(|t| *t >= 1e-3), "{times:?}");
}

#[test]
fn results_are_kept_by_the_time_and_the_shifts() {
    let mut whole = spec(2, Who::All);
    let timed = whole.identity().unwrap();
    whole.shifts = None;
    let whole = whole.identity().unwrap();
    assert!(timed.starts_with(&whole) && timed.len() > whole.len());
}
