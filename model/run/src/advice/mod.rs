//! Which of some runs to follow, in words. One rule for all kinds of runs:
//!
//! 1. Of the runs that take less than the base (less DRAM, or less energy) and are within 3 % of the fastest: the one
//!    that takes least. Of equals the fastest, of these the first.
//! 2. If there is none, saving costs time: then, budget by budget, the fastest run within it, and Linux as it is in
//!    the same budget. Of those within 3 % of the fastest, the simplest.
//!
//! Page policies on one machine have one budget, its fast memory, and no base: they have the second part alone.
//!
//! | file | job |
//! |---|---|
//! | `plans` | the rule for runs beside the one with all in fast memory |
//! | `pages` | the rule for page policies |
//! | `course` | which part of a run the figures are of |
//! | `native`, `java` | further advice on such programs |

pub(crate) mod course;
pub(crate) mod java;
pub(crate) mod native;
mod pages;
mod plans;

pub use pages::of_pages;
pub use plans::{of_energy, of_plans};

/// Writes bytes for people.
pub type Size<'a> = &'a dyn Fn(u64) -> String;

/// Within this factor two times count as equal: the model is not known better.
pub const EQUAL: f64 = 1.03;
/// The same in %.
const FASTER: f64 = 100.0 * (EQUAL - 1.0);

/// A run that may be advised, or that others are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Description of its plan, if its name is not enough; else empty.
    pub about: String,
    /// Its time, in times of the base.
    pub time: f64,
    /// Its use of the resource to be saved, 0 to 1: DRAM as a share of its memory, or energy in parts of the base's.
    pub price: f64,
    /// Limit of its fast memory, bytes; `None` without a limit.
    pub budget: Option<u64>,
    /// Whether it can be followed on a real machine.
    pub advised: bool,
    /// Whether Linux itself places pages this way.
    pub linux: bool,
    /// Share of the reads of memory that slow memory serves, 0 to 1.
    pub slow_share: f64,
    /// Whether it has moved anything.
    pub moves: bool,
}

/// Resource to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saves {
    /// Fast memory.
    Dram,
    /// Energy of the memory.
    Energy,
}

/// The advice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The run to follow; the one within the smallest budget if it depends on that, and none where there is nothing to choose from.
    pub run: Option<String>,
    /// A sentence each.
    pub said: Vec<String>,
}

/// Advice where `base` has all in fast memory and takes most of it. The simplest runs come first; `size` formats bytes.
pub fn advice(base: &Candidate, runs: &[Candidate], saves: Saves, size: Size) -> Advice {
    let real: Vec<&Candidate> = runs
        .iter()
        .filter(|run| run.advised && run.name != base.name)
        .collect();
    if real.is_empty() {
        return Advice::default();
    }
    let follow = |run: &str, said: Vec<String>| Advice {
        run: Some(run.into()),
        said,
    };
    let what = match saves {
        Saves::Dram => "takes less DRAM",
        Saves::Energy => "saves energy",
    };
    let less = || {
        let real = real.iter().copied();
        real.filter(|run| thousandths(run) < thousandths(base))
    };
    let best = real.iter().map(|run| run.time).fold(base.time, f64::min);
    let near = less().filter(|run| run.time <= best * EQUAL);
    if let Some(run) = near.min_by_key(|run| (thousandths(run), halves(run))) {
        let said = format!("Advice: {}.", near_best(run, base, saves));
        return follow(&run.name, vec![said]);
    }
    if less().next().is_none() {
        let said = format!(
            "Advice: stay with `{}`: no other plan of these {what}.",
            base.name
        );
        return follow(&base.name, vec![said]);
    }
    let mut said = vec![format!(
        "Advice: stay with `{}` if time counts most: nothing that {what} is within {FASTER:.0} % of the fastest.",
        base.name
    )];
    // A run without a limit and with a price of 0 goes with each budget; else it is a group by itself.
    let mut budgets: Vec<Option<u64>> = less().map(|run| run.budget).collect();
    if budgets.iter().any(Option::is_some) {
        let free = less().any(|run| run.budget.is_none() && run.price > 0.0);
        budgets.retain(|budget| budget.is_some() || free);
    }
    budgets.sort_unstable();
    budgets.dedup();
    let mut first = None;
    for budget in budgets {
        let fits =
            |run: &&Candidate| run.budget == budget || run.budget.is_none() && run.price == 0.0;
        let group: Vec<&Candidate> = less().filter(fits).collect();
        let best = match budget {
            Some(bytes) => within(&group, &size(bytes)),
            None => next(&group, base, saves),
        };
        if let Some((run, line)) = best {
            first.get_or_insert(run);
            said.push(line);
        }
    }
    Advice { run: first, said }
}

