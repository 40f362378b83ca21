//! Numbers for people: significant digits, SI and IEC prefixes, one unit for a whole column.
//!
//! ```
//! use varve_report::fmt;
//! assert_eq!(fmt::duration_ns(305.0), "305 ns");
//! assert_eq!(fmt::duration_ns(4_000_000.0), "4 ms");
//! assert_eq!(fmt::bytes(48.0 * 1024.0 * 1024.0 * 1024.0), "48 GiB");
//! assert_eq!(fmt::rate(25_300_000.0), "25.3 M/s");
//! assert_eq!(fmt::ratio(1.324), "1.32x");
//! ```

use serde::{Deserialize, Serialize};

/// Printed where there is no number.
pub const NONE: &str = "-";

/// How the numbers of a column or an axis are meant and printed.
///
/// A column keeps its numbers in the base unit named here; when it is printed, one prefix is chosen
/// for all of it, so that its numbers can be compared by eye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A number in the column's own unit.
    #[default]
    Number,
    /// A count: no decimals, digits in groups of three.
    Integer,
    /// A share, already in percent.
    Percent,
    /// A time in nanoseconds, printed in ns, us, ms or s.
    DurationNs,
    /// An amount of memory in bytes, printed in B, KiB, MiB, GiB or TiB.
    Bytes,
    /// Things per second (the unit names the things), printed with k, M or G.
    PerSecond,
    /// Bytes per second, printed in SI prefixes as memory bandwidth is.
    BytesPerSecond,
    /// A ratio, printed with an `x`.
    Ratio,
}

/// A unit to print, and the divisor from the base unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// The unit with its prefix, for a heading.
    pub unit: String,
    /// Base units in one printed unit.
    pub divisor: f64,
}

const TIME: &[(f64, &str)] = &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
const IEC: &[(f64, &str)] = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1048576.0, "MiB"),
    (1073741824.0, "GiB"),
    (1099511627776.0, "TiB"),
];
const SI: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// The largest prefix that leaves at least one whole unit; the first one below that.
fn prefix(steps: &'static [(f64, &'static str)], x: f64) -> (f64, &'static str) {
    let x = x.abs();
    // A hair of slack, so that 999.9999 us is called 1 ms and not 1000 us.
    *steps
        .iter()
        .rev()
        .find(|(size, _)| x >= size * 0.9995)
        .unwrap_or(&steps[0])
}

impl Format {
    /// The unit that numbers of this format are *stored* in; `unit` is the column's own word.
    pub fn base_unit(self, unit: &str) -> String {
        match self {
            Format::Number | Format::Integer => unit.to_string(),
            Format::Percent => "%".into(),
            Format::DurationNs => "ns".into(),
            Format::Bytes => "B".into(),
            Format::PerSecond => format!("{unit}/s"),
            Format::BytesPerSecond => "B/s".into(),
            Format::Ratio => "x".into(),
        }
    }

    /// The unit to print numbers about as large as `typical` in.
    pub fn scaled(self, unit: &str, typical: f64) -> Scaled {
        let (divisor, unit) = match self {
            Format::DurationNs => {
                let (d, p) = prefix(TIME, typical);
                (d, p.to_string())
            }
            Format::Bytes => {
                let (d, p) = prefix(IEC, typical);
                (d, p.to_string())
            }
            Format::PerSecond => {
                let (d, p) = prefix(SI, typical);
                let space = if p.is_empty() || unit.is_empty() {
                    ""
                } else {
                    " "
                };
                (d, format!("{p}{space}{unit}/s"))
            }
            Format::BytesPerSecond => {
                let (d, p) = prefix(SI, typical);
                (d, format!("{p}B/s"))
            }
            _ => (1.0, self.base_unit(unit)),
        };
        Scaled { unit, divisor }
    }

    /// One number with its unit, for a sentence or a label.
    pub fn one(self, unit: &str, x: f64) -> String {
        if !x.is_finite() {
            return NONE.into();
        }
        let s = self.scaled(unit, x);
        match self {
            Format::Ratio => ratio(x),
            Format::Percent => format!("{} %", significant(x, 3)),
            Format::Integer if unit.is_empty() => integer(x),
            Format::Integer => format!("{} {unit}", integer(x)),
            _ if s.unit.is_empty() => significant(x, 3),
            _ => format!("{} {}", significant(x / s.divisor, 3), s.unit),
        }
    }

