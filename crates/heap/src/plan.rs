//! A plan says which memory an object is in, when it is born and whenever it survives. Spaces, tracing and copying
//! are not its business.

use crate::header::Header;

/// A kind of memory, by its number in the plan. 0 is the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tier(pub u8);

/// Kinds of memory that a plan may use at most.
pub const MAX_TIERS: u8 = 4;

/// Where an object is when a collection asks what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// In the nursery: it survived for the first time.
    Nursery,
    /// In the mark-region space of a tier, in a block that is being evacuated.
    Mature(Tier),
}

/// Chooses memory for objects. The heap keeps one mark-region space and one large-object space per tier.
///
/// A collection asks from several threads at once, once for each object that it copies: answers must be quick, and
/// depend on nothing but what is asked and what the plan held when the collection began.
pub trait Plan: Send + Sync {
    /// The name that reports show.
    fn name(&self) -> &str;

    /// How many kinds of memory there are, 1 to [`MAX_TIERS`].
    fn tiers(&self) -> u8;

    /// The memory of the nursery.
    fn nursery(&self) -> Tier;

    /// The memory for an object that is too large for the nursery.
    fn birth(&self, header: Header, bytes: u64) -> Tier;

    /// The memory for an object that is about to be copied.
    fn survival(&self, header: Header, bytes: u64, from: From) -> Tier;
}

/// Everything in one memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dram;

impl Plan for Dram {
    fn name(&self) -> &str {
        "dram"
    }

    fn tiers(&self) -> u8 {
        1
    }

    fn nursery(&self) -> Tier {
        Tier(0)
    }

    #[inline(always)]
    fn birth(&self, _: Header, _: u64) -> Tier {
        Tier(0)
    }

    #[inline(always)]
    fn survival(&self, _: Header, _: u64, _: From) -> Tier {
        Tier(0)
    }
}
