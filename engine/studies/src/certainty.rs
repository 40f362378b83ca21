//! How sure a study's values are: the same study with several seeds, and without one rule of the model at a time.

use crate::{Effort, Study, StudyOptions, StudyProgress, Watch};
use std::cell::Cell;
use std::collections::HashMap;
use varve_machine::rules::Rule;
use varve_report::{Claim, Kind, Sensitivity, StudyResult, Value};
use varve_run::Error;

/// Options besides the study itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Certainty<'a> {
    /// Seeds: the one of the options and those after it. With more than one, a claim's value is the median, and its spread is known.
    pub seeds: u32,
    /// Rules to switch off, one at a time, with the first seed.
    pub rules: &'a [Rule],
}

impl Study {
    /// Runs the study as often as it takes.
    pub fn run_with(
        &self,
        options: &StudyOptions,
        asked: Certainty,
        watch: Watch,
    ) -> Result<StudyResult, Error> {
        // One that waits for runs of other processes holds up none of the others.
        let waits = Cell::new(None);
        let run = |options: &StudyOptions, which: &str| {
            let made = (self.run)(options, &|p| {
                let what = match which {
                    "" => p.what.clone(),
                    which => format!("{which}: {}", p.what),
                };
                watch(&StudyProgress { what, ..p.clone() })
            });
            match made {
                Ok(result) => Ok(Some(result)),
                Err(e) if e.is_elsewhere() => {
                    waits.set(Some(e));
                    Ok(None)
                }
                Err(e) => Err(e),
            }
        };
        let first = run(options, "")?;
        let mut without = Vec::new();
        for rule in asked.rules {
            let options = StudyOptions {
                without: Some(*rule),
                ..options.clone()
            };
            let made = run(&options, rule.without)?;
            without.extend(made.map(|result| (rule.without, result)));
        }
        let mut others = Vec::new();
        for more in 1..asked.seeds.max(1) {
            let options = StudyOptions {
                seed: options.seed + u64::from(more),
                ..options.clone()
            };
            others.extend(run(&options, &format!("seed {}", options.seed))?);
        }
        let mut result = match (waits.take(), first) {
            (None, Some(result)) => result,
            (waits, _) => return Err(waits.unwrap_or_else(Error::interrupted)),
        };
        result.coarse = options.effort == Effort::Quick;
        sensitivity(&mut result, &without);
        spread(&mut result, &others);
        Ok(result)
    }
}

/// A study's values by claim. Claims of one id and one text follow each other in the same order in every run.
fn values(claims: &[Claim]) -> HashMap<(&str, &str, usize), Value> {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    let mut all = HashMap::new();
    for c in claims {
        let nth = seen.entry((&c.id, &c.what)).or_default();
        all.insert((&c.id[..], &c.what[..], *nth), c.ours.clone());
        *nth += 1;
    }
    all
}

/// Each claim's value in each of the other runs, as far as they have one.
fn beside(result: &StudyResult, others: &[&StudyResult]) -> Vec<Vec<Option<Value>>> {
    let others: Vec<_> = others.iter().map(|o| values(&o.claims)).collect();
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    result
        .claims
        .iter()
        .map(|c| {
            let nth = seen.entry((&c.id, &c.what)).or_default();
            let key = (&c.id[..], &c.what[..], *nth);
            *nth += 1;
            others.iter().map(|o| o.get(&key).cloned()).collect()
        })
        .collect()
}

/// The rule that moves a value farthest, for each value that the model computed; the first that gives another answer to yes or no.
fn sensitivity(result: &mut StudyResult, without: &[(&str, StudyResult)]) {
    let others: Vec<&StudyResult> = without.iter().map(|(_, r)| r).collect();
    let values = beside(result, &others);
    for (c, values) in result.claims.iter_mut().zip(values) {
        if c.kind != Kind::Modelled {
            continue;
        }
        let mut farthest = (0.0, None);
        for (value, (rule, _)) in values.into_iter().zip(without) {
            let Some(value) = value else { continue };
            let moved = moved(&c.ours, &value);
            if moved > farthest.0 {
                let rule = rule.to_string();
                farthest = (moved, Some(Sensitivity { rule, ours: value }));
            }
        }
        c.sensitivity = farthest.1;
    }
}

