//! A published or measured value: a number, a range, a bound, a yes or no, or a short text.

use crate::fmt::{self, significant};
use serde::{Deserialize, Serialize};

/// A value as papers state them. In JSON a number is a number, a range is `{"low", "high"}`, a bound is `{"at_most"}`
/// or `{"at_least"}`, yes and no are `true` and `false`, a text is a text, and a value that was not measured is `null`.
///
/// ```
/// use varve_report::Value;
/// assert_eq!(serde_json::to_string(&Value::range(20.0, 80.0)).unwrap(), r#"{"low":20.0,"high":80.0}"#);
/// assert_eq!(Value::range(20.0, 80.0).to_string(), "20 to 80");
/// assert_eq!(Value::from(true).to_string(), "yes");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// One number, in the unit that the claim names.
    Number(f64),
    /// From `low` to `high`, both included.
    #[allow(missing_docs)]
    Range { low: f64, high: f64 },
    /// At most this number.
    #[allow(missing_docs)]
    AtMost { at_most: f64 },
    /// At least this number.
    #[allow(missing_docs)]
    AtLeast { at_least: f64 },
    /// Whether something holds.
    YesNo(bool),
    /// A few words.
    Text(String),
    /// Not stated, or not measured.
    Missing,
}

/// How far our value lies from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Within [`AIM`] of it, inside its range or bound, or the same answer.
    Close,
    /// Within [`FAR`] of it.
    Near,
    /// Farther than that, or the other answer.
    Far,
    /// There is nothing to compare.
    Unknown,
}

/// The aim for every claim: within 10 % of the published number.
pub const AIM: f64 = 0.10;
/// Beyond this factor (or its inverse) a value is called far; a presentation choice, nothing is tuned to it.
pub const FAR: f64 = 1.5;

impl Agreement {
    /// A sign that needs no colour.
    pub fn symbol(self) -> &'static str {
        match self {
            Agreement::Close => "●",
            Agreement::Near => "◐",
            Agreement::Far => "○",
            Agreement::Unknown => " ",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Agreement::Close => "as published (within 10 %)",
            Agreement::Near => "near (within 1.5x)",
            Agreement::Far => "far",
            Agreement::Unknown => "nothing to compare",
        }
    }
}

impl Value {
    /// A range, whichever end comes first.
    pub fn range(a: f64, b: f64) -> Value {
        Value::Range {
            low: a.min(b),
            high: a.max(b),
        }
    }

    /// The one number that stands for the value: a range counts as its middle, a bound as its end.
    pub fn number(&self) -> Option<f64> {
        let x = match *self {
            Value::Number(x) => x,
            Value::Range { low, high } => (low + high) / 2.0,
            Value::AtMost { at_most } => at_most,
            Value::AtLeast { at_least } => at_least,
            _ => return None,
        };
        x.is_finite().then_some(x)
    }

