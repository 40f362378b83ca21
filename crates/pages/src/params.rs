//! Parameters of a policy, declared with unit, default and source, and given as `name:key=value,...`.

use varve_machine::{Bytes, written};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number from `min` to `max`, with `k`, `M` or `G` for thousands, millions, billions.
    Count {
        /// Least value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// Bytes: `4096`, `4MiB`.
    Bytes,
    /// Bytes per second: `10GB/s`.
    Rate,
    /// Time: `500ns`, `10ms`, `1.5s`.
    Time,
    /// Address ranges, `BASE+BYTES` joined by `/`: `0x10000000+9.6GB/0x8000000000+1GiB`.
    Ranges,
    /// Bandwidths in GB/s, joined by `/`: `10.1/12.5/16.3`.
    Limits,
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The key.
    pub key: &'static str,
    /// How its value is written.
    pub unit: Unit,
    /// Its value when not given, as a user would write it; empty when it must be given.
    pub default: &'static str,
    /// Is it divided by `scale`, like the machine?
    pub scaled: bool,
    /// One line: what it is, and where its default comes from.
    pub about: &'static str,
}

/// The parameter that every policy has.
pub const SCALE: Param = Param {
    key: "scale",
    unit: Unit::Count {
        min: 1,
        max: 1 << 40,
    },
    default: "1",
    scaled: false,
    about: "the machine is scaled down by this factor, pages included: sample period, daemon period and run length are divided by it, so that a page gets as many samples as at full size",
};