/// Advice where all runs have the same fast memory and none has all of it: the simplest first.
pub fn of_policies(runs: &[Candidate]) -> Vec<String> {
    let real: Vec<&Candidate> = runs.iter().filter(|run| run.advised).collect();
    let chosen = fastest(&real, |run| run.time);
    let Some(chosen) = chosen.filter(|_| real.len() > 1) else {
        return Vec::new();
    };
    let Some(linux) = real.iter().find(|run| run.linux) else {
        return vec![format!("Advice: use `{}`.", chosen.name)];
    };
    let gain = linux.time / chosen.time;
    if chosen.name != linux.name && gain >= EQUAL {
        return vec![format!(
            "Advice: use `{}`: {gain:.2}x as fast as Linux today (`{}`), with {} instead of {} of the memory reads served by slow \
             memory{}.",
            chosen.name,
            linux.name,
            percent(chosen.slow_share),
            percent(linux.slow_share),
            if chosen.moves { "" } else { " and no daemon" }
        )];
    }
    let why = match linux.slow_share {
        0.0 => "all that the program reads fits into fast memory.".into(),
        share if share < 0.5 => format!(
            "no other policy here is more than {FASTER:.0} % faster, and slow memory serves only {} of the memory reads.",
            percent(share)
        ),
        share => format!(
            "no other policy here is more than {FASTER:.0} % faster. Slow memory still serves {} of the memory reads: more fast memory \
             would help, another policy does not.",
            percent(share)
        ),
    };
    vec![format!(
        "Advice: stay with `{}` (what Linux does): {why}",
        linux.name
    )]
}

/// The first of those that are about as fast as the fastest.
fn fastest<'a>(runs: &[&'a Candidate], time: impl Fn(&Candidate) -> f64) -> Option<&'a Candidate> {
    let best = runs.iter().map(|run| time(run)).fold(f64::MAX, f64::min);
    runs.iter().copied().find(|run| time(run) <= best * EQUAL)
}

/// The best run within this much DRAM, beside Linux with as much.
fn within(group: &[&Candidate], size: &str) -> Option<(String, String)> {
    let chosen = fastest(group, |run| run.time)?;
    let name = chosen.name.clone();
    if chosen.price == 0.0 {
        let line = format!(
            "With {size} of DRAM nothing of these is more than {FASTER:.0} % faster than with none (`{}`): {}.",
            chosen.name,
            more(chosen)
        );
        return Some((name, line));
    }
    let beside = match group.iter().find(|run| run.linux) {
        Some(linux) if linux.name == chosen.name => {
            format!(" (what Linux does; nothing else of these is more than {FASTER:.0} % faster)")
        }
        Some(linux) => format!("; Linux as it is (`{}`) takes {}", linux.name, more(linux)),
        None => String::new(),
    };
    let line = format!(
        "With {size} of DRAM the best is `{name}`, for {}{beside}.",
        more(chosen)
    );
    Some((name, line))
}

/// The fastest of the runs that save something, where no budget limits them.
fn next(group: &[&Candidate], base: &Candidate, saves: Saves) -> Option<(String, String)> {
    let chosen = group
        .iter()
        .min_by_key(|run| (halves(run), thousandths(run)))?;
    let line = format!(
        "Next is `{}`{}: {}, for {}.",
        chosen.name,
        chosen.about,
        saved(chosen, base, saves),
        more(chosen)
    );
    Some((chosen.name.clone(), line))
}

/// Advice where no time is lost.
fn near_best(run: &Candidate, base: &Candidate, saves: Saves) -> String {
    match (saves, run.price == 0.0) {
        (Saves::Dram, true) => format!(
            "all of its memory may be in slow memory (`{}`), for {}",
            run.name,
            more(run)
        ),
        _ => format!(
            "use `{}`{}: {}, for {}",
            run.name,
            run.about,
            saved(run, base, saves),
            more(run)
        ),
    }
}

fn saved(run: &Candidate, base: &Candidate, saves: Saves) -> String {
    match saves {
        Saves::Dram => format!(
            "{} of its memory leaves DRAM",
            percent(base.price - run.price)
        ),
        Saves::Energy => format!(
            "it saves {} of the memory's energy",
            percent(base.price - run.price)
        ),
    }
}

/// How a time differs from the base's.
fn more(run: &Candidate) -> String {
    let percents = 100.0 * (run.time - 1.0);
    match percents {
        p if p.abs() < 0.5 => "the same time".into(),
        p if p < 0.0 => format!("{} less time", percent(-p / 100.0)),
        p => format!("{} more time", percent(p / 100.0)),
    }
}

