//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the same placement for
//! the same seed on every machine.

use crate::frames::Frames;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A number in `0..n` (`n > 0`); the bias is below `n / 2^64`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

/// A choice among equals: by chance, or always the first for the seed 0.
#[derive(Clone, Debug)]
pub struct Ties(Option<Rng>);

impl Ties {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Ties {
        Ties((seed != 0).then(|| Rng::new(seed)))
    }

    /// A frame of one of the coldest bins of `node`.
    #[inline]
    pub fn take(&mut self, frames: &mut Frames, node: usize) -> Option<u32> {
        match &mut self.0 {
            Some(rng) => frames.take_coldest(node, |n| rng.below(n)),
            None => frames.take_from(node),
        }
    }
}