    /// The lowest and highest number that the value allows.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        match *self {
            Value::Number(x) => (Some(x), Some(x)),
            Value::Range { low, high } => (Some(low), Some(high)),
            Value::AtMost { at_most } => (None, Some(at_most)),
            Value::AtLeast { at_least } => (Some(at_least), None),
            _ => (None, None),
        }
    }

    /// The value in a unit that is `divisor` times larger.
    pub(crate) fn divided(&self, divisor: f64) -> Value {
        match self {
            Value::Number(x) => Value::Number(x / divisor),
            Value::Range { low, high } => Value::range(low / divisor, high / divisor),
            Value::AtMost { at_most } => Value::AtMost {
                at_most: at_most / divisor,
            },
            Value::AtLeast { at_least } => Value::AtLeast {
                at_least: at_least / divisor,
            },
            other => other.clone(),
        }
    }

    /// Ours over published; `None` when either has no number or the published one is zero.
    ///
    /// ```
    /// use varve_report::Value;
    /// assert_eq!(Value::ratio(&Value::from(100.0), &Value::from(85.0)), Some(0.85));
    /// assert_eq!(Value::ratio(&Value::from("none"), &Value::from(85.0)), None);
    /// ```
    pub fn ratio(published: &Value, ours: &Value) -> Option<f64> {
        let (p, o) = (published.number()?, ours.number()?);
        (p != 0.0).then(|| o / p).filter(|r| r.is_finite())
    }

    /// The agreement that a factor stands for.
    pub(crate) fn agreement_of(factor: Option<f64>) -> Agreement {
        match factor {
            None => Agreement::Unknown,
            Some(off) if off <= (1.0 + AIM) * (1.0 + 1e-9) => Agreement::Close,
            Some(off) if off <= FAR => Agreement::Near,
            Some(_) => Agreement::Far,
        }
    }

    /// How far `ours` lies from `published`.
    pub fn agreement(published: &Value, ours: &Value) -> Agreement {
        Value::agreement_of(Value::factor(published, ours))
    }

    /// The nearest number that the value allows.
    fn nearest(&self, ours: f64) -> f64 {
        let (low, high) = self.bounds();
        let above = low.map_or(ours, |low| ours.max(low));
        high.map_or(above, |high| above.min(high))
    }

    /// The factor, at least 1, by which `ours` is off the published value, 1 within a range or bound; infinite where
    /// the sign or the answer is another; `None` when there is nothing to compare.
    ///
    /// ```
    /// use varve_report::Value;
    /// let off = |ours: f64| Value::factor(&Value::range(10.0, 20.0), &ours.into());
    /// assert_eq!([off(5.0), off(15.0), off(50.0)], [Some(2.0), Some(1.0), Some(2.5)]);
    /// assert_eq!(Value::factor(&true.into(), &false.into()), Some(f64::INFINITY));
    /// ```
    pub fn factor(published: &Value, ours: &Value) -> Option<f64> {
        match (published, ours) {
            (Value::YesNo(p), Value::YesNo(o)) => Some(if p == o { 1.0 } else { f64::INFINITY }),
            // Words that differ may still mean the same: that is for a reader to judge.
            (Value::Text(p), Value::Text(o)) if p == o => Some(1.0),
            (Value::YesNo(_) | Value::Text(_) | Value::Missing, _) => None,
            _ => {
                let ours = ours.number()?;
                let nearest = published.nearest(ours);
                let ratio = ours / nearest;
                nearest.is_finite().then_some(match ratio > 0.0 {
                    true => ratio.max(1.0 / ratio),
                    false if ours == nearest => 1.0,
                    false => f64::INFINITY,
                })
            }
        }
    }

    /// The same of the effect: how far ours is from `alike`, over how far the published value is, at least 1. A slowdown of
    /// 1.02 where 1.10 was published is 5 times too little of an effect. Infinite where the effect has the other direction.
    /// Where the published value is `alike` itself, there is no effect, and the factor is that of the values.
    ///
    /// ```
    /// use varve_report::Value;
    /// let off = |ours: f64| Value::effect(&1.10.into(), &ours.into(), 1.0).unwrap();
    /// assert!((off(1.02) - 5.0).abs() < 1e-9 && (off(1.20) - 2.0).abs() < 1e-9);
    /// assert_eq!(off(0.9), f64::INFINITY);
    /// assert_eq!(Value::effect(&1.0.into(), &1.25.into(), 1.0), Some(1.25));
    /// ```
    pub fn effect(published: &Value, ours: &Value, alike: f64) -> Option<f64> {
        let off = Value::factor(published, ours)?;
        let Some(number) = ours.number() else {
            return Some(off);
        };
        let nearest = published.nearest(number);
        if nearest == number || nearest == alike {
            return Some(off);
        }
        let ratio = (number - alike) / (nearest - alike);
        Some(match ratio > 0.0 {
            true => ratio.max(1.0 / ratio),
            false => f64::INFINITY,
        })
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Value::Number(x) => significant(*x, 3),
            Value::Range { low, high } => {
                format!("{} to {}", significant(*low, 3), significant(*high, 3))
            }
            Value::AtMost { at_most } => format!("at most {}", significant(*at_most, 3)),
            Value::AtLeast { at_least } => format!("at least {}", significant(*at_least, 3)),
            Value::YesNo(true) => "yes".into(),
            Value::YesNo(false) => "no".into(),
            Value::Text(text) => text.clone(),
            Value::Missing => fmt::NONE.into(),
        };
        f.pad(&text)
    }
}