fn percent(share: f64) -> String {
    let percents = 100.0 * share;
    match percents {
        p if p == 0.0 || p >= 10.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

/// Prices that differ by less are equal.
fn thousandths(run: &Candidate) -> u64 {
    (1000.0 * run.price).round() as u64
}

/// Times that differ by less than half a percent are equal.
fn halves(run: &Candidate) -> u64 {
    (200.0 * run.time).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(name: &str, time: f64, price: f64, budget: Option<u64>) -> Candidate {
        Candidate {
            name: name.into(),
            about: String::new(),
            time,
            price,
            budget,
            advised: name != "oracle",
            linux: name.starts_with("first-touch"),
            slow_share: 0.0,
            moves: false,
        }
    }

    fn said(runs: &[Candidate]) -> String {
        let base = run("dram", 1.0, 1.0, None);
        let size = |bytes: u64| format!("{bytes} B");
        advice(&base, runs, Saves::Dram, &size).said.join(" ")
    }

    #[test]
    fn what_loses_no_time_and_takes_least_is_advised() {
        assert_eq!(said(&[]), "");
        assert_eq!(said(&[run("oracle", 1.0, 0.1, None)]), "");
        assert_eq!(
            said(&[run("slow", 1.2, 0.0, None), run("kg-n", 1.02, 0.4, None)]),
            "Advice: use `kg-n`: 60 % of its memory leaves DRAM, for 2.0 % more time."
        );
        assert_eq!(
            said(&[run("slow", 1.021, 0.0, None), run("kg-n", 1.0, 0.4, None)]),
            "Advice: all of its memory may be in slow memory (`slow`), for 2.1 % more time."
        );
        // Differences below the model's accuracy do not count.
        let equal = [run("a", 1.021, 0.25, None), run("b", 1.02, 0.2499, None)];
        assert!(said(&equal).starts_with("Advice: use `a`"));
    }

    #[test]
    fn what_is_faster_than_all_in_dram_is_said_to_be() {
        let runs = [
            run("slow", 1.0, 0.0, None),
            run("hot-sites", 0.7, 0.28, Some(9)),
        ];
        assert_eq!(
            said(&runs),
            "Advice: use `hot-sites`: 72 % of its memory leaves DRAM, for 30 % less time."
        );
    }

    #[test]
    fn each_budget_is_compared_with_linux_in_the_same_budget() {
        let runs = [
            run("slow", 2.9, 0.0, None),
            run("first-touch at 10%", 2.11, 0.1, Some(10)),
            run("hot-sites at 10%", 2.0, 0.1, Some(10)),
            run("first-touch at 50%", 1.25, 0.5, Some(50)),
            run("hot-sites at 50%", 1.24, 0.5, Some(50)),
        ];
        assert_eq!(
            said(&runs),
            "Advice: stay with `dram` if time counts most: nothing that takes less DRAM is within 3 % of the fastest. \
             With 10 B of DRAM the best is `hot-sites at 10%`, for 100 % more time; Linux as it is (`first-touch at 10%`) takes 111 % \
             more time. With 50 B of DRAM the best is `first-touch at 50%`, for 25 % more time (what Linux does; nothing else of these is \
             more than 3 % faster)."
        );
    }

    #[test]
    fn slow_memory_that_costs_much_is_not_advised() {
        let runs = [
            run("slow", 1.37, 0.0, None),
            run("first-touch", 1.36, 0.3, Some(30)),
        ];
        let said = said(&runs);
        assert!(said.starts_with("Advice: stay with `dram`"), "{said}");
        assert!(
            said.contains("faster than with none (`slow`): 37 % more time"),
            "{said}"
        );
    }

    #[test]
    fn without_budgets_the_fastest_comes_next() {
        let runs = [run("slow", 1.4, 0.0, None), run("kg-n", 1.1, 0.4, None)];
        let said = said(&runs);
        assert!(
            said.ends_with("Next is `kg-n`: 60 % of its memory leaves DRAM, for 10 % more time."),
            "{said}"
        );
    }

    proptest! {
        /// Nothing is advised that costs more than 3 % beside the fastest, that is no real choice, or that saves nothing.
        #[test]
        fn advice_costs_nothing(all in prop::collection::vec((0.5f64..3.0, 0.0f64..=1.0, prop::option::of(0u64..3)), 0..8)) {
            let runs: Vec<Candidate> = all.iter().enumerate()
                .map(|(i, &(time, price, budget))| run(&format!("plan{i}"), time, price, budget)).collect();
            let said = said(&runs);
            let best = runs.iter().map(|r| r.time).fold(1.0, f64::min);
            for run in &runs {
                let used = said.starts_with(&format!("Advice: use `{}`", run.name))
                    || said.starts_with(&format!("Advice: all of its memory may be in slow memory (`{}`)", run.name));
                if used {
                    prop_assert!(run.time <= best * EQUAL && run.price < 1.0);
                }
            }
            prop_assert_eq!(said.is_empty(), runs.is_empty());
        }
    }
}
