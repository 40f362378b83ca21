//! The parameters of one thing, each with the value that was given or its default.

use crate::error::{Error, Why, whose};
use crate::names::nearest;
use crate::want::{Param, Value, Want};
use crate::written;
use std::time::Duration;

/// The parameter by which others are divided.
const SCALE: &str = "scale";

/// Checked values: every declared parameter has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    kind: &'static str,
    name: String,
    scale: u64,
    all: Vec<Given>,
}

/// A parameter's value, as it is written and as it was read.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    param: Param,
    text: String,
    value: Value,
}

impl Values {
    /// Reads `key=value,...` for the thing `name` of a `kind`, which takes its `own` parameters and those `common` ones that
    /// it does not declare itself.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated, unreadable or missing.
    pub fn parse(
        kind: &'static str,
        name: &str,
        own: &[Param],
        common: &[Param],
        text: &str,
    ) -> Result<Values, Error> {
        let whose = || whose(kind, name);
        let params = all_params(own, common);
        let mut given: Vec<Option<&str>> = vec![None; params.len()];
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        for part in parts {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            let Some(at) = params.iter().position(|param| param.key == key) else {
                let known: Vec<&str> = params.iter().map(|param| param.key).collect();
                return Err(Error::UnknownKey {
                    whose: whose(),
                    key: key.into(),
                    known: known.join(", "),
                    meant: nearest(key, known).map(String::from),
                });
            };
            let value = value.unwrap_or(match params[at].want {
                Want::Flag => "yes",
                _ => "",
            });
            if given[at].replace(value).is_some() {
                let key = key.into();
                return Err(Error::Twice {
                    whose: whose(),
                    key,
                });
            }
        }
        let mut values = Values {
            kind,
            name: name.into(),
            scale: 1,
            all: Vec::with_capacity(params.len()),
        };
        for (param, given) in params.into_iter().zip(given) {
            if given.is_none() && param.default.is_empty() {
                return Err(Error::Needed {
                    whose: whose(),
                    key: param.key.into(),
                    want: param.want.to_string(),
                });
            }
            let text = given.unwrap_or(param.default);
            let value = param.want.read(text).map_err(|why| Error::Value {
                whose: whose(),
                given: format!("{}={text}", param.key),
                why,
            })?;
            if let (SCALE, &Value::Whole(scale)) = (param.key, &value) {
                values.scale = scale.max(1);
            }
            values.all.push(Given {
                param,
                text: text.into(),
                value,
            });
        }
        Ok(values)
    }

    /// The name of the thing that they are for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The factor that sizes and times are divided by: the value of `scale`, 1 where there is none.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// A count, bytes, bytes per second, or a time in ns. Divided by the scale where the parameter says so; what is not zero
    /// stays at least 1.
    ///
    /// # Panics
    /// If no such parameter was declared, as all functions that give values.
    pub fn count(&self, key: &str) -> u64 {
        let given = self.given(key);
        match given.value {
            Value::Whole(n) if given.param.scaled && n > 0 => (n / self.scale).max(1),
            Value::Whole(n) => n,
            _ => self.undeclared(key, "whole number"),
        }
    }

    /// Like [`Values::count`], refused when outside `low..=high`. What the scale leaves nothing of is 0 here.
    ///
    /// # Errors
    /// The value is outside.
    pub fn count_in(&self, key: &str, low: u64, high: u64) -> Result<u64, Error> {
        let given = self.given(key);
        let number = match given.value {
            Value::Whole(n) if given.param.scaled => n / self.scale,
            _ => self.count(key),
        };
        if (low..=high).contains(&number) {
            return Ok(number);
        }
        let is_size = given.param.want == Want::Bytes;
        if is_size && number < low && number > 0 && written::is_bare(&given.text) {
            let remedy = format!("{0}MiB or {0}GiB", given.text);
            return Err(self.wrong(key, Why::NoUnit(remedy)));
        }
        let scaled = match given.param.scaled && self.scale > 1 {
            true => format!(" (it is {number} after dividing by scale={})", self.scale),
            false => String::new(),
        };
        let bytes = if is_size { " bytes" } else { "" };
        Err(self.refuse(
            key,
            match high {
                u64::MAX => format!("must be at least {low}{bytes}{scaled}"),
                _ => format!("must be from {low} to {high}{bytes}{scaled}"),
            },
        ))
    }

