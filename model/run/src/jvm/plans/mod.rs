//! Plans for the memory of Java virtual machines: which generation is in which memory. Each is one file here, with its `ENTRY`; page
//! policies are plans too.

mod dram;
mod kg_n;
mod pima;
mod slow;
mod slow_copy;
mod slow_scan;

pub use pima::Sampled;

use crate::catalogue::{Catalogue, Chosen, Entry};
use varve_spec::{Param, Values, Want};
use varve_trace::Use;

/// Placement rule of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// All is in fast memory, of which there is enough.
    Fast,
    /// Generations: whether the young one, the old one, and all outside of the heap are in fast memory.
    Ranges {
        /// The young generation.
        young: bool,
        /// The old generation.
        old: bool,
        /// Code, metaspace, stacks, and allocations of the machine itself.
        outside: bool,
    },
    /// A page policy, `name:key=value,...`.
    Pages(String),
    /// As [`By::Ranges`] with the young one and all outside in fast memory; the old one is where the program runs well, which is
    /// found out on a live machine alone.
    Sampled(Sampled),
}

impl By {
    /// Whether it distinguishes generations.
    pub fn by_generation(&self) -> bool {
        match self {
            By::Ranges { young, old, .. } => young != old,
            By::Sampled(_) => true,
            By::Fast | By::Pages(_) => false,
        }
    }

    /// Whether memory of this use is in fast memory. `None`: the machine has not reported the use of this memory.
    pub fn is_fast(&self, what: Option<Use>) -> bool {
        match (self, what) {
            (By::Ranges { young, .. }, Some(Use::Young | Use::Eden | Use::Survivor)) => *young,
            // A heap in one piece is where its old objects are.
            (By::Ranges { old, .. }, Some(Use::Old | Use::Heap)) => *old,
            (By::Ranges { outside, .. }, _) => *outside,
            (By::Sampled(_), Some(Use::Old | Use::Heap)) => false,
            (By::Fast | By::Pages(_) | By::Sampled(_), _) => true,
        }
    }
}

/// All plans for Java virtual machines.
pub const PLANS: Catalogue<By> = Catalogue {
    kind: "plan for Java virtual machines",
    before: &[
        dram::ENTRY,
        slow::ENTRY,
        slow_scan::ENTRY,
        kg_n::ENTRY,
        slow_copy::ENTRY,
    ],
    after: &[pima::ENTRY],
    pages: By::Pages,
};

/// A plan that was named.
pub type Plan = Chosen<By>;

type PlanEntry = Entry<By>;

/// The command that runs plans by generation live.
const LIVE: crate::catalogue::LiveSupport = crate::catalogue::LiveSupport::By("run --live --plan");

/// The parameter of plans by generation.
const OUTSIDE: Param = Param::new(
    "outside",
    Want::Word(&["plan", "fast", "slow"]),
    "plan",
    "the memory of code, metaspace, stacks and allocations of the machine itself: fast unless the plan is slow, or another one",
);

/// Generations in fast memory or not, with [`OUTSIDE`] as a user wants it, else as the plan has it.
fn generations(values: &Values, young: bool, old: bool) -> By {
    let outside = match values.word(OUTSIDE.key) {
        "fast" => true,
        "slow" => false,
        _ => young || old,
    };
    By::Ranges {
        young,
        old,
        outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(spec: &str) -> By {
        PLANS.find(spec).unwrap().by
    }

    #[test]
    fn kg_n_has_the_young_in_fast_memory_and_slow_scan_the_old() {
        assert_eq!(by("kg-n"), by("slow-copy"));
        for what in Use::ALL {
            let young = matches!(what, Use::Young | Use::Eden | Use::Survivor);
            let heap = young || matches!(what, Use::Old | Use::Heap);
            assert_eq!(by("kg-n").is_fast(Some(what)), young || !heap, "{what:?}");
            assert_eq!(by("slow-scan").is_fast(Some(what)), !young, "{what:?}");
        }
    }

    #[test]
    fn what_is_outside_of_the_heap_is_where_one_says() {
        for (spec, fast) in [
            ("slow", false),
            ("slow:outside=fast", true),
            ("kg-n", true),
            ("kg-n:outside=slow", false),
            ("kg-n:outside=plan", true),
        ] {
            assert_eq!(by(spec).is_fast(None), fast, "{spec}");
            assert_eq!(by(spec).is_fast(Some(Use::Code)), fast, "{spec}");
        }
    }

    #[test]
    fn all_has_each_plan_once_and_under_one_name() {
        let all = PLANS.list("all", |plan| plan.name != "pima").unwrap();
        let names: Vec<&str> = all.iter().map(|plan| plan.name).collect();
        let known = "dram slow slow-scan kg-n first-touch interleave hotset";
        assert_eq!(names.join(" "), known);
    }

    #[test]
    fn what_is_no_plan_is_refused_in_one_line() {
        for (spec, said) in [
            ("kg-m", "kg-n"),
            ("kg-n:inside=slow", "outside"),
            ("kg-n:outside=dram", "fast"),
            ("dram:outside=slow", "dram"),
            ("hotset:bogus=1", "bogus"),
            ("pima:alpha=0.5", "alpha"),
            ("pima:allocation=4KiB", "at least 1MiB"),
            ("pima:together=no", "together"),
        ] {
            let error = PLANS.find(spec).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}
