//! Parameters of a workload: declared with unit, default and a line of help, given as `key=value`.

use std::collections::BTreeMap;

mod read;

use read::read;

/// What a value means and how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Bytes: `4096`, `2MiB`, `96GiB`, `1GB`.
    Bytes,
    /// A whole number, with `k`, `M`, `G` for thousands, millions, billions.
    Count,
    /// A share: `10%` or `0.1`; 0 to 1.
    Share,
    /// Time: `5ns`, `2ms`, `1.5s`.
    Time,
    /// `true` or `false`; the bare key means `true`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The key.
    pub key: &'static str,
    /// What its value means.
    pub unit: Unit,
    /// Its value when not given, as a user would write it.
    pub default: &'static str,
    /// Is it a size of the machine's kind, so that it is divided by `scale`? Only for `Bytes` and `Count`.
    pub scaled: bool,
    /// One line of help.
    pub about: &'static str,
}

impl Param {
    /// A parameter that keeps its value at every scale.
    pub const fn new(
        key: &'static str,
        unit: Unit,
        default: &'static str,
        about: &'static str,
    ) -> Param {
        Param {
            key,
            unit,
            default,
            scaled: false,
            about,
        }
    }

    /// A `Bytes` or `Count` parameter that is divided by `scale`.
    pub const fn scaled(
        key: &'static str,
        unit: Unit,
        default: &'static str,
        about: &'static str,
    ) -> Param {
        Param {
            key,
            unit,
            default,
            scaled: true,
            about,
        }
    }
}

/// Parameters that every workload has.
pub const COMMON: &[Param] = &[
    Param::new("threads", Unit::Count, "16", "simulated threads"),
    Param::new("seed", Unit::Count, "1", "seed of every random choice"),
    Param::new(
        "scale",
        Unit::Count,
        "1",
        "divide every size by this, to go with a machine that is scaled down by the same factor",
    ),
    Param::new(
        "touch",
        Unit::Bytes,
        "4KiB",
        "bytes between two first touches at initialization: 64 writes every line, 4KiB every page once",
    ),
];

/// Why a specification was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No workload of that name.
    #[error("no workload is called `{name}`; there are {known}")]
    UnknownWorkload {
        /// The name given.
        name: String,
        /// Every name, separated by commas.
        known: String,
    },
    /// The workload has no such parameter.
    #[error("workload `{workload}` has no parameter `{key}`; it takes {known}")]
    UnknownKey {
        /// The workload.
        workload: String,
        /// The key given.
        key: String,
        /// Its keys, separated by commas.
        known: String,
    },
    /// The same key was given twice.
    #[error("workload `{workload}`: parameter `{key}` is given twice")]
    Twice {
        /// The workload.
        workload: String,
        /// The key.
        key: String,
    },
    /// A value cannot be read, or is out of range.
    #[error("workload `{workload}`: {key}={value} will not do: {want}")]
    BadValue {
        /// The workload.
        workload: String,
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What would do.
        want: String,
    },
}

/// The checked parameters of one workload: every declared key has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    workload: &'static str,
    scale: u64,
    /// Key to (value as written, value read, divided by scale where the parameter says so).
    values: BTreeMap<&'static str, (String, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Number(u64),
    Share(f64),
    Choice(&'static str),
}

// Shares are compared by bits: they are parsed text, never computed.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Share(a), Value::Share(b)) => a.to_bits() == b.to_bits(),
            (Value::Choice(a), Value::Choice(b)) => a == b,
            _ => false,
        }
    }
}
impl Eq for Value {}

