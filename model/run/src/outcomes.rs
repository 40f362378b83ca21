//! Results of a comparison's runs, sorted by the reason for each: those shown, those that failed, and whether there is
//! an answer.

use crate::advice::Candidate;
use crate::pipeline::{Compared, Comparison, Of, Role, candidates};
use crate::request::BASE;
use crate::{Error, Spec};

/// See the module.
#[derive(Debug)]
pub struct Outcomes<R> {
    /// The runs that ended well, each with its number among all, and why it was made.
    pub runs: Vec<(usize, Role, R)>,
    /// Those that did not.
    pub failed: Vec<NotMade>,
}

/// A run that did not end well.
#[derive(Debug)]
pub struct NotMade {
    /// Its number among all.
    pub run: usize,
    /// Its name.
    pub name: String,
    /// Why it was to be made.
    pub role: Role,
    /// Why it was not.
    pub why: Error,
}

impl<R: Compared> Outcomes<R> {
    /// Of the answers to a comparison, in order.
    pub fn of<C: Comparison<Spec: Spec<Result = R>>>(
        comparison: &C,
        answers: Vec<Result<R, Error>>,
    ) -> Outcomes<R> {
        let (mut runs, mut failed) = (Vec::new(), Vec::new());
        let named = comparison.names().into_iter().zip(answers);
        for (run, (name, answer)) in named.enumerate() {
            let role = comparison.role(run);
            match answer {
                Ok(result) => runs.push((run, role, result)),
                Err(why) => failed.push(NotMade {
                    run,
                    name,
                    role,
                    why,
                }),
            }
        }
        Outcomes { runs, failed }
    }

    /// Whether runs failed and none that was asked for is left: the base of comparisons is no answer.
    pub fn is_nothing(&self) -> bool {
        let answers = self.runs.iter().any(|(_, role, _)| role.is_asked());
        !answers && !self.failed.is_empty()
    }

    /// Whether a run was not made that was asked for by name.
    pub fn has_missed(&self) -> bool {
        self.failed.iter().any(|run| run.role == Role::Named)
    }

    /// The runs that are shown: those that were asked for, and the base of comparisons.
    fn shown_runs(&self) -> impl Iterator<Item = (usize, &R)> {
        let shown = self.runs.iter();
        let shown = shown.filter(|(_, role, _)| *role != Role::Hidden);
        shown.map(|(run, _, result)| (*run, result))
    }

    /// The results that are shown.
    pub fn shown(&self) -> Vec<&R> {
        self.shown_runs().map(|(_, result)| result).collect()
    }

    /// A result by its name, also of one that was not asked for.
    pub fn named(&self, name: &str) -> Option<&R> {
        let mut all = self.runs.iter().map(|(_, _, result)| result);
        all.find(|result| result.name() == name)
    }

    /// The base of comparisons: the run with all in fast memory, else the first that is shown.
    pub fn base(&self) -> Option<&R> {
        self.named(BASE)
            .or_else(|| self.shown_runs().next().map(|(_, result)| result))
    }

    /// The runs that are shown as candidates for advice, with times in times of those of `base`.
    pub fn candidates<C: Comparison<Spec: Spec<Result = R>>>(
        &self,
        comparison: &C,
        base: &Of<C>,
    ) -> Vec<Candidate> {
        candidates(comparison, self.shown_runs(), base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{PageRuns, PagesRequest};
    use crate::{RunResult, Work};
    use varve_machine::Machine;

    /// Runs of two policies, of which one is named.
    fn runs() -> PageRuns {
        let machine = Machine::load("optane-6230").unwrap();
        let mut request = PagesRequest::new(machine, Work::parse("gups").unwrap());
        request.options.policy = "first-touch,fast".into();
        request.runs(&request.base().unwrap().0).unwrap()
    }

    fn made(policy: &str) -> Result<RunResult, Error> {
        Ok(RunResult {
            policy: policy.into(),
            ..RunResult::default()
        })
    }

    #[test]
    fn what_failed_beside_others_is_missed_and_alone_there_is_no_answer() {
        let failed = || Err(Error::NoPolicy("fast".into()));
        let one = Outcomes::of(&runs(), vec![made("first-touch"), failed()]);
        assert!(!one.is_nothing() && one.has_missed());
        assert_eq!((one.shown().len(), one.failed[0].run), (1, 1));
        assert_eq!(one.failed[0].name, "fast");
        assert_eq!(one.base().map(|r| &*r.policy), Some("first-touch"));
        let none = Outcomes::of(&runs(), vec![failed(), failed()]);
        assert!(none.is_nothing() && none.base().is_none());
    }
}
