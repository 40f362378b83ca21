//! Random numbers for all crates: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
//! 2014).
//!
//! Two multiplications per number, the same on every machine and for ever, and usable by index, so that a test can
//! replay any part of a run. Not for secrets.

/// The increment of SplitMix64's state for each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A well-mixed 64-bit function of `value` (the finalizer of SplitMix64): a bijection.
#[inline(always)]
pub fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The next number of xorshift64 (Marsaglia, "Xorshift RNGs", 2003): three shifts, for places where each nanosecond
/// counts and any order will do. `state` is the number before and never 0.
#[inline(always)]
pub fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A stream of random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rng(u64);

impl Rng {
    /// The stream number `stream` (a thread, a table) of `seed`.
    pub fn new(seed: u64, stream: u64) -> Rng {
        Rng(mix(seed ^ mix(stream.wrapping_add(STEP))))
    }

    /// The stream that goes on from `state`, as the published generator does.
    pub fn from_state(state: u64) -> Rng {
        Rng(state)
    }

    /// The next 64 random bits.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `0..n` (`n > 0`); the bias is below `n / 2^64`.
    #[inline(always)]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `low..=high`.
    #[inline(always)]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A pseudo-random bijection of `0..n`, computed, not stored: for arrays at full size whose elements lie in random
/// order.
///
/// A Feistel network of four rounds: an index is a high and a low part of about as many values each, and each is
/// changed in turn by a hash of the other, the low one by exclusive or, the high one by addition modulo its range. Few
/// numbers beyond `n` arise (the last incomplete row); they are sent through again until they fall inside.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    low_bits: u32,
    /// Values of the high part.
    rows: u64,
    mask: u64,
    keys: [u64; 4],
}

impl Permutation {
    /// The bijection of `0..n` that belongs to `seed`; `n` is 1 to 2^63.
    pub fn new(n: u64, seed: u64) -> Permutation {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        let mut rng = Rng::new(seed, n);
        Permutation {
            n,
            low_bits,
            rows: n.div_ceil(1 << low_bits),
            mask: (1 << low_bits) - 1,
            keys: [rng.bits(), rng.bits(), rng.bits(), rng.bits()],
        }
    }

    /// Where `index` (below `n`) goes.
    #[inline(always)]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.n);
        let mut x = index;
        loop {
            let (mut high, mut low) = (x >> self.low_bits, x & self.mask);
            low ^= hash(high, self.keys[0]) & self.mask;
            high = self.shifted(high, hash(low, self.keys[1]));
            low ^= hash(high, self.keys[2]) & self.mask;
            high = self.shifted(high, hash(low, self.keys[3]));
            x = high << self.low_bits | low;
            if x < self.n {
                return x;
            }
        }
    }

    #[inline(always)]
    fn shifted(&self, high: u64, hash: u64) -> u64 {
        let sum = high + ((hash * self.rows) >> 32);
        if sum >= self.rows {
            sum - self.rows
        } else {
            sum
        }
    }
}

/// 32 bits that depend on all of `value` (below 2^32) and `key`.
#[inline(always)]
fn hash(value: u64, key: u64) -> u64 {
    (value ^ key).wrapping_mul(STEP) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_published_generator() {
        // Reference outputs for state 0, as printed by the generator's authors' C code.
        let mut rng = Rng::from_state(0);
        assert_eq!(rng.bits(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.bits(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn numbers_below_n_are_even() {
        let mut rng = Rng::new(7, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (9_500..10_500).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn streams_differ() {
        assert_ne!(Rng::new(1, 0).bits(), Rng::new(1, 1).bits());
        assert_ne!(Rng::new(1, 0).bits(), Rng::new(2, 0).bits());
    }

    #[test]
    fn a_permutation_hits_every_value_once() {
        for n in [1, 2, 3, 5, 17, 64, 65, 255, 1000, 4097, 70_001] {
            let permutation = Permutation::new(n, 3);
            let mut images: Vec<u64> = (0..n).map(|index| permutation.at(index)).collect();
            images.sort_unstable();
            assert_eq!(images, (0..n).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_permutation_scatters_as_chance_would() {
        // The first tenth of the indices over lines of eight: with independent draws a line holds none with
        // probability 0.9^8 = 0.430, one with 8 * 0.1 * 0.9^7 = 0.383.
        let n = 3 << 18;
        for seed in 0..4 {
            let permutation = Permutation::new(n, seed);
            let mut lines = vec![0u8; n as usize / 8];
            for index in 0..n / 10 {
                lines[permutation.at(index) as usize / 8] += 1;
            }
            let share = |count| {
                let lines_with = lines.iter().filter(|&&hot| hot == count).count();
                lines_with as f64 / lines.len() as f64
            };
            assert!((share(0) - 0.430).abs() < 0.01, "seed {seed}: {}", share(0));
            assert!((share(1) - 0.383).abs() < 0.01, "seed {seed}: {}", share(1));
        }
    }
}
