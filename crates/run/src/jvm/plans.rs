//! Plans for the memory of Java virtual machines: which generation is in which memory.

use varve_spec::{Param, Values, Want};
use varve_trace::Use;

/// What a plan is called in errors.
const KIND: &str = "plan for Java virtual machines";

/// What a plan goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// All is in fast memory, of which there is enough.
    Fast,
    /// Generations: whether the young one, the old one, and all outside of the heap are in fast memory.
    Ranges {
        /// The young generation.
        young: bool,
        /// The old generation.
        old: bool,
        /// Code, metaspace, stacks, and what the machine itself allocates.
        outside: bool,
    },
    /// A page policy of this name.
    Pages(&'static str),
}

/// A plan.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// What it does, in half a line.
    pub about: &'static str,
    /// What it goes by.
    pub by: By,
    /// Whether it is another name of a plan before it, which `all` does not mean.
    pub alias: bool,
}

impl Plan {
    const fn new(name: &'static str, about: &'static str, by: By) -> Plan {
        Plan {
            name,
            about,
            by,
            alias: false,
        }
    }

    /// Whether it tells generations apart.
    pub fn by_generation(&self) -> bool {
        matches!(self.by, By::Ranges { young, old, .. } if young != old)
    }

    /// Whether fast memory that it wants may be limited.
    pub fn is_limited(&self) -> bool {
        match self.by {
            By::Fast => false,
            By::Ranges { young, old, .. } => young || old,
            By::Pages(_) => true,
        }
    }
}

const OLD_ONE_FAST: By = By::Ranges {
    young: false,
    old: true,
    outside: true,
};
const YOUNG_ONE_FAST: By = By::Ranges {
    young: true,
    old: false,
    outside: true,
};

/// All plans, the simplest first.
pub const PLANS: &[Plan] = &[
    Plan::new(
        "dram",
        "all in fast memory, of which there is enough: the bound",
        By::Fast,
    ),
    Plan::new(
        "slow",
        "all in slow memory",
        By::Ranges {
            young: false,
            old: false,
            outside: false,
        },
    ),
    Plan::new(
        "slow-scan",
        "the old generation in fast memory, the young one in slow memory",
        OLD_ONE_FAST,
    ),
    Plan::new(
        "kg-n",
        "the young generation in fast memory, the old one in slow memory (Kingsguard-nursery)",
        YOUNG_ONE_FAST,
    ),
    Plan {
        alias: true,
        ..Plan::new("slow-copy", "another name of kg-n", YOUNG_ONE_FAST)
    },
    Plan::new(
        "first-touch",
        "pages in fast memory until it is full (Linux)",
        By::Pages("first-touch"),
    ),
    Plan::new(
        "interleave",
        "pages in turns in both memories (Linux)",
        By::Pages("interleave"),
    ),
    Plan::new(
        "hotset",
        "hot pages move to fast memory while the program runs (HeMem)",
        By::Pages("hotset"),
    ),
];

/// The parameter of plans by generation.
pub const OUTSIDE: Param = Param::new(
    "outside",
    Want::Word(&["plan", "fast", "slow"]),
    "plan",
    "the memory of code, metaspace, stacks and what the machine allocates for itself: fast unless the plan is slow, or another one",
);

/// The plan that a text names, and what it goes by with the parameters there: `name` or `name:outside=slow`.
///
/// # Errors
/// There is no such plan, or it takes no such parameter.
pub fn plan(spec: &str) -> Result<(&'static Plan, By), varve_spec::Error> {
    let plan = varve_spec::find(KIND, spec, PLANS, |plan| plan.name)?;
    let (_, given) = varve_spec::split(spec);
    let By::Ranges {
        young,
        old,
        outside,
    } = plan.by
    else {
        Values::parse(KIND, plan.name, &[], &[], given)?;
        return Ok((plan, plan.by));
    };
    let values = Values::parse(KIND, plan.name, &[OUTSIDE], &[], given)?;
    let outside = match values.word(OUTSIDE.key) {
        "fast" => true,
        "slow" => false,
        _ => outside,
    };
    let by = By::Ranges {
        young,
        old,
        outside,
    };
    Ok((plan, by))
}

/// Is memory of this use in fast memory? `None` is what is of no use that is told.
pub fn is_fast(by: By, what: Option<Use>) -> bool {
    match (by, what) {
        (By::Ranges { young, .. }, Some(Use::Young | Use::Eden | Use::Survivor)) => young,
        // A heap in one piece is where its old objects are.
        (By::Ranges { old, .. }, Some(Use::Old | Use::Heap)) => old,
        (By::Ranges { outside, .. }, _) => outside,
        (By::Fast | By::Pages(_), _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kg_n_has_the_young_in_fast_memory_and_slow_scan_the_old() {
        let (_, kg_n) = plan("kg-n").unwrap();
        let (_, slow_copy) = plan("slow-copy").unwrap();
        let (_, slow_scan) = plan("slow-scan").unwrap();
        assert_eq!(kg_n, slow_copy);
        for what in Use::ALL {
            let young = matches!(what, Use::Young | Use::Eden | Use::Survivor);
            let heap = young || matches!(what, Use::Old | Use::Heap);
            assert_eq!(is_fast(kg_n, Some(what)), young || !heap, "{what:?}");
            assert_eq!(is_fast(slow_scan, Some(what)), !young, "{what:?}");
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
            let (_, by) = plan(spec).unwrap();
            assert_eq!(is_fast(by, None), fast, "{spec}");
            assert_eq!(is_fast(by, Some(Use::Code)), fast, "{spec}");
        }
    }

    #[test]
    fn what_is_no_plan_is_refused_in_one_line() {
        for (spec, said) in [
            ("kg-m", "kg-n"),
            ("kg-n:inside=slow", "outside"),
            ("kg-n:outside=dram", "fast"),
            ("dram:outside=slow", "dram"),
        ] {
            let error = plan(spec).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}
