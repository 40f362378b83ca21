//! Numbers with units, as people write parameters: `2MiB`, `10k`, `1.5s`.

/// The suffixes of a number, and their factors.
type Suffixes = &'static [(&'static str, u64)];

const BYTES: Suffixes = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    // As cgroups, containers and virtual machines write them.
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("B", 1),
    ("", 1),
];
const COUNTS: Suffixes = &[
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("", 1),
];
const TIMES: Suffixes = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A decimal number with one of the suffixes; `None` unless it is whole once multiplied and fits 64 bits.
fn whole(text: &str, suffixes: Suffixes) -> Option<u64> {
    let (digits, factor) = suffixes.iter().find_map(|&(suffix, factor)| {
        let digits = text.strip_suffix(suffix)?.trim_end();
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        (plain && !digits.is_empty()).then_some((digits, factor))
    })?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    let mut value = whole.checked_mul(factor)?;
    if !part.is_empty() {
        let tens = 10u64.checked_pow(part.len() as u32)?;
        let product = u128::from(part.parse::<u64>().ok()?) * u128::from(factor);
        // A fraction of a binary unit need not come out even (1.1GiB): the byte below will do.
        value = value.checked_add(u64::try_from(product / u128::from(tens)).ok()?)?;
        if factor == 1 && product % u128::from(tens) != 0 {
            return None;
        }
    }
    Some(value)
}

/// Bytes: `4096`, `2MiB`, `96GiB` or `96G`, `1GB`.
pub fn bytes(text: &str) -> Option<u64> {
    whole(text, BYTES)
}

/// A whole number, with `k`, `M`, `G` for thousands, millions, billions.
pub fn count(text: &str) -> Option<u64> {
    whole(text, COUNTS)
}

/// Time in ns: `5ns`, `2ms`, `1.5s`, `10min` (or `10m`), `1h`; zero needs no unit.
pub fn nanoseconds(text: &str) -> Option<u64> {
    match text {
        "0" => Some(0),
        _ => whole(text, TIMES),
    }
}

/// Time in seconds: as [`nanoseconds`], or a number of seconds without a unit. Finite, and not negative.
pub fn seconds(text: &str) -> Option<f64> {
    match nanoseconds(text) {
        Some(ns) => Some(ns as f64 / 1e9),
        None => number(text),
    }
}

/// A number that is finite and not negative: `1.5`.
pub fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// A part of something, 0 to 1: `0.05` or `5%`.
pub fn part(text: &str) -> Option<f64> {
    let part = match text.strip_suffix('%') {
        Some(percent) => number(percent.trim_end())? / 100.0,
        None => number(text)?,
    };
    (part <= 1.0).then_some(part)
}

/// Whether a number has no unit.
pub fn is_bare(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_units() {
        let cases = [
            ("0", BYTES, Some(0)),
            ("4096", BYTES, Some(4096)),
            ("4096B", BYTES, Some(4096)),
            ("2 MiB", BYTES, Some(2 << 20)),
            ("1.5GiB", BYTES, Some(3 << 29)),
            ("1GB", BYTES, Some(1_000_000_000)),
            ("20M", BYTES, Some(20 << 20)),
            ("1.5g", BYTES, Some(3 << 29)),
            ("8x", BYTES, None),
            ("1.5", BYTES, None),
            ("-1", BYTES, None),
            ("", BYTES, None),
            ("GiB", BYTES, None),
            ("1e9", BYTES, None),
            ("99999999999TiB", BYTES, None),
            ("10k", COUNTS, Some(10_000)),
            ("0.5M", COUNTS, Some(500_000)),
            ("3ms", TIMES, Some(3_000_000)),
            ("10", TIMES, None),
            ("3", TIMES, None),
            ("1.5min", TIMES, Some(90_000_000_000)),
            ("2m", TIMES, Some(120_000_000_000)),
            ("1 h", TIMES, Some(3_600_000_000_000)),
        ];
        for (text, suffixes, want) in cases {
            assert_eq!(whole(text, suffixes), want, "{text:?}");
        }
        assert_eq!(nanoseconds("0"), Some(0));
        assert_eq!(nanoseconds("10"), None, "a unit is missing");
        assert_eq!(seconds("10"), Some(10.0));
        assert_eq!(seconds("10ms"), Some(0.01));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("inf"), None);
        assert_eq!(part("5 %"), Some(0.05));
        assert_eq!(part("1.01"), None);
        assert_eq!(part("-0.1"), None);
    }

    proptest::proptest! {
        #[test]
        fn written_numbers_read_back(n in 0u64..1 << 40) {
            proptest::prop_assert_eq!(whole(&n.to_string(), BYTES), Some(n));
            proptest::prop_assert_eq!(whole(&format!("{n}KiB"), BYTES), n.checked_mul(1024));
        }
    }
}
