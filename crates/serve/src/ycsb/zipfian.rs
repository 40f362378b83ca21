//! Numbers by popularity, as the generators of YCSB draw them (Gray et al., "Quickly generating billion-record synthetic databases").

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// How much more popular a number is than the next.
const THETA: f64 = 0.99;
/// Numbers that scrambled ones are drawn from, whatever the number of records.
const SCRAMBLED: u64 = 10_000_000_000;
/// The sum of `1 / i^THETA` over them.
const SCRAMBLED_ZETA: f64 = 26.46902820178302;

/// A number from 0 to below 1.
pub fn real(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Small numbers are the popular ones.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
}

fn zeta(from: u64, to: u64) -> f64 {
    (from..to).map(|i| ((i + 1) as f64).powf(-THETA)).sum()
}

impl Zipfian {
    /// Numbers below `items`.
    pub fn new(items: u64) -> Zipfian {
        Zipfian {
            items,
            zeta: zeta(0, items),
        }
    }

    /// A number below `items`, which may be more than at the last time.
    pub fn next(&mut self, items: u64, rng: &mut ChaCha8Rng) -> u64 {
        if items > self.items {
            self.zeta += zeta(self.items, items);
            self.items = items;
        }
        self.at(real(rng))
    }

    fn at(&self, u: f64) -> u64 {
        let n = self.items as f64;
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let eta = (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - zeta(0, 2) / self.zeta);
        let at = (n * (eta * u - eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64;
        at.min(self.items - 1)
    }
}

/// The popular numbers are anywhere.
#[derive(Clone, Debug)]
pub struct Scrambled {
    zipfian: Zipfian,
    items: u64,
}

impl Scrambled {
    /// Numbers below `items`.
    pub fn new(items: u64) -> Scrambled {
        let zipfian = Zipfian {
            items: SCRAMBLED,
            zeta: SCRAMBLED_ZETA,
        };
        Scrambled { zipfian, items }
    }

    /// A number.
    pub fn next(&self, rng: &mut ChaCha8Rng) -> u64 {
        fnv(self.zipfian.at(real(rng))) % self.items
    }
}

/// YCSB's hash of a number: Fowler, Noll and Vo's over its bytes, made positive.
pub fn fnv(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf29ce484222325u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
        });
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn numbers_come_as_often_as_their_rank_says() {
        const ITEMS: u64 = 1000;
        const DRAWS: u64 = 2_000_000;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut zipfian = Zipfian::new(ITEMS);
        let mut counts = vec![0u64; ITEMS as usize];
        for _ in 0..DRAWS {
            counts[zipfian.next(ITEMS, &mut rng) as usize] += 1;
        }
        let zeta = zeta(0, ITEMS);
        // The first two are drawn exactly; the formula for the others is an approximation.
        for (rank, within) in [(0, 0.01), (1, 0.01)] {
            let expected = DRAWS as f64 / ((rank + 1) as f64).powf(THETA) / zeta;
            let found = counts[rank as usize] as f64;
            assert!(
                (found / expected - 1.0).abs() < within,
                "rank {rank}: {found}, expected {expected}"
            );
        }
        for (from, to) in [(2, 10), (10, 100), (100, 1000)] {
            let expected: f64 = (from..to)
                .map(|r: u64| DRAWS as f64 / ((r + 1) as f64).powf(THETA) / zeta)
                .sum();
            let found: u64 = counts[from as usize..to as usize].iter().sum();
            let ratio = found as f64 / expected;
            assert!(
                (ratio - 1.0).abs() < 0.1,
                "ranks {from} to {to}: {ratio} of what is expected"
            );
        }
    }

    #[test]
    fn growing_numbers_are_as_those_of_the_greater_number() {
        let mut grown = Zipfian::new(100);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        grown.next(1000, &mut rng);
        let whole = Zipfian::new(1000);
        assert!((grown.zeta - whole.zeta).abs() < 1e-9);
    }

    #[test]
    fn the_sum_for_scrambled_numbers_is_the_sum() {
        // Too many to add up here: the first million, and the integral of the rest.
        let first = zeta(0, 1_000_000);
        let integral = |x: f64| x.powf(1.0 - THETA) / (1.0 - THETA);
        let rest = integral(SCRAMBLED as f64 + 0.5) - integral(1_000_000.5);
        assert!((first + rest - SCRAMBLED_ZETA).abs() < 1e-6);
    }
}
