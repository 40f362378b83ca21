//! Advice on page policies, which all have the fast memory of one machine.

use super::{Advice, of_policies};
use crate::pipeline::Comparison;
use crate::{Outcomes, RunResult, Spec, speed};

/// Advice on page policies.
pub fn of_pages<C: Comparison<Spec: Spec<Result = RunResult>>>(
    comparison: &C,
    came: &Outcomes<RunResult>,
) -> Advice {
    // Which is the base is of no matter: there is no plan with all in DRAM.
    let Some(base) = came.base() else {
        return Advice::default();
    };
    let mut candidates = came.candidates(comparison, base);
    let (_, rate) = speed(&came.shown());
    for run in &mut candidates {
        // Runs that end at a time differ by their work in it.
        let result = came.named(&run.name).map_or(0.0, rate);
        run.time = 1.0 / result.max(f64::MIN_POSITIVE);
    }
    Advice {
        run: None,
        said: of_policies(&candidates),
    }
}
