//! Two groups among times: many that are short, and some that take clearly longer.

/// The two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// Middle of the short ones.
    pub fast: f64,
    /// Middle of the long ones.
    pub slow: f64,
    /// Between them: longer is long.
    pub limit: f64,
}

/// The long ones are at least so many.
const LEAST: usize = 8;
/// Groups are apart by so many times the spread of the short ones.
const APART: f64 = 5.0;
/// A group is at least as wide as this part of the middle.
const WIDTH: f64 = 0.02;

/// Finds them, or says the median. Times that are scattered beyond the short ones are no group, and neither is a tail that becomes
/// thinner and thinner.
pub fn modes(times: &[f64]) -> Result<Modes, f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    if sorted.is_empty() {
        return Err(0.0);
    }
    // With two banks half of all times are long: only the shortest quarter is sure to be short.
    let quarter = at(0.25);
    let spread = (quarter - at(0.05)).max(WIDTH * quarter / 2.0);
    let begin = quarter + APART * spread;
    let tail = &sorted[sorted.partition_point(|time| *time <= begin)..];
    let width = APART * spread;
    let count = |from: f64, to: f64| {
        let below = |limit: f64| sorted.partition_point(|time| *time < limit);
        below(to).saturating_sub(below(from))
    };
    let densest = tail
        .iter()
        .max_by_key(|time| (count(**time, **time + width), -(**time) as i64));
    let Some(&from) = densest else {
        return Err(at(0.5));
    };
    let within: Vec<f64> = tail
        .iter()
        .copied()
        .filter(|time| (from..from + width).contains(time))
        .collect();
    let slow = within[within.len() / 2];
    let short = sorted.partition_point(|time| *time < (quarter + slow) / 2.0);
    let fast = sorted[short / 2];
    let limit = (fast + slow) / 2.0;
    // What is scattered has as many in each part of the tail.
    let others = (tail.len() - within.len()) as f64;
    let range = (tail[tail.len() - 1] - begin).max(width);
    let expected = others * width / range;
    let between = count(limit - width / 4.0, limit + width / 4.0);
    let is_group = within.len() >= LEAST
        && within.len() as f64 > 3.0 * expected
        && between * 6 <= within.len();
    match is_group {
        true => Ok(Modes { fast, slow, limit }),
        false => Err(at(0.5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(middle: f64, spread: f64, n: usize) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| middle + spread * ((i % 21) as f64 - 10.0) / 10.0)
    }

    #[test]
    fn few_that_take_longer_are_a_group_and_scattered_ones_are_not() {
        let mut times: Vec<f64> = around(300.0, 10.0, 2000).collect();
        assert_eq!(modes(&times), Err(300.0));
        times.extend((0..60).map(|i| 400.0 + 50.0 * f64::from(i)));
        assert!(modes(&times).is_err(), "an interrupt now and then");
        times.extend(around(390.0, 10.0, 40));
        let found = modes(&times).unwrap();
        assert!((380.0..405.0).contains(&found.slow), "{found:?}");
        assert!((330.0..360.0).contains(&found.limit), "{found:?}");
    }

    #[test]
    fn a_tail_that_becomes_thinner_is_no_group() {
        let tail = (1..4000).map(|i| 300.0 + 30.0 * (4000.0 / f64::from(i)).ln());
        assert!(modes(&tail.collect::<Vec<_>>()).is_err());
        assert_eq!(modes(&[]), Err(0.0));
        assert_eq!(modes(&[5.0; 100]), Err(5.0));
    }
}