impl Values {
    /// Reads `text` (`key=value,key=value,flag`) against the declared `params` and [`COMMON`].
    /// A workload's own declaration of a common key replaces it (another default, another help).
    ///
    /// # Errors
    /// The first unknown, repeated or unreadable parameter.
    pub fn parse(workload: &'static str, params: &[Param], text: &str) -> Result<Values, Error> {
        let declared = all_params(params);
        let mut given: BTreeMap<&'static str, &str> = BTreeMap::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            let Some(param) = declared.iter().find(|param| param.key == key) else {
                let known: Vec<&str> = declared.iter().map(|param| param.key).collect();
                let known = known.join(", ");
                return Err(Error::UnknownKey {
                    workload: workload.into(),
                    key: key.into(),
                    known,
                });
            };
            // A bare flag is true; anything else needs its value.
            let value = match param.unit {
                Unit::Flag if !part.contains('=') => "true",
                _ => value,
            };
            if given.insert(param.key, value).is_some() {
                return Err(Error::Twice {
                    workload: workload.into(),
                    key: key.into(),
                });
            }
        }
        let mut values = Values {
            workload,
            scale: 1,
            values: BTreeMap::new(),
        };
        for param in &declared {
            let text = given.get(param.key).copied().unwrap_or(param.default);
            let value =
                read(param.unit, text).map_err(|want| values.bad_text(param.key, text, want))?;
            values.values.insert(param.key, (text.to_string(), value));
        }
        values.scale = values.count("scale");
        for key in ["scale", "threads", "touch"] {
            if values.count(key) == 0 {
                return Err(values.bad(key, "it must be at least 1"));
            }
        }
        let scale = values.scale;
        for param in declared.iter().filter(|param| param.scaled) {
            if let Some((_, Value::Number(number))) = values.values.get_mut(param.key) {
                *number /= scale;
            }
        }
        Ok(values)
    }

    /// The error that `key`'s value will not do, because of `want`.
    pub fn bad(&self, key: &str, want: impl Into<String>) -> Error {
        let text = self
            .values
            .get(key)
            .map_or("", |(text, _)| text.as_str())
            .to_string();
        self.bad_text(key, &text, want)
    }

    fn bad_text(&self, key: &str, text: &str, want: impl Into<String>) -> Error {
        Error::BadValue {
            workload: self.workload.into(),
            key: key.into(),
            value: text.into(),
            want: want.into(),
        }
    }

    /// The workload's name.
    pub fn workload(&self) -> &'static str {
        self.workload
    }

    /// A `Bytes`, `Count` (as such) or `Time` (nanoseconds) value; sizes already divided by the scale.
    ///
    /// # Panics
    /// When the workload did not declare `key` with such a unit.
    pub fn count(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Number(number) => number,
            other => panic!("parameter `{key}` is no number but {other:?}"),
        }
    }

    /// Like [`Values::count`], refused when outside `low..=high`.
    ///
    /// # Errors
    /// The value is outside.
    pub fn count_in(&self, key: &str, low: u64, high: u64) -> Result<u64, Error> {
        let number = self.count(key);
        if (low..=high).contains(&number) {
            return Ok(number);
        }
        let scaled = match self.scale {
            1 => String::new(),
            scale => format!(" (it is {number} after dividing by scale={scale})"),
        };
        let want = match high {
            u64::MAX => format!("at least {low}{scaled}"),
            _ => format!("between {low} and {high}{scaled}"),
        };
        Err(self.bad(key, want))
    }

    /// Number of simulated threads, 1 to 1024.
    ///
    /// # Errors
    /// Out of range.
    pub fn threads(&self) -> Result<usize, Error> {
        Ok(self.count_in("threads", 1, 1024)? as usize)
    }

    /// The divisor of sizes.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// A `Share` value, 0 to 1.
    ///
    /// # Panics
    /// When the workload did not declare `key` as a share.
    pub fn share(&self, key: &str) -> f64 {
        match self.value(key) {
            Value::Share(share) => share,
            other => panic!("parameter `{key}` is no share but {other:?}"),
        }
    }

    /// A `Flag` value.
    ///
    /// # Panics
    /// When the workload did not declare `key` as a flag.
    pub fn flag(&self, key: &str) -> bool {
        self.choice(key) == "true"
    }

    /// A `Choice` value.
    ///
    /// # Panics
    /// When the workload did not declare `key` as a choice.
    pub fn choice(&self, key: &str) -> &'static str {
        match self.value(key) {
            Value::Choice(word) => word,
            other => panic!("parameter `{key}` is no word but {other:?}"),
        }
    }

    fn value(&self, key: &str) -> Value {
        match self.values.get(key) {
            Some(&(_, value)) => value,
            None => panic!(
                "workload `{}` does not declare parameter `{key}`",
                self.workload
            ),
        }
    }

    /// The whole specification with every default filled in, as one line that builds the same workload again.
    pub fn line(&self) -> String {
        let pairs: Vec<String> = self
            .values
            .iter()
            .map(|(key, (text, _))| format!("{key}={text}"))
            .collect();
        format!("{}:{}", self.workload, pairs.join(","))
    }
}

/// A workload's parameters and the common ones that it does not replace.
pub fn all_params(own: &[Param]) -> Vec<Param> {
    let common = COMMON
        .iter()
        .filter(|common| own.iter().all(|param| param.key != common.key));
    own.iter().chain(common).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[Param] = &[
        Param::scaled("bytes", Unit::Bytes, "96GiB", "size"),
        Param::new("hot", Unit::Share, "10%", "hot share"),
        Param::new("limit", Unit::Time, "1.5s", "when to stop"),
        Param::new("scattered", Unit::Flag, "false", "where the hot ones are"),
        Param::new("op", Unit::Choice(&["copy", "triad"]), "copy", "what to do"),
    ];

    fn parse(text: &str) -> Result<Values, Error> {
        Values::parse("demo", OWN, text)
    }

    #[test]
    fn defaults_fill_in_and_sizes_are_divided_by_scale() {
        let values = parse("scale=64,scattered").unwrap();
        assert_eq!(values.count("bytes"), 96 << 24);
        assert_eq!(values.share("hot"), 0.1);
        assert_eq!(values.count("limit"), 1_500_000_000);
        assert!(values.flag("scattered"));
        assert_eq!(values.choice("op"), "copy");
        assert_eq!(values.threads().unwrap(), 16);
    }

    #[test]
    fn the_line_builds_the_same_values_again() {
        let values = parse("bytes=1.5MiB, hot=0.25, op=triad, scale=2").unwrap();
        let line = values.line();
        let (name, rest) = line.split_once(':').unwrap();
        assert_eq!(name, "demo");
        assert_eq!(parse(rest).unwrap(), values);
    }

    #[test]
    fn errors_name_the_key_and_what_is_allowed() {
        let say = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            say("byte=1"),
            "workload `demo` has no parameter `byte`; it takes bytes, hot, limit, scattered, op, threads, seed, scale, touch"
        );
        assert_eq!(
            say("hot=1%,hot=2%"),
            "workload `demo`: parameter `hot` is given twice"
        );
        assert_eq!(
            say("op=add"),
            "workload `demo`: op=add will not do: one of copy, triad"
        );
        assert_eq!(
            say("hot=101%"),
            "workload `demo`: hot=101% will not do: a share such as 10% or 0.1"
        );
        assert_eq!(
            say("threads=0"),
            "workload `demo`: threads=0 will not do: it must be at least 1"
        );
        assert_eq!(
            say("bytes"),
            "workload `demo`: bytes= will not do: a size such as 4096, 2MiB or 96GiB"
        );
        let values = parse("bytes=1KiB,scale=8").unwrap();
        assert_eq!(
            values
                .count_in("bytes", 4096, u64::MAX)
                .unwrap_err()
                .to_string(),
            "workload `demo`: bytes=1KiB will not do: at least 4096 (it is 128 after dividing by scale=8)"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
