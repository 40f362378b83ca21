//! The one way from a request to its results, whether pages, sites, generations or objects of a heap are placed.
//!
//! A [`Comparison`] knows which runs answer a request. Some of them come first, since others depend on their results:
//! how much memory the program takes, which sites it has. [`answer`] makes them all and reports the result of each: one
//! that fails takes no other with it.

use crate::advice::{Advice, Candidate, Size};
use crate::steady::SteadyRun;
use crate::{Error, Measured, Outcomes, Seen, Spec};
use std::ops::Deref;

/// Result of a run that is compared with other runs of the same program.
pub trait Compared: Deref<Target = Measured> {
    /// Its name: its policy or its plan, and its budget where there are several.
    fn name(&self) -> &str;

    /// Calls it so from now on.
    fn rename(&mut self, name: &str);

    /// Its time, in times of that of another run.
    fn slowdown(&self, base: &Self) -> f64 {
        self.seconds / base.seconds.max(f64::MIN_POSITIVE)
    }

    /// The most bytes of pages that were in use at a time; 0 where they are not counted.
    fn most_bytes(&self) -> u64 {
        self.fast_bytes + self.slow_bytes
    }

    /// Why it ended early, or another warning.
    fn warning(&self) -> Option<&str> {
        None
    }

    /// The steady state, if its measurements are of that and not of the whole run.
    fn steady(&self) -> Option<SteadyRun> {
        None
    }

    /// The time of the whole run, s.
    fn whole_seconds(&self) -> f64 {
        self.steady()
            .map_or(self.seconds, |steady| steady.whole_seconds)
    }

    /// Data for pictures, if they are wanted.
    fn seen(&self) -> Option<&Seen>;
}

/// Runs of one program that are compared.
pub trait Comparison: Sized {
    /// One of them.
    type Spec: Spec<Result: Compared>;

    /// The name of each run, in order.
    fn names(&self) -> Vec<String>;

    /// Why a run is made.
    fn role(&self, run: usize) -> Role;

    /// Facts of a run that are known before it is made.
    fn facts(&self, run: usize) -> Facts;

    /// Runs that others depend on: the first ones. None if no run depends on another.
    fn first(&self) -> Vec<Self::Spec>;

    /// All other runs, by the results of the first ones, of which the very first has ended well.
    ///
    /// # Errors
    /// The results of the first runs do not go with the request.
    fn then(&mut self, first: &[Result<Of<Self>, Error>]) -> Result<Vec<Self::Spec>, Error>;

    /// Adds data to a result that depend on all runs together.
    fn finish(&self, _run: usize, _result: &mut Of<Self>) {}

    /// Advice from the results of all runs; `size` formats bytes.
    fn advise(&self, came: &Outcomes<Of<Self>>, size: Size) -> Advice;
}

/// Result of a run of a comparison.
pub type Of<C> = <<C as Comparison>::Spec as Spec>::Result;

/// Facts of a run that are known before it is made.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its plan's place among all, the simplest first.
    pub rank: usize,
    /// Description of its plan, in half a line.
    pub about: &'static str,
    /// Whether it can be followed on a real machine.
    pub advised: bool,
    /// Whether Linux itself places pages this way.
    pub linux: bool,
    /// Fast memory that it is limited to, bytes; none where it is not.
    pub budget: Option<u64>,
}

/// Runs as candidates for [`advice`](crate::advice), the simplest first: their numbers among all, their measurements,
/// and their times in times of those of `base`.
pub fn candidates<'r, C: Comparison>(
    comparison: &C,
    results: impl IntoIterator<Item = (usize, &'r Of<C>)>,
    base: &Of<C>,
) -> Vec<Candidate>
where
    Of<C>: 'r,
{
    let candidate = |(run, result): (usize, &Of<C>)| {
        let facts = comparison.facts(run);
        // Brackets hold the source.
        let about = facts.about.split(" (").next().unwrap_or_default();
        let candidate = Candidate {
            name: result.name().into(),
            about: match about {
                "" => String::new(),
                about => format!(" ({about})"),
            },
            time: result.slowdown(base),
            price: result.dram_share(),
            budget: facts.budget,
            advised: facts.advised,
            linux: facts.linux,
            slow_share: result.slow_share,
            moves: result.moved_bytes > 0,
        };
        (facts.rank, candidate)
    };
    let mut all: Vec<(usize, Candidate)> = results.into_iter().map(candidate).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Why a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A user has named it: that it could not be made is a failure.
    Named,
    /// A user has asked for all that there are, or for nothing in particular.
    Meant,
    /// Others are compared with it.
    Base,
    /// Others depend on it, and it was not asked for.
    Hidden,
}

impl Role {
    /// Of a plan, `asked` for in a `list` or not; [`BASE`](crate::request::BASE) stands beside all others.
    pub fn of(list: Option<&str>, plan: &str, asked: bool) -> Role {
        let named = list.is_some_and(|list| varve_spec::list(list).iter().any(|spec| spec == plan));
        match (named, asked) {
            (true, _) => Role::Named,
            (_, true) => Role::Meant,
            _ if plan == crate::request::BASE => Role::Base,
            _ => Role::Hidden,
        }
    }

    /// Whether the user wants to see it for itself.
    pub fn is_asked(self) -> bool {
        matches!(self, Role::Named | Role::Meant)
    }
}

/// Makes all runs of a comparison by `make`, which gets some of them and the number of the first. Returns their
/// results, in order.
///
/// # Errors
/// The very first run failed, without which no other can be begun, or its result does not go with the request.
pub fn answer<C: Comparison>(
    comparison: &mut C,
    mut make: impl FnMut(&[C::Spec], usize) -> Vec<Result<Of<C>, Error>>,
) -> Result<Vec<Result<Of<C>, Error>>, Error> {
    let first = comparison.first();
    let mut answers = match first.is_empty() {
        true => Vec::new(),
        false => make(&first, 0),
    };
    if answers.first().is_some_and(Result::is_err) {
        answers.swap_remove(0)?;
    }
    let rest = comparison.then(&answers)?;
    let made = answers.len();
    if !rest.is_empty() {
        answers.extend(make(&rest, made));
    }
    for (run, name) in comparison.names().iter().enumerate() {
        if let Some(Ok(result)) = answers.get_mut(run) {
            result.rename(name);
            comparison.finish(run, result);
        }
    }
    Ok(answers)
}
