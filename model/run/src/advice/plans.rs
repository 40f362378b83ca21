//! Advice on plans beside the one with all in fast memory: their savings of fast memory, or of the memory's energy.

use super::{Advice, Candidate, Saves, Size, advice};
use crate::Outcomes;
use crate::pipeline::{Compared, Comparison, Of};

/// Advice where plans save fast memory.
pub fn of_plans<C: Comparison>(
    comparison: &C,
    came: &Outcomes<Of<C>>,
    base: &Of<C>,
    size: Size,
) -> Advice {
    beside(
        came.candidates(comparison, base),
        base.name(),
        Saves::Dram,
        size,
    )
}

/// Advice on a machine with one memory, where plans save energy.
pub fn of_energy<R: Compared>(base: &R, results: &[&R], size: Size) -> Advice {
    let candidate = |r: &&R| {
        Some(Candidate {
            name: r.name().into(),
            about: String::new(),
            time: r.slowdown(base),
            price: r.energy_j? / base.energy_j?,
            budget: None,
            advised: true,
            linux: false,
            slow_share: r.slow_share,
            moves: r.moved_bytes > 0,
        })
    };
    let all = results.iter().filter_map(candidate).collect();
    beside(all, base.name(), Saves::Energy, size)
}

/// The base among all, and the others beside it.
fn beside(all: Vec<Candidate>, base: &str, saves: Saves, size: Size) -> Advice {
    let (of_base, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|run| run.name == base);
    match of_base.first() {
        Some(of_base) => advice(of_base, &others, saves, size),
        None => Advice::default(),
    }
}