    /// A number.
    pub fn number(&self, key: &str) -> f64 {
        match self.given(key).value {
            Value::Real(n) => n,
            _ => self.undeclared(key, "number"),
        }
    }

    /// A part, 1 being all of something.
    pub fn part(&self, key: &str) -> f64 {
        self.number(key)
    }

    /// A time; see [`Values::count`] for its scale.
    pub fn time(&self, key: &str) -> Duration {
        Duration::from_nanos(self.count(key))
    }

    /// Yes or no.
    pub fn flag(&self, key: &str) -> bool {
        match self.given(key).value {
            Value::Flag(flag) => flag,
            _ => self.undeclared(key, "flag"),
        }
    }

    /// A word.
    pub fn word(&self, key: &str) -> &'static str {
        match self.given(key).value {
            Value::Word(word) => word,
            _ => self.undeclared(key, "word"),
        }
    }

    /// Address ranges as (base, bytes).
    pub fn ranges(&self, key: &str) -> &[(u64, u64)] {
        match &self.given(key).value {
            Value::Ranges(ranges) => ranges,
            _ => self.undeclared(key, "range"),
        }
    }

    /// Bandwidths, GB/s.
    pub fn limits(&self, key: &str) -> &[f64] {
        match &self.given(key).value {
            Value::Limits(limits) => limits,
            _ => self.undeclared(key, "bandwidth"),
        }
    }

    /// The error that the value of `key` breaks a rule, such as `must be a multiple of 64 bytes`.
    pub fn refuse(&self, key: &str, rule: impl Into<String>) -> Error {
        self.wrong(key, Why::Rule(rule.into()))
    }

    fn wrong(&self, key: &str, why: Why) -> Error {
        Error::Value {
            whose: whose(self.kind, &self.name),
            given: format!("{key}={}", self.given(key).text),
            why,
        }
    }

    /// The whole specification with every default filled in, by key: one line that says the same.
    pub fn line(&self) -> String {
        let mut all: Vec<&Given> = self.all.iter().collect();
        all.sort_by_key(|given| given.param.key);
        let pair = |given: &&Given| format!("{}={}", given.param.key, given.text);
        let pairs: Vec<String> = all.iter().map(pair).collect();
        format!("{}:{}", self.name, pairs.join(","))
    }

    fn given(&self, key: &str) -> &Given {
        let found = self.all.iter().find(|given| given.param.key == key);
        found.unwrap_or_else(|| self.undeclared(key, "value"))
    }

    fn undeclared(&self, key: &str, what: &str) -> ! {
        panic!("{} `{}` declares no {what} `{key}`", self.kind, self.name)
    }
}

