//! Plans for the memory of Java virtual machines: which generation is in which memory.

use std::time::Duration;
use varve_heap::plans::pima;
use varve_heap::{Pima, PimaSettings};
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
    /// As [`By::Ranges`] with the young one and all outside in fast memory; the old one is where the program runs well, which is
    /// found out on a live machine alone.
    Sampled(Sampled),
}

/// How it is found out in which memory the old generation is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// What the decision goes by.
    pub settings: PimaSettings,
    /// Bytes that the program allocates in an interval.
    pub allocation: u64,
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
        match self.by {
            By::Ranges { young, old, .. } => young != old,
            By::Sampled(_) => true,
            By::Fast | By::Pages(_) => false,
        }
    }

    /// Whether fast memory that it wants may be limited.
    pub fn is_limited(&self) -> bool {
        match self.by {
            By::Fast => false,
            By::Ranges { young, old, .. } => young || old,
            By::Pages(_) | By::Sampled(_) => true,
        }
    }

    /// Whether it is there on a live machine alone.
    pub fn is_live(&self) -> bool {
        matches!(self.by, By::Sampled(_))
    }

    /// What is said to whoever wants such a plan on a model.
    pub fn not_on_a_model(&self) -> Option<String> {
        let name = self.name;
        self.is_live().then(|| {
            format!("--plan {name}: goes by how the program runs while it runs, which a recording does not tell: take it with --live")
        })
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
    Plan::new(
        "pima",
        "the young generation in fast memory, the old one where the program runs well, found by sampling both memories (PIMA)",
        By::Sampled(Sampled {
            settings: PAPER,
            allocation: 0,
        }),
    ),
];

/// The settings of the paper; a plan that is named has those that were given.
const PAPER: PimaSettings = PimaSettings {
    alpha: 1.5,
    intervals: 2,
    hold_off: Duration::from_secs(50),
    warm_up: 1,
    coordinated: false,
};

/// The parameter of `pima` that a program's heap does not need: programs here need not report intervals.
pub const ALLOCATION: Param = Param::new(
    "allocation",
    Want::Bytes,
    "1GiB",
    "bytes that the program allocates in an interval, at least 1MiB; a program that reports intervals has its own",
);

/// The least of it, bytes: what is allocated is known by collections.
const LEAST: u64 = 1 << 20;

/// What `pima` takes.
pub const SAMPLING: &[Param] = &[pima::ALPHA, pima::INTERVALS, pima::HOLD_OFF, ALLOCATION];

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
    if plan.is_live() {
        return Ok((plan, By::Sampled(sampled(plan.name, given)?)));
    }
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

fn sampled(name: &str, given: &str) -> Result<Sampled, varve_spec::Error> {
    let values = Values::parse(KIND, name, SAMPLING, &[], given)?;
    let rule =
        |key, value: String, rule: &str| varve_spec::Error::rule(KIND, name, key, value, rule);
    let settings = pima::settings(&values);
    if Pima::new(settings).is_err() {
        let least = "must be at least 1: it is a slowdown";
        return Err(rule(pima::ALPHA.key, settings.alpha.to_string(), least));
    }
    let allocation = values.count(ALLOCATION.key);
    if allocation < LEAST {
        let least = "must be at least 1MiB";
        return Err(rule(ALLOCATION.key, allocation.to_string(), least));
    }
    Ok(Sampled {
        settings,
        allocation,
    })
}

/// Is memory of this use in fast memory? `None` is what is of no use that is told.
pub fn is_fast(by: By, what: Option<Use>) -> bool {
    match (by, what) {
        (By::Ranges { young, .. }, Some(Use::Young | Use::Eden | Use::Survivor)) => young,
        // A heap in one piece is where its old objects are.
        (By::Ranges { old, .. }, Some(Use::Old | Use::Heap)) => old,
        (By::Ranges { outside, .. }, _) => outside,
        (By::Sampled(_), Some(Use::Old | Use::Heap)) => false,
        (By::Fast | By::Pages(_) | By::Sampled(_), _) => true,
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
    fn pima_takes_what_it_takes_in_a_heap_and_the_paper_says_the_rest() {
        let (_, by) = plan("pima:alpha=2,hold-off=5s,allocation=64MiB").unwrap();
        let settings = PimaSettings {
            alpha: 2.0,
            hold_off: Duration::from_secs(5),
            ..PAPER
        };
        let allocation = 64 << 20;
        assert_eq!(
            by,
            By::Sampled(Sampled {
                settings,
                allocation
            })
        );
        let (_, By::Sampled(paper)) = plan("pima").unwrap() else {
            panic!("pima samples");
        };
        assert_eq!((paper.settings, paper.allocation), (PAPER, 1 << 30));
    }

    #[test]
    fn what_is_no_plan_is_refused_in_one_line() {
        for (spec, said) in [
            ("kg-m", "kg-n"),
            ("kg-n:inside=slow", "outside"),
            ("kg-n:outside=dram", "fast"),
            ("dram:outside=slow", "dram"),
            ("pima:alpha=0.5", "alpha"),
            ("pima:allocation=4KiB", "at least 1MiB"),
            ("pima:together=no", "together"),
        ] {
            let error = plan(spec).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}