/// How far a value is from another, as a part of the larger one; another answer is as far as can be.
fn moved(ours: &Value, other: &Value) -> f64 {
    match (ours.number(), other.number(), ours, other) {
        (Some(ours), Some(x), ..) => (x - ours).abs() / x.abs().max(ours.abs()),
        (_, _, Value::YesNo(ours), Value::YesNo(x)) if ours != x => 1.0,
        _ => 0.0,
    }
}

/// Median, lowest and highest of each value over all seeds.
fn spread(result: &mut StudyResult, others: &[StudyResult]) {
    let others: Vec<&StudyResult> = others.iter().collect();
    if others.is_empty() {
        return;
    }
    let values = beside(result, &others);
    for (c, values) in result.claims.iter_mut().zip(values) {
        let Some(ours) = c.ours.number() else {
            continue;
        };
        let others = values.iter().flatten().filter_map(Value::number);
        let mut all: Vec<f64> = others.chain([ours]).collect();
        all.sort_by(f64::total_cmp);
        *c = c.clone().with_ours(all[all.len() / 2]);
        c.spread = Some((all[0], all[all.len() - 1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_machine::rules::RULES;
    use varve_run::Keep;

    /// Says its seed, what rules make of it, and a number that is none.
    const STUDY: Study = Study {
        name: "toy",
        about: "claims Z1",
        claims: ('Z', 1, 1),
        rounds: 1,
        run: |o, _| {
            let mut out = StudyResult::new("toy", "none", o.seed, "1");
            let rule = o.without.map_or(0.0, |r| match r.without {
                w if w == RULES[0].without => 1.0,
                _ => 100.0,
            });
            let ours = o.seed as f64 * 10.0 + rule;
            out.claims.push(Claim::new("Z1", "a", 20.0, ours, ""));
            // The same words again are another claim.
            out.claims.push(Claim::new("Z1", "a", 20.0, -ours, ""));
            out.claims
                .push(Claim::new("Z1", "measured", 1.0, ours, "").of_kind(Kind::Measured));
            out.claims.push(Claim::new("Z1", "order", true, true, ""));
            out.claims
                .push(Claim::new("Z1", "small", true, ours < 50.0, ""));
            Ok(out)
        },
    };

    #[test]
    fn the_median_and_the_ends_over_seeds_and_the_rule_that_moves_most() {
        let options = StudyOptions {
            effort: Effort::Tiny,
            only: Vec::new(),
            seed: 1,
            workers: 1,
            keep: Keep::nothing(),
            recordings: None,
            stock_only: false,
            without: None,
            program: None,
        };
        let asked = Certainty {
            seeds: 3,
            rules: &RULES[..2],
        };
        let made = STUDY.run_with(&options, asked, &|_| true).unwrap();
        let [a, again, measured, order, small] = &made.claims[..] else {
            panic!("{:?}", made.claims)
        };
        assert_eq!((&a.ours, a.ratio), (&Value::Number(20.0), Some(1.0)));
        assert_eq!(a.spread, Some((10.0, 30.0)));
        assert_eq!(again.spread, Some((-30.0, -10.0)));
        let moved = a.sensitivity.as_ref().unwrap();
        assert_eq!(
            (&moved.rule[..], &moved.ours),
            (RULES[1].without, &Value::Number(110.0))
        );
        assert_eq!(
            again.sensitivity.as_ref().unwrap().ours,
            Value::Number(-110.0)
        );
        assert_eq!(measured.sensitivity, None, "rules are the model's");
        assert_eq!((order.spread, &order.sensitivity), (None, &None));
        let turned = small.sensitivity.as_ref().unwrap();
        assert_eq!(
            (&turned.rule[..], &turned.ours),
            (RULES[1].without, &Value::YesNo(false))
        );
        let once = STUDY
            .run_with(&options, Certainty::default(), &|_| true)
            .unwrap();
        assert_eq!(once.claims[0].spread, None);
    }
}
