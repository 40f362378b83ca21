//! Parameters, the kinds of their values, and how a value is read.

use crate::error::Why;
use crate::written;
use std::fmt;

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// The key.
    pub key: &'static str,
    /// How a value is written.
    pub want: Want,
    /// Its value when none is given, as a user would write it; empty when it must be given.
    pub default: &'static str,
    /// Whether it is a size or a time of the machine's kind, which is divided by `scale`.
    pub scaled: bool,
    /// One line: what it is, and where its default comes from.
    pub about: &'static str,
}

impl Param {
    /// A parameter that keeps its value at every scale.
    pub const fn new(
        key: &'static str,
        want: Want,
        default: &'static str,
        about: &'static str,
    ) -> Param {
        Param {
            key,
            want,
            default,
            scaled: false,
            about,
        }
    }

    /// A parameter that is divided by `scale`.
    pub const fn scaled(
        key: &'static str,
        want: Want,
        default: &'static str,
        about: &'static str,
    ) -> Param {
        Param {
            scaled: true,
            ..Param::new(key, want, default, about)
        }
    }
}

/// The kind of a value, which says how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// A whole number from `min` to `max`, with `k`, `M` or `G` for thousands, millions, billions.
    Count {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number that is not negative: `1.5`.
    Number,
    /// A part of something: `0.05` or `5%`; 0 to 1.
    Part,
    /// Bytes: `4096`, `4MiB`, `96GiB`, `1GB`.
    Bytes,
    /// Bytes per second: `10GB/s`.
    Rate,
    /// Time: `500ns`, `10ms`, `1.5s`; `0`.
    Time,
    /// `yes` or `no`; the key alone means `yes`. `true`, `false`, `1` and `0` are read too.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Address ranges, `BASE+BYTES` joined by `/`: `0x10000000+9.6GB/0x8000000000+1GiB`.
    Ranges,
    /// Bandwidths in GB/s, joined by `/`: `10.1/12.5/16.3`.
    Limits,
}

impl Want {
    /// Any whole number.
    pub const COUNT: Want = Want::Count {
        min: 0,
        max: u64::MAX,
    };
}

impl fmt::Display for Want {
    /// Prints the requirement on a value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Want::Count { min: 0, max } if *max == u64::MAX => {
                f.write_str("a whole number, such as 16, 10k or 1.5M")
            }
            Want::Count { min, max } if *max == u64::MAX => {
                write!(f, "a whole number from {min} on, such as 8 or 10k")
            }
            Want::Count { min, max } => write!(f, "a whole number from {min} to {max}"),
            Want::Number => f.write_str("a number that is not negative, such as 1.5"),
            Want::Part => f.write_str("a part from 0 to 1, such as 0.05 or 5%"),
            Want::Bytes => f.write_str("a size, such as 4096, 2MiB or 96GiB"),
            Want::Rate => f.write_str("bytes per second, such as 10GB/s"),
            Want::Time => f.write_str("a time, such as 500us, 10ms or 1.5s"),
            Want::Flag => f.write_str("yes or no"),
            Want::Word(words) => write!(f, "one of {}", words.join(", ")),
            Want::Ranges => f.write_str(
                "address ranges BASE+BYTES joined by /, such as 0x10000000+9GiB/0x8000000000+1GiB",
            ),
            Want::Limits => f.write_str("bandwidths in GB/s joined by /, such as 10.1/12.5/16.3"),
        }
    }
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A count, bytes, bytes per second, or ns.
    Whole(u64),
    Real(f64),
    Flag(bool),
    Word(&'static str),
    Ranges(Vec<(u64, u64)>),
    /// GB/s.
    Limits(Vec<f64>),
}

impl Want {
    /// Reads a value of this kind.
    pub(crate) fn read(self, text: &str) -> Result<Value, Why> {
        let value = match self {
            Want::Count { min, max } => written::count(text)
                .filter(|n| (min..=max).contains(n))
                .map(Value::Whole),
            Want::Number => written::number(text).map(Value::Real),
            Want::Part => written::part(text).map(Value::Real),
            Want::Bytes => written::bytes(text).map(Value::Whole),
            Want::Rate => text
                .strip_suffix("/s")
                .and_then(written::bytes)
                .map(Value::Whole),
            Want::Time => written::nanoseconds(text).map(Value::Whole),
            Want::Flag => match text {
                "yes" | "true" | "1" => Some(Value::Flag(true)),
                "no" | "false" | "0" => Some(Value::Flag(false)),
                _ => None,
            },
            Want::Word(words) => {
                let found = words.iter().find(|word| **word == text);
                found.map(|word| Value::Word(word))
            }
            Want::Ranges => {
                let ranges: Option<Vec<_>> = text.split('/').map(range).collect();
                ranges.map(Value::Ranges)
            }
            Want::Limits => {
                let limits = text.split('/').map(|limit| written::number(limit.trim()));
                limits.collect::<Option<Vec<f64>>>().map(Value::Limits)
            }
        };
        value.ok_or_else(|| match self.with_unit(text) {
            Some(remedy) => Why::NoUnit(remedy),
            None => Why::Rule(format!("must be {self}")),
        })
    }

    /// The same with a unit, if that is all that it lacks.
    fn with_unit(self, text: &str) -> Option<String> {
        match self {
            Want::Time if written::number(text).is_some() => Some(format!("{text}s or {text}ms")),
            Want::Rate if written::bytes(text).is_some() => {
                let unit = if written::is_bare(text) { "GB" } else { "" };
                Some(format!("{text}{unit}/s"))
            }
            _ => None,
        }
    }
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (base, bytes) = text.split_once('+')?;
    let base = match base.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => base.trim().parse().ok()?,
    };
    let bytes = written::bytes(bytes.trim())?;
    base.checked_add(bytes).map(|_| (base, bytes))
}
