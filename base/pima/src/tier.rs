//! Kinds of memory, by speed.

/// A kind of memory, by its number in the plan. 0 is the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tier(pub u8);

impl Tier {
    /// The small, fast memory: DRAM.
    pub const FAST: Tier = Tier(0);
    /// The large, slow memory.
    pub const SLOW: Tier = Tier(1);
}

/// Kinds of memory that a plan may use at most.
pub const MAX_TIERS: u8 = 4;