    /// A whole column: the unit for its heading and each number printed with the same decimals.
    ///
    /// ```
    /// use varve_report::fmt::Format;
    /// let (unit, cells) = Format::DurationNs.column("", &[1.5e6, 20e6, f64::NAN]);
    /// assert_eq!(unit, "ms");
    /// assert_eq!(cells, ["1.5", "20.0", "-"]);
    /// ```
    pub fn column(self, unit: &str, values: &[f64]) -> (String, Vec<String>) {
        let s = self.scaled(unit, typical(values));
        let scaled: Vec<f64> = values.iter().map(|v| v / s.divisor).collect();
        let places = if self == Format::Integer {
            0
        } else {
            decimals(&scaled)
        };
        let cells = scaled
            .iter()
            .map(|&v| match self {
                _ if !v.is_finite() => NONE.into(),
                Format::Integer => integer(v),
                _ => fixed(v, places),
            })
            .collect();
        (s.unit, cells)
    }
}

/// The median size of the values that are there and not zero, or 1.
pub(crate) fn typical(values: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = values
        .iter()
        .map(|v| v.abs())
        .filter(|v| v.is_finite() && *v > 0.0)
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(1.0)
}

/// Decimals that show three digits of the smallest number, as long as the largest shows at most four.
fn decimals(values: &[f64]) -> usize {
    let sizes = || {
        values
            .iter()
            .map(|v| v.abs())
            .filter(|v| v.is_finite() && *v > 0.0)
    };
    if values
        .iter()
        .filter(|v| v.is_finite())
        .all(|v| v.fract() == 0.0 && v.abs() < 1e7)
    {
        return 0;
    }
    let power = |x: f64| x.log10().floor() as i32;
    let (Some(min), Some(max)) = (sizes().reduce(f64::min), sizes().reduce(f64::max)) else {
        return 0;
    };
    let most = (2 - power(min))
        .min(3 - power(max))
        .max(2 - power(max))
        .clamp(0, 9) as usize;
    // But no decimal that is zero in every number.
    let idle = |places: &usize| {
        let text = |v: &f64| format!("{v:.places$}");
        values
            .iter()
            .filter(|v| v.is_finite())
            .all(|v| text(v).ends_with('0'))
    };
    (1..=most).rev().find(|places| !idle(places)).unwrap_or(0)
}

/// A number with `places` decimals; one that would round to zero shows that.
fn fixed(x: f64, places: usize) -> String {
    let step = 10f64.powi(-(places as i32));
    if x == 0.0 {
        "0".into()
    } else if x.abs() >= 1e12 {
        format!("{x:.2e}")
    } else if x.abs() < step / 2.0 {
        format!("{}{step:.places$}", if x > 0.0 { "<" } else { ">-" })
    } else {
        group(&format!("{x:.places$}"))
    }
}

/// Commas between groups of three digits.
fn group(digits: &str) -> String {
    let (sign, rest) = digits.strip_prefix('-').map_or(("", digits), |r| ("-", r));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    format!("{sign}{out}{fraction}")
}

/// A whole number with its digits in groups: `12,345`.
pub fn integer(x: f64) -> String {
    if !x.is_finite() {
        NONE.into()
    } else if x.abs() >= 1e15 {
        format!("{x:.2e}")
    } else {
        let digits = format!("{x:.0}");
        group(if digits == "-0" { "0" } else { &digits })
    }
}