/// Why a policy could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// No policy of that name.
    #[error("no page policy is called `{name}`; there are {known}")]
    UnknownPolicy {
        /// The name given.
        name: String,
        /// Every name, separated by commas.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("page policy `{policy}` has no parameter `{key}`; it takes {known}")]
    UnknownKey {
        /// The policy.
        policy: String,
        /// The key given.
        key: String,
        /// Its keys, separated by commas.
        known: String,
    },
    /// The same key was given twice.
    #[error("page policy `{policy}`: parameter `{key}` is given twice")]
    Twice {
        /// The policy.
        policy: String,
        /// The key.
        key: String,
    },
    /// A parameter without a default is missing.
    #[error("page policy `{policy}` needs {key}=...: {want}")]
    Needed {
        /// The policy.
        policy: String,
        /// The key.
        key: String,
        /// How it is written.
        want: String,
    },
    /// A value cannot be read, or is out of range.
    #[error("page policy `{policy}`: {key}={value} will not do: {want}")]
    BadValue {
        /// The policy.
        policy: String,
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What would do.
        want: String,
    },
    /// The policy does not go with the machine.
    #[error(
        "page policy `{policy}` needs {needs}, but this machine has {has}; use a machine with mode = \"{mode}\""
    )]
    Unfit {
        /// The policy.
        policy: String,
        /// What it needs.
        needs: &'static str,
        /// What there is.
        has: &'static str,
        /// The mode of a machine that would do.
        mode: &'static str,
    },
    /// The machine cannot be cut into such pages.
    #[error(transparent)]
    Topology(#[from] crate::topology::TopologyError),
    /// The machine's memory has no DIMMs that pages could be put on, or not these.
    #[error(transparent)]
    Trays(#[from] crate::trays::TrayError),
    /// A table of bandwidths that is none.
    #[error(transparent)]
    Governor(#[from] crate::governor::ModelError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Ranges(Vec<(u64, u64)>),
    /// kB/s.
    Limits(Vec<u64>),
}

/// The values of all parameters of one policy, given or default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    policy: &'static str,
    all: Vec<(Param, Value)>,
    scale: u64,
}

impl Values {
    /// Reads `key=value,...` for `policy`, which takes `params` and [`SCALE`].
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated, unreadable or missing.
    pub fn parse(policy: &'static str, params: &[Param], text: &str) -> Result<Values, Error> {
        let params: Vec<Param> = params.iter().copied().chain([SCALE]).collect();
        let mut given: Vec<(&str, &str)> = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            if !params.iter().any(|param| param.key == key) {
                let known: Vec<&str> = params.iter().map(|param| param.key).collect();
                let (key, known) = (key.into(), known.join(", "));
                return Err(Error::UnknownKey {
                    policy: policy.into(),
                    key,
                    known,
                });
            }
            if given.iter().any(|(other, _)| *other == key) {
                return Err(Error::Twice {
                    policy: policy.into(),
                    key: key.into(),
                });
            }
            given.push((key, value));
        }
        let mut all = Vec::new();
        for param in params {
            let text = given
                .iter()
                .find(|(key, _)| *key == param.key)
                .map(|(_, value)| *value);
            let (policy, key) = (policy.to_string(), param.key.to_string());
            if text.is_none() && param.default.is_empty() {
                return Err(Error::Needed {
                    policy,
                    key,
                    want: param.unit.want(),
                });
            }
            let text = text.unwrap_or(param.default);
            let value = param.unit.read(text).ok_or_else(|| {
                let (value, want) = (text.to_string(), param.unit.want());
                Error::BadValue {
                    policy,
                    key,
                    value,
                    want,
                }
            })?;
            all.push((param, value));
        }
        let mut values = Values {
            policy,
            all,
            scale: 1,
        };
        values.scale = values.number(SCALE.key);
        Ok(values)
    }

    /// The policy that they are for.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// The factor by which the machine is scaled down.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// A number: a count, bytes, bytes per second or ns, divided by the scale when the parameter says so (a value
    /// that is not zero stays at least 1). 0 for a key that was not declared.
    pub fn number(&self, key: &str) -> u64 {
        let found = self.all.iter().find(|(param, _)| param.key == key);
        match found {
            Some((param, Value::Number(n))) if param.scaled && *n > 0 => (n / self.scale).max(1),
            Some((_, Value::Number(n))) => *n,
            _ => 0,
        }
    }

    /// Address ranges as (base, bytes).
    pub fn ranges(&self, key: &str) -> &[(u64, u64)] {
        match self.all.iter().find(|(param, _)| param.key == key) {
            Some((_, Value::Ranges(ranges))) => ranges,
            _ => &[],
        }
    }

    /// Bandwidths, GB/s.
    pub fn limits(&self, key: &str) -> Vec<f64> {
        match self.all.iter().find(|(param, _)| param.key == key) {
            Some((_, Value::Limits(all))) => all.iter().map(|&kb| kb as f64 / 1e6).collect(),
            _ => Vec::new(),
        }
    }

    /// An error that names parameter `key` and says what would do.
    pub fn refuse(&self, key: &str, want: impl Into<String>) -> Error {
        let value = self.number(key).to_string();
        Error::BadValue {
            policy: self.policy.into(),
            key: key.into(),
            value,
            want: want.into(),
        }
    }
}

impl Unit {
    fn want(self) -> String {
        match self {
            Unit::Count { min, max: u64::MAX } => {
                format!("a whole number from {min} on, such as 8 or 10k")
            }
            Unit::Count { min, max } => format!("a whole number from {min} to {max}"),
            Unit::Bytes => "bytes, such as 4096, 4MiB or 1GiB".into(),
            Unit::Rate => "bytes per second, such as 10GB/s".into(),
            Unit::Time => "a time, such as 500us, 10ms or 1s".into(),
            Unit::Ranges => {
                "address ranges BASE+BYTES joined by /, such as 0x10000000+9GiB/0x8000000000+1GiB"
                    .into()
            }
            Unit::Limits => "bandwidths in GB/s joined by /, such as 10.1/12.5/16.3".into(),
        }
    }

