//! The coldest bin among equals.

use crate::frames::Frames;
use varve_access::random::Rng;

/// A choice among equals: by chance, or always the first for the seed 0.
#[derive(Clone, Debug)]
pub struct Ties(Option<Rng>);

impl Ties {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Ties {
        Ties((seed != 0).then(|| Rng::from_state(seed)))
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
