//! How much fast memory each run may take: the user's budgets, as runs of plans.

use super::Fast;

/// The plan that has everything in fast memory. A program's memory is measured under this one, which has no limit.
pub const BASE: &str = "dram";

/// Fast memory of plans for pages without a given budget, % of the program's memory.
pub const SHARE: f64 = 25.0;

/// When the fast memory of a plan is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Never: it takes fast memory without a limit.
    Never,
    /// Where a budget is asked for.
    Asked,
    /// Also where none is: then it is [`SHARE`] of the program's memory.
    Always,
}

/// A run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// The number of its plan among those that were given.
    pub plan: usize,
    /// That plan, as it was written.
    pub spec: String,
    /// Its name: its plan, and its share where there are several.
    pub name: String,
    /// Its share of the program's memory, %, if it has one.
    pub percent: Option<f64>,
    /// Fast memory that it may take, bytes; `None` if it has no limit, or a share of memory that is not known yet.
    pub bytes: Option<u64>,
}

/// Runs of plans within budgets.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    /// The runs: those without a limit first, then budget by budget.
    pub runs: Vec<PlannedRun>,
    /// The shares of fast memory, %, if there are any.
    pub percents: Vec<f64>,
    /// Whether a user has asked for a budget.
    pub asked: bool,
}

impl Budgets {
    /// Runs of `plans`, each by its specification, with the fast memory that is asked for.
    pub fn new(plans: &[(String, Limited)], fast: Option<&Fast>) -> Budgets {
        let is_limited = |limited: Limited| match limited {
            Limited::Never => false,
            Limited::Asked => fast.is_some(),
            Limited::Always => true,
        };
        let numbered = || plans.iter().enumerate();
        let free = numbered().filter(|(_, (_, limited))| !is_limited(*limited));
        let run = |plan: usize, name: String, percent, bytes| PlannedRun {
            plan,
            spec: plans[plan].0.clone(),
            name,
            percent,
            bytes,
        };
        let mut runs: Vec<PlannedRun> = free
            .map(|(plan, (spec, _))| run(plan, spec.clone(), None, None))
            .collect();
        let limited: Vec<usize> = numbered()
            .filter(|(_, (_, limited))| is_limited(*limited))
            .map(|(plan, _)| plan)
            .collect();
        let (sizes, percents) = match fast {
            Some(Fast::Size(bytes)) => (Some(bytes.0), Vec::new()),
            Some(Fast::Percent(all)) => (None, all.clone()),
            None => (None, vec![SHARE]),
        };
        for &plan in limited.iter().filter(|_| sizes.is_some()) {
            runs.push(run(plan, plans[plan].0.clone(), None, sizes));
        }
        for &percent in &percents {
            for &plan in &limited {
                let name = match percents.len() {
                    1 => plans[plan].0.clone(),
                    _ => format!("{} at {percent}%", plans[plan].0),
                };
                runs.push(run(plan, name, Some(percent), None));
            }
        }
        Budgets {
            runs,
            percents: if limited.is_empty() {
                Vec::new()
            } else {
                percents
            },
            asked: fast.is_some(),
        }
    }

    /// Sets the limits of shares for a program that takes `most_bytes`.
    pub fn set(&mut self, most_bytes: u64) {
        for run in &mut self.runs {
            if let Some(percent) = run.percent {
                run.bytes = Some((most_bytes as f64 * percent / 100.0) as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fast: Option<&str>) -> Vec<String> {
        let plans = [
            ("slow", Limited::Asked),
            ("dram", Limited::Never),
            ("first-touch", Limited::Always),
        ];
        let plans = plans.map(|(name, limited)| (name.to_string(), limited));
        let fast: Option<Fast> = fast.map(|text| text.parse().unwrap());
        let mut budgets = Budgets::new(&plans, fast.as_ref());
        budgets.set(1000);
        let shown = |run: &PlannedRun| match run.bytes {
            Some(bytes) => format!("{} {bytes}", run.name),
            None => run.name.clone(),
        };
        budgets.runs.iter().map(shown).collect()
    }

    #[test]
    fn each_plan_runs_with_each_budget_and_those_without_a_limit_once() {
        assert_eq!(names(None), ["slow", "dram", "first-touch 250"]);
        assert_eq!(names(Some("50%")), ["dram", "slow 500", "first-touch 500"]);
        assert_eq!(
            names(Some("64MiB")),
            ["dram", "slow 67108864", "first-touch 67108864"]
        );
        assert_eq!(
            names(Some("10%,25%")),
            [
                "dram",
                "slow at 10% 100",
                "first-touch at 10% 100",
                "slow at 25% 250",
                "first-touch at 25% 250"
            ]
        );
    }
}
