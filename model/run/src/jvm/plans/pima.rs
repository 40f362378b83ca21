//! `pima`: the old generation in the memory where the program runs well, which sampling both memories shows (Akram,
//! TACO 2021).

use super::{By, PlanEntry};
use crate::catalogue::LiveSupport;
use varve_pima::{Pima, PimaSettings, params};
use varve_spec::{Param, Values, Want};

/// Its entry in the catalogue.
pub const ENTRY: PlanEntry = PlanEntry {
    source: "Akram, TACO 2021: PIMA",
    params: &[
        params::ALPHA,
        params::INTERVALS,
        params::HOLD_OFF,
        ALLOCATION,
    ],
    live: LiveSupport::Only(
        "run --live --plan",
        "decides by how fast the program runs, which a recording does not contain",
    ),
    ..PlanEntry::new(
        "pima",
        "the young generation in fast memory, the old one where the program runs well, found by sampling both memories",
        |values| Ok(By::Sampled(sampled(values)?)),
    )
};

/// How it is found out in which memory the old generation is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Parameters of the decision.
    pub settings: PimaSettings,
    /// Bytes that the program allocates in an interval.
    pub allocation: u64,
}

/// The parameter of `pima` that a program's heap does not need: programs here need not report intervals.
const ALLOCATION: Param = Param::new(
    "allocation",
    Want::Bytes,
    "1GiB",
    "bytes that the program allocates in an interval, at least 1MiB; a program that reports intervals has its own",
);

/// The least of it, bytes: allocation is known only when collections end.
const LEAST: u64 = 1 << 20;

fn sampled(values: &Values) -> Result<Sampled, varve_spec::Error> {
    let settings = params::settings(values);
    if Pima::new(settings).is_err() {
        let least = "must be at least 1: it is a slowdown";
        return Err(values.refuse(params::ALPHA.key, least));
    }
    let allocation = values.count(ALLOCATION.key);
    if allocation < LEAST {
        return Err(values.refuse(ALLOCATION.key, "must be at least 1MiB"));
    }
    Ok(Sampled {
        settings,
        allocation,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{By, PLANS};
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_takes_what_it_takes_in_a_heap_and_the_paper_says_the_rest() {
        let sampled = |spec: &str| match PLANS.find(spec).unwrap().by {
            By::Sampled(sampled) => sampled,
            other => panic!("{other:?}"),
        };
        let paper = PimaSettings {
            alpha: 1.5,
            intervals: 2,
            hold_off: Duration::from_secs(50),
            warm_up: 1,
            coordinated: false,
        };
        let usual = sampled("pima");
        assert_eq!((usual.settings, usual.allocation), (paper, 1 << 30));
        let given = sampled("pima:alpha=2,hold-off=5s,allocation=64MiB");
        let settings = PimaSettings {
            alpha: 2.0,
            hold_off: Duration::from_secs(5),
            ..paper
        };
        assert_eq!((given.settings, given.allocation), (settings, 64 << 20));
    }
}