impl From<f64> for Value {
    /// A number that is not finite is [`Value::Missing`], as it would be in JSON.
    fn from(x: f64) -> Value {
        if x.is_finite() {
            Value::Number(x)
        } else {
            Value::Missing
        }
    }
}

impl From<Option<f64>> for Value {
    fn from(x: Option<f64>) -> Value {
        x.map_or(Value::Missing, Value::from)
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::YesNo(x)
    }
}

impl From<&str> for Value {
    fn from(x: &str) -> Value {
        Value::Text(x.to_string())
    }
}

impl From<String> for Value {
    fn from(x: String) -> Value {
        Value::Text(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let x = -1e9f64..1e9;
        prop_oneof![
            x.clone().prop_map(Value::Number),
            (x.clone(), x.clone()).prop_map(|(a, b)| Value::range(a, b)),
            x.clone().prop_map(|at_most| Value::AtMost { at_most }),
            x.prop_map(|at_least| Value::AtLeast { at_least }),
            any::<bool>().prop_map(Value::YesNo),
            any::<String>().prop_map(Value::Text),
            Just(Value::Missing),
        ]
    }

    proptest! {
        #[test]
        fn json_reads_back_what_it_wrote(v in any_value()) {
            let text = serde_json::to_string(&v).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), v);
        }

        /// A value agrees with itself; and bounds and ranges with the values that they allow.
        #[test]
        fn a_value_is_close_to_itself(v in any_value()) {
            let a = Value::agreement(&v, &v);
            prop_assert!(a == Agreement::Close || v.number().is_none() && a == Agreement::Unknown);
        }
    }

    #[test]
    fn agreement_is_by_the_nearest_allowed_number() {
        use Agreement::*;
        let n = Value::Number;
        let cases = [
            (n(100.0), n(110.0), Close),
            (n(100.0), n(110.1), Near),
            (n(100.0), n(67.0), Near),
            (n(100.0), n(66.0), Far),
            (n(100.0), n(-100.0), Far),
            (n(0.0), n(0.0), Close),
            (n(0.0), n(0.1), Far),
            (n(-4.0), n(-4.2), Close),
            (Value::range(20.0, 80.0), n(50.0), Close),
            (Value::range(20.0, 80.0), n(100.0), Near),
            (Value::AtMost { at_most: 50.0 }, n(1.0), Close),
            (Value::AtMost { at_most: 50.0 }, n(80.0), Far),
            (Value::AtLeast { at_least: 2.0 }, n(9.0), Close),
            (Value::AtLeast { at_least: 2.0 }, n(1.5), Near),
            (Value::YesNo(true), Value::YesNo(false), Far),
            (Value::from("reads"), Value::from("reads"), Close),
            (Value::from("reads"), Value::from("loads"), Unknown),
            (Value::Missing, n(1.0), Unknown),
            (n(1.0), Value::Missing, Unknown),
        ];
        for (published, ours, expected) in cases {
            assert_eq!(
                Value::agreement(&published, &ours),
                expected,
                "{published} against {ours}"
            );
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_missing_in_json() {
        assert_eq!(Value::from(f64::NAN), Value::Missing);
        assert_eq!(serde_json::to_string(&Value::Missing).unwrap(), "null");
        assert_eq!(
            serde_json::from_str::<Value>("null").unwrap(),
            Value::Missing
        );
    }
}