    fn read(self, text: &str) -> Option<Value> {
        match self {
            Unit::Count { min, max } => {
                let n = written::count(text)?;
                (min..=max).contains(&n).then_some(Value::Number(n))
            }
            Unit::Bytes => Some(Value::Number(text.parse::<Bytes>().ok()?.0)),
            Unit::Rate => Some(Value::Number(
                text.strip_suffix("/s")?.parse::<Bytes>().ok()?.0,
            )),
            Unit::Time => Some(Value::Number(written::nanoseconds(text.trim())?)),
            Unit::Ranges => text
                .split('/')
                .map(range)
                .collect::<Option<Vec<_>>>()
                .map(Value::Ranges),
            Unit::Limits => {
                let limit = |text: &str| {
                    let gbps: f64 = text.trim().parse().ok()?;
                    (0.0..1e6).contains(&gbps).then_some((gbps * 1e6) as u64)
                };
                let all = text.split('/').map(limit).collect::<Option<Vec<_>>>();
                all.map(Value::Limits)
            }
        }
    }
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (base, bytes) = text.split_once('+')?;
    let base = match base.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => base.trim().parse().ok()?,
    };
    let bytes = bytes.parse::<Bytes>().ok()?.0;
    base.checked_add(bytes).map(|_| (base, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param {
            key: "n",
            unit: Unit::Count { min: 1, max: 255 },
            default: "8",
            scaled: false,
            about: "",
        },
        Param {
            key: "t",
            unit: Unit::Time,
            default: "10ms",
            scaled: true,
            about: "",
        },
        Param {
            key: "r",
            unit: Unit::Rate,
            default: "10GB/s",
            scaled: false,
            about: "",
        },
        Param {
            key: "b",
            unit: Unit::Bytes,
            default: "4MiB",
            scaled: true,
            about: "",
        },
    ];

    fn error(text: &str) -> String {
        Values::parse("p", PARAMS, text).unwrap_err().to_string()
    }

    #[test]
    fn values_are_read_and_scaled() {
        let values = Values::parse("p", PARAMS, " t=1.5ms, scale=1k,n=20").unwrap();
        assert_eq!((values.number("n"), values.number("t")), (20, 1_500));
        assert_eq!(
            (values.number("r"), values.number("b")),
            (10_000_000_000, 4194)
        );
        let tiny = Values::parse("p", PARAMS, "t=5ns,scale=1000").unwrap();
        assert_eq!(tiny.number("t"), 1);
        let off = Values::parse("p", PARAMS, "t=0s,scale=1000").unwrap();
        assert_eq!(off.number("t"), 0);
    }

    #[test]
    fn bad_values_name_the_key_and_a_remedy() {
        assert_eq!(
            error("m=1"),
            "page policy `p` has no parameter `m`; it takes n, t, r, b, scale"
        );
        assert_eq!(
            error("n=1,n=2"),
            "page policy `p`: parameter `n` is given twice"
        );
        assert_eq!(
            error("n=0"),
            "page policy `p`: n=0 will not do: a whole number from 1 to 255"
        );
        assert_eq!(
            error("n"),
            "page policy `p`: n= will not do: a whole number from 1 to 255"
        );
        assert!(error("t=10").contains("such as 500us"));
        assert!(error("t=-1s").contains("such as 500us"));
        assert!(error("r=10GB").contains("10GB/s"));
        assert!(error("scale=0").contains("from 1 to"));
    }

    proptest::proptest! {
        #[test]
        fn no_specification_makes_it_panic(text in "[a-z:-]{0,14}(:|,)([a-z-]{1,8}=[-0-9.kMGiBuns+/x,]{0,20},?){0,4}") {
            let _ = crate::policies::parse(&text);
            let _ = Values::parse("p", PARAMS, &text);
        }
    }

    #[test]
    fn ranges_are_bases_and_sizes() {
        let params = [Param {
            key: "hot",
            unit: Unit::Ranges,
            default: "",
            scaled: false,
            about: "",
        }];
        let values = Values::parse("p", &params, "hot=0x1000+4KiB/65536+1GiB").unwrap();
        assert_eq!(values.ranges("hot"), [(4096, 4096), (65536, 1 << 30)]);
        for bad in [
            "",
            "hot=",
            "hot=1",
            "hot=0x1000-1",
            "hot=0xffffffffffffffff+4KiB",
        ] {
            let error = Values::parse("p", &params, bad).unwrap_err().to_string();
            assert!(error.contains("BASE+BYTES"), "{error}");
        }
    }
}
