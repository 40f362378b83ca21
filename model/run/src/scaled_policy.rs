//! Page policies that sample, in runs much shorter than those that they are made for.
//!
//! A policy that samples one access in 10,000 needs minutes to distinguish hot pages from cold ones. A recorded run is
//! that of a program much smaller than its machine. It stands for a larger and longer one with larger pages, all by the
//! ratio of the machine's fast memory to the run's. So the policy samples more often by that ratio, and each sample and
//! each move costs less by it, as on a machine that is scaled down ([`Machine::scaled`]): a page gets as many samples,
//! and sampling and moving take the same share of the time.

use varve_machine::Machine;
use varve_machine::model::Sampled;
use varve_pages::{Placement, policies};

/// The parameter for the size of the program that a run stands for, in times of the recorded one.
const SCALE: &str = "scale";

/// A policy's specification for a run with `budget` of the `whole` bytes of fast memory that the machine has. Given
/// parameters stay.
pub fn for_run(spec: &str, whole: u64, budget: u64) -> String {
    let samples = policies::entry(spec).is_ok_and(|p| p.params.iter().any(|q| q.key == "period"));
    let scale = (whole / budget.max(1)).max(1).ilog2();
    match samples && scale > 0 && !varve_spec::gives(spec, SCALE) {
        true => varve_spec::with(spec, SCALE, 1u64 << scale),
        false => spec.into(),
    }
}

/// The machine for a policy with a scale: samples and moves cost less by it.
pub fn machine_for(spec: &str, machine: &mut Machine) {
    let scale = scale(spec) as f64;
    let os = &mut machine.os;
    for ns in [&mut os.sample_ns, &mut os.remap_ns, &mut os.shootdown_ns] {
        *ns /= scale;
    }
}

/// The scale of a policy; 1 where it has none.
pub fn scale(spec: &str) -> u64 {
    policies::parse(spec).map_or(1, |(_, values)| values.scale())
}

/// A note that a policy, named so, saw little of the program, if it decides while that runs and only windows of the run are known.
pub fn sees_windows(name: &str, spec: &str, sampled: Option<&Sampled>) -> Option<String> {
    let sampled = sampled?;
    let decides = policies::entry(spec).is_ok_and(|policy| !policy.observes.is_empty());
    decides.then(|| {
        format!(
            "`{name}` decides by what a program does, and saw it for {:.0} ms of model time alone, in windows: in the whole run it has \
             more time to move pages. A whole recording shows that (--whole).",
            sampled.ran_ns as f64 / 1e6
        )
    })
}

/// A note that a policy, named so, has too few samples to distinguish hot pages from cold ones, and how many would be
/// enough. `None` if it has moved pages or found hot ones, if it takes no samples, or if none of `pages` pages is
/// `slow`, which is in slow memory.
pub fn undecided(name: &str, placement: &Placement, pages: u64, slow: u64) -> Option<String> {
    let (policy, counters) = (placement.policy(), placement.counters());
    let (heat, period) = (policy.heat()?, policy.daemons().sample_period);
    let from = heat.thresholds().loads;
    let enough = u64::from(from) * pages;
    let found = heat.coolings() > 0 || heat.hot_frames().next().is_some();
    let idle = period == 0 || slow == 0 || counters.moves_asked > 0;
    if idle || counters.samples >= enough || found {
        return None;
    }
    let times = enough.div_ceil(counters.samples.max(1));
    let shorter = match period / times {
        0 => String::new(),
        shorter => {
            let shorter = shorter * scale(placement.spec());
            let spec = varve_spec::with(name, "sample-period", shorter);
            format!("`{spec}`, or ")
        }
    };
    Some(format!(
        "`{name}` cannot tell hot pages from cold ones here: {} samples of {pages} pages, and a page is hot from {from} on. Take \
         {shorter}a run {times} times as long.",
        counters.samples
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_samples_looks_as_much_more_often_as_the_run_has_less_fast_memory() {
        let gib = 1u64 << 30;
        for (spec, budget, scaled) in [
            ("hotset", gib / 10, "hotset:scale=512"),
            ("hotset:cool=32", gib, "hotset:cool=32,scale=64"),
            ("hotset:scale=1", gib, "hotset:scale=1"),
            ("hotset", 64 * gib, "hotset"),
            ("hotset", 100 * gib, "hotset"),
            ("first-touch", gib, "first-touch"),
        ] {
            assert_eq!(for_run(spec, 64 * gib, budget), scaled, "{spec} {budget}");
        }
        let mut machine = Machine::load("cxl-spr").unwrap();
        let before = machine.os.sample_ns;
        machine_for("first-touch", &mut machine);
        assert_eq!(machine.os.sample_ns, before);
        machine_for("hotset:scale=64", &mut machine);
        assert_eq!(machine.os.sample_ns, before / 64.0);
    }
}