/// The parameters of a thing: its own, and the common ones that it does not declare itself.
pub fn all_params(own: &[Param], common: &[Param]) -> Vec<Param> {
    let inherited = common
        .iter()
        .filter(|common| own.iter().all(|param| param.key != common.key));
    own.iter().chain(inherited).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Want = Want::Count { min: 1, max: 255 };
    const OWN: &[Param] = &[
        Param::new("n", COUNT, "8", ""),
        Param::scaled("t", Want::Time, "10ms", ""),
        Param::new("rate", Want::Rate, "10GB/s", ""),
        Param::scaled("bytes", Want::Bytes, "4MiB", ""),
        Param::new("hot", Want::Part, "10%", ""),
        Param::new("alpha", Want::Number, "1.5", ""),
        Param::new("scattered", Want::Flag, "no", ""),
        Param::new("op", Want::Word(&["copy", "triad"]), "copy", ""),
        Param::new("model", Want::Limits, "10.1/12.5", ""),
    ];
    const COMMON: &[Param] = &[
        Param::new(
            SCALE,
            Want::Count {
                min: 1,
                max: 1 << 40,
            },
            "1",
            "",
        ),
        Param::new("n", COUNT, "9", "the thing's own one counts"),
    ];

    fn parse(text: &str) -> Result<Values, Error> {
        Values::parse("toy", "bell", OWN, COMMON, text)
    }

    fn says(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn defaults_fill_in_and_sizes_are_divided_by_the_scale() {
        let values = parse(" t=1.5ms, scale=1k,scattered").unwrap();
        assert_eq!((values.count("n"), values.count("t")), (8, 1_500));
        assert_eq!(
            (values.count("rate"), values.count("bytes")),
            (10_000_000_000, 4194)
        );
        assert_eq!((values.part("hot"), values.number("alpha")), (0.1, 1.5));
        assert!(values.flag("scattered"));
        assert_eq!(values.word("op"), "copy");
        assert_eq!(values.limits("model"), [10.1, 12.5]);
        let tiny = parse("t=5ns,scale=1000").unwrap();
        assert_eq!(tiny.time("t"), Duration::from_nanos(1));
        let off = parse("t=0s,scale=1000").unwrap();
        assert_eq!(off.count("t"), 0);
    }

    #[test]
    fn the_line_builds_the_same_values_again() {
        let values = parse("bytes=1.5MiB, hot=0.25, op=triad, scale=2").unwrap();
        let line = values.line();
        let (name, given) = crate::split(&line);
        assert_eq!(name, "bell");
        assert_eq!(parse(given).unwrap(), values);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_do() {
        for (text, expected) in [
            (
                "byte=1",
                "toy `bell` has no parameter `byte`; it takes n, t, rate, bytes, hot, alpha, scattered, op, model, scale (did you mean `bytes`?)",
            ),
            ("n=1,n=2", "toy `bell`: parameter `n` is given twice"),
            (
                "n=0",
                "toy `bell`: `n=0`: must be a whole number from 1 to 255",
            ),
            (
                "n",
                "toy `bell`: `n=`: must be a whole number from 1 to 255",
            ),
            ("t=10", "toy `bell`: `t=10` has no unit: write 10s or 10ms"),
            (
                "t=-1s",
                "toy `bell`: `t=-1s`: must be a time, such as 500us, 10ms or 1.5s",
            ),
            (
                "rate=10GB",
                "toy `bell`: `rate=10GB` has no unit: write 10GB/s",
            ),
            ("rate=10", "toy `bell`: `rate=10` has no unit: write 10GB/s"),
            (
                "hot=101%",
                "toy `bell`: `hot=101%`: must be a part from 0 to 1, such as 0.05 or 5%",
            ),
            ("op=add", "toy `bell`: `op=add`: must be one of copy, triad"),
            (
                "scattered=maybe",
                "toy `bell`: `scattered=maybe`: must be yes or no",
            ),
            (
                "bytes",
                "toy `bell`: `bytes=`: must be a size, such as 4096, 2MiB or 96GiB",
            ),
        ] {
            assert_eq!(says(text), expected);
        }
        let only = Values::parse("--toys", "", OWN, &[], "n=0").unwrap_err();
        assert!(only.to_string().starts_with("--toys: `n=0`: must be"));
    }

    #[test]
    fn a_size_that_is_too_small_may_lack_its_unit() {
        let refused = |text: &str| {
            let values = parse(text).unwrap();
            values
                .count_in("bytes", 4096, u64::MAX)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused("bytes=96"),
            "toy `bell`: `bytes=96` has no unit: write 96MiB or 96GiB"
        );
        assert_eq!(
            refused("bytes=1KiB,scale=8"),
            "toy `bell`: `bytes=1KiB`: must be at least 4096 bytes (it is 128 after dividing by scale=8)"
        );
        assert!(refused("bytes=0").ends_with("`bytes=0`: must be at least 4096 bytes"));
    }

    #[test]
    fn what_has_no_default_must_be_given() {
        let own = [Param::new("hot", Want::Ranges, "", "")];
        let parse = |text: &str| Values::parse("toy", "bell", &own, &[], text);
        let values = parse("hot=0x1000+4KiB/65536+1GiB").unwrap();
        assert_eq!(values.ranges("hot"), [(4096, 4096), (65536, 1 << 30)]);
        assert!(
            parse("")
                .unwrap_err()
                .to_string()
                .starts_with("toy `bell` needs `hot=...`: address ranges")
        );
        for bad in [
            "hot=",
            "hot=1",
            "hot=0x1000-1",
            "hot=0xffffffffffffffff+4KiB",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains("BASE+BYTES"), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_value_makes_the_reader_panic(text in "([a-z]{1,9}=[-0-9.kMGiBuns+/x%]{0,20},?){0,4}") {
            let _ = parse(&text);
        }
    }
}
