//! Numbers, times and sizes as damo writes them, for people and for machines.

/// `94,827,419,009,024`, `-1`, `2.5`.
pub(super) fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().replace(',', "").parse().ok()?;
    number.is_finite().then_some(number)
}

/// The same without loss: addresses.
pub(super) fn address(text: &str) -> Option<u64> {
    text.trim().replace(',', "").parse().ok()
}

/// `25 %`, `25%` or `25`, as a share.
pub(super) fn percent(text: &str) -> Option<f64> {
    Some(number(text.trim().trim_end_matches('%'))? / 100.0)
}

/// `8 m 59.809 s`, `100 ms`, `-5 us`, in nanoseconds. A number alone is of `plain` nanoseconds.
pub(super) fn nanoseconds(text: &str, plain: f64) -> Option<f64> {
    if let Some(number) = number(text) {
        return Some(number * plain);
    }
    let (sign, text) = match text.trim().strip_prefix('-') {
        Some(text) => (-1.0, text),
        None => (1.0, text),
    };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() {
        return None;
    }
    let mut all = 0.0;
    for pair in words.chunks(2) {
        let [count, unit] = pair else { return None };
        all += number(count)? * nanoseconds_of(unit)?;
    }
    Some(sign * all)
}

fn nanoseconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "d" => 86400e9,
        _ => return None,
    })
}

/// `4.000 KiB`, `512 B`, or bytes alone.
pub(super) fn is_size(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let count = words.next().and_then(number);
    let unit = words.next().unwrap_or("B");
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    text.trim() == "max" || count.is_some() && units.contains(&unit) && words.next().is_none()
}

/// `-1`, `12`, `1 s 200 ms`, `None`: for how long a part was as it is.
pub(super) fn is_age(text: &str) -> bool {
    text.trim() == "None" || nanoseconds(text, 1.0).is_some()
}
