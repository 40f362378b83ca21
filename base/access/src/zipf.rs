//! Zipf-distributed numbers in constant time.
//!
//! The method of Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), which YCSB uses.
//! Ranks 0 and 1 are drawn exactly, the others approximately.

use crate::random::Rng;

/// Draws from `0..n`, rank 0 the most likely: rank r with a weight of `1 / (r + 1)^theta`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    alpha: f64,
    zeta_n: f64,
    eta: f64,
    /// Below this (times `zeta_n`) the draw is rank 1.
    second: f64,
}

impl Zipf {
    /// Ranks `0..n` (`n > 0`) with skew `theta`, at least 0 (even) and below 1.
    pub fn new(n: u64, theta: f64) -> Zipf {
        Zipf::with(n, theta, zeta(n, theta))
    }

    /// Makes them `n` ranks, if that is more than now; costs a term for each new one.
    pub fn grow(&mut self, n: u64) {
        if n > self.n {
            let more: f64 = (self.n + 1..=n).map(|i| (i as f64).powf(-self.theta)).sum();
            *self = Zipf::with(n, self.theta, self.zeta_n + more);
        }
    }

    fn with(n: u64, theta: f64, zeta_n: f64) -> Zipf {
        let two = zeta(2, theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - two / zeta_n);
        Zipf {
            n,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_n,
            eta,
            second: two,
        }
    }

    /// The next rank.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        if self.theta == 0.0 {
            return (u * self.n as f64) as u64;
        }
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return 1.min(self.n - 1);
        }
        let rank = self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.n - 1)
    }
}

/// The sum of `1 / i^theta` for i from 1 to n: exact for the first ten thousand terms, the rest by the Euler-Maclaurin
/// formula to its first derivative term, whose error is far below the last bit of the sum.
fn zeta(n: u64, theta: f64) -> f64 {
    let exact = n.min(10_000);
    let head: f64 = (1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    if n == exact {
        return head;
    }
    let (a, b) = (exact as f64, n as f64);
    let integral = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (b.powf(-theta) - a.powf(-theta)) / 2.0;
    let slopes = theta * (a.powf(-theta - 1.0) - b.powf(-theta - 1.0)) / 12.0;
    head + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_is_the_sum_that_it_stands_for() {
        for theta in [0.5, 0.8, 0.99] {
            let sum: f64 = (1..=300_000u64).map(|i| (i as f64).powf(-theta)).sum();
            let fast = zeta(300_000, theta);
            assert!((fast / sum - 1.0).abs() < 1e-12, "{theta}: {fast} {sum}");
        }
        // YCSB's constant for ten thousand million items.
        assert!((zeta(10_000_000_000, 0.99) - 26.469_028_201_783_02).abs() < 1e-6);
    }

    #[test]
    fn ranks_come_as_often_as_their_weights_say() {
        let (n, draws) = (1000, 400_000);
        let zipf = Zipf::new(n, 0.99);
        let mut rng = Rng::new(1, 1);
        let mut counts = vec![0u64; n as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut rng) as usize] += 1;
        }
        let total = zeta(n, 0.99);
        let mut low = 0;
        // The method is exact for the first two ranks and up to a tenth too high for the few next ones.
        for high in [1u64, 2, 10, 100, 1000] {
            let want: f64 = (low + 1..=high)
                .map(|i| (i as f64).powf(-0.99))
                .sum::<f64>()
                / total;
            let got = counts[low as usize..high as usize].iter().sum::<u64>() as f64 / draws as f64;
            assert!(
                (got / want - 1.0).abs() < 0.09,
                "{low}..{high}: {got} {want}"
            );
            low = high;
        }
    }

    #[test]
    fn ranks_that_come_later_count_as_if_they_had_been_there() {
        let mut grown = Zipf::new(100, 0.99);
        grown.grow(1000);
        let whole = Zipf::new(1000, 0.99);
        assert!((grown.zeta_n - whole.zeta_n).abs() < 1e-9);
        let (mut one, mut other) = (Rng::new(3, 0), Rng::new(3, 0));
        assert!((0..10_000).all(|_| grown.draw(&mut one) == whole.draw(&mut other)));
        grown.grow(10);
        assert_eq!(grown.n, 1000);
    }

    #[test]
    fn no_skew_is_even_and_one_item_is_always_it() {
        let mut rng = Rng::new(1, 1);
        let even = Zipf::new(10, 0.0);
        let mean = (0..10_000).map(|_| even.draw(&mut rng)).sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 4.5).abs() < 0.1, "{mean}");
        let single = Zipf::new(1, 0.99);
        assert!((0..100).all(|_| single.draw(&mut rng) == 0));
    }
}