/// A number with at most `digits` significant digits, without trailing zeros: `0.00123`, `1.5`, `12,300`.
pub fn significant(x: f64, digits: u32) -> String {
    if !x.is_finite() {
        return NONE.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let digits = digits.max(1) as i32;
    // Through the exponent form, because rounding may carry into a new digit (9.999 -> 10.0).
    let exponent: i32 = format!("{:.*e}", digits as usize - 1, x)
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    if !(-6..12).contains(&exponent) {
        return format!("{:.*e}", digits as usize - 1, x);
    }
    let places = (digits - 1 - exponent).max(0) as usize;
    let text = format!("{x:.places$}");
    let text = if places > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    group(text)
}

/// A time given in nanoseconds: `96 ns`, `1.25 us`, `4 ms`, `38 s`.
pub fn duration_ns(ns: f64) -> String {
    Format::DurationNs.one("", ns)
}

/// An amount of memory given in bytes: `64 B`, `4 KiB`, `48 GiB`.
pub fn bytes(bytes: f64) -> String {
    Format::Bytes.one("", bytes)
}

/// Things per second: `25.3 M/s`.
pub fn rate(per_second: f64) -> String {
    Format::PerSecond.one("", per_second)
}

/// Memory bandwidth in SI prefixes, from bytes per second: `39.5 GB/s`.
pub fn bandwidth(bytes_per_second: f64) -> String {
    Format::BytesPerSecond.one("", bytes_per_second)
}

/// A ratio: `1.32x`.
pub fn ratio(x: f64) -> String {
    if x.is_finite() {
        format!("{}x", significant(x, 3))
    } else {
        NONE.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounding_carries_into_the_next_digit_and_the_next_unit() {
        assert_eq!(significant(9.999, 3), "10");
        assert_eq!(significant(99_950.0, 3), "99,950");
        assert_eq!(duration_ns(999_999.9), "1 ms");
        assert_eq!(duration_ns(998_000.0), "998 us");
        assert_eq!(bytes(1023.99), "1 KiB");
    }

    #[test]
    fn every_prefix_has_its_turn() {
        assert_eq!(duration_ns(0.0), "0 ns");
        assert_eq!(duration_ns(38e9), "38 s");
        assert_eq!(duration_ns(-1500.0), "-1.5 us");
        assert_eq!(bytes(64.0), "64 B");
        assert_eq!(bytes(1.5 * 1099511627776.0), "1.5 TiB");
        assert_eq!(rate(0.25), "0.25 /s");
        assert_eq!(rate(12_000.0), "12 k/s");
        assert_eq!(bandwidth(39.46e9), "39.5 GB/s");
        assert_eq!(Format::PerSecond.one("accesses", 2.5e6), "2.5 M accesses/s");
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        for f in [duration_ns, bytes, rate, ratio, bandwidth, integer] {
            assert_eq!(f(f64::NAN), NONE);
            assert_eq!(f(f64::INFINITY), NONE);
        }
    }

    #[test]
    fn a_column_has_one_unit_and_one_number_of_decimals() {
        let (unit, cells) = Format::Bytes.column("", &[0.0, 1536.0, 1048576.0]);
        assert_eq!((unit.as_str(), cells[1].as_str()), ("MiB", "0.001"));
        let (_, cells) = Format::Number.column("", &[0.5, 12.34, 450.0]);
        assert_eq!(cells, ["0.5", "12.3", "450.0"]);
        let (_, cells) = Format::Number.column("", &[1e-7, 450.5]);
        assert_eq!(cells, ["<0.1", "450.5"]);
        let (_, cells) = Format::Integer.column("pages", &[12345.0, 7.0, -123456.0]);
        assert_eq!(cells, ["12,345", "7", "-123,456"]);
    }

    proptest! {
        /// Three significant digits are within half a percent of the number, read back.
        #[test]
        fn significant_digits_read_back(x in -1e12f64..1e12) {
            let back: f64 = significant(x, 3).replace(',', "").parse().unwrap();
            prop_assert!((back - x).abs() <= x.abs() * 0.005 + 1e-300, "{x} printed as {back}");
        }

        /// A duration with its unit undone is the duration.
        #[test]
        fn durations_read_back(ns in 1.0f64..1e12) {
            let text = duration_ns(ns);
            let (number, unit) = text.split_once(' ').unwrap();
            let factor = TIME.iter().find(|(_, u)| *u == unit).unwrap().0;
            let back = number.replace(',', "").parse::<f64>().unwrap() * factor;
            prop_assert!((back - ns).abs() <= ns * 0.006);
        }

        /// A column's cells read back to their values within the decimals that are shown.
        #[test]
        fn columns_read_back(values in prop::collection::vec(-1e6f64..1e6, 1..8)) {
            let (_, cells) = Format::Number.column("", &values);
            for (cell, v) in cells.iter().zip(&values) {
                if cell.starts_with(['<', '>']) { continue; }
                let back: f64 = cell.replace(',', "").parse().unwrap();
                let places = cell.split_once('.').map_or(0, |(_, f)| f.len() as i32);
                prop_assert!((back - v).abs() <= 0.51 * 10f64.powi(-places));
            }
        }
    }
}
