//! `name:key=value,...`: parameters of plans.

use std::time::Duration;

use super::PlanError;
use crate::plan::Tier;

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its key.
    pub key: &'static str,
    /// How a value is written.
    pub want: Want,
    /// Its value when none is given.
    pub default: &'static str,
    /// One line: what it is, and where its default comes from.
    pub about: &'static str,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A number: `1.5`.
    Number,
    /// A part of something: `0.05` or `5%`.
    Part,
    /// A whole number: `2`.
    Count,
    /// A time: `50s`, `200ms`, `10us`.
    Time,
    /// One of some words.
    Word(&'static [&'static str]),
}

/// The parameter that every plan has.
pub const CODE: Param = Param {
    key: "code",
    want: Want::Word(&["plan", "fast", "slow"]),
    default: "plan",
    about: "the memory of compiled code: what the plan says (fast, but for the slow ones), or another one",
};

/// Values, given or default.
#[derive(Clone, Debug)]
pub struct Values {
    plan: &'static str,
    all: Vec<(Param, String)>,
}

impl Values {
    /// Reads `key=value,...`.
    pub(super) fn parse(
        plan: &'static str,
        params: &[Param],
        text: &str,
    ) -> Result<Values, PlanError> {
        let params: Vec<Param> = params.iter().copied().chain([CODE]).collect();
        let mut all: Vec<(Param, Option<String>)> = params.iter().map(|p| (*p, None)).collect();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            let Some((param, given)) = all.iter_mut().find(|(p, _)| p.key == key) else {
                let known: Vec<&str> = params.iter().map(|p| p.key).collect();
                return Err(PlanError::UnknownKey {
                    plan: plan.into(),
                    key: key.into(),
                    known: known.join(", "),
                });
            };
            if !param.want.fits(value) {
                return Err(PlanError::BadValue {
                    plan: plan.into(),
                    key: key.into(),
                    value: value.into(),
                    want: param.want.to_string(),
                });
            }
            if given.replace(value.into()).is_some() {
                return Err(PlanError::Twice {
                    plan: plan.into(),
                    key: key.into(),
                });
            }
        }
        let all = all
            .into_iter()
            .map(|(p, given)| (p, given.unwrap_or_else(|| p.default.into())))
            .collect();
        Ok(Values { plan, all })
    }

    /// A number.
    pub fn number(&self, key: &str) -> f64 {
        number(self.word(key)).expect("checked when it was read")
    }

    /// A part of something, 1 being all of it.
    pub fn part(&self, key: &str) -> f64 {
        part(self.word(key)).expect("checked when it was read")
    }

    /// A whole number.
    pub fn count(&self, key: &str) -> u32 {
        self.word(key).parse().expect("checked when it was read")
    }

    /// A time.
    pub fn time(&self, key: &str) -> Duration {
        time(self.word(key)).expect("checked when it was read")
    }

    /// A value as it was given.
    pub fn word(&self, key: &str) -> &str {
        let found = self.all.iter().find(|(p, _)| p.key == key);
        found.map(|(_, value)| &value[..]).unwrap_or_else(|| {
            unreachable!(
                "plan {} asks for `{key}`, which it does not declare",
                self.plan
            )
        })
    }

    /// The memory of code, if it is not the plan's.
    pub(super) fn code(&self) -> Option<Tier> {
        match self.word(CODE.key) {
            "fast" => Some(Tier::FAST),
            "slow" => Some(Tier::SLOW),
            _ => None,
        }
    }
}

impl Want {
    fn fits(self, value: &str) -> bool {
        match self {
            Want::Number => number(value).is_some(),
            Want::Part => part(value).is_some(),
            Want::Count => value.parse::<u32>().is_ok(),
            Want::Time => time(value).is_some(),
            Want::Word(words) => words.contains(&value),
        }
    }
}

impl std::fmt::Display for Want {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Want::Number => f.write_str("a number that is not negative, such as 1.5"),
            Want::Part => f.write_str("a part, such as 0.05 or 5%"),
            Want::Count => f.write_str("a whole number, such as 2"),
            Want::Time => f.write_str("a time, such as 50s or 200ms"),
            Want::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

fn part(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(number(percent.trim_end())? / 100.0),
        None => number(text),
    }
}

fn time(text: &str) -> Option<Duration> {
    // The longer units first: all end in `s`.
    let (text, factor) = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
        .into_iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|rest| (rest, factor)))?;
    Duration::try_from_secs_f64(number(text)? * factor).ok()
}
