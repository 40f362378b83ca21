//! The file by which a site map reaches the shim, which includes this module too: words of 64 bits, mapped and read in
//! place.
//!
//! ```text
//! word  0       MAGIC
//!       1       bytes of fast memory for objects
//!       2       tier of what no site decides
//!       3..7    numbers of modules, nodes, groups, statics
//!       8..24   the fast nodes, as a set; 24..40 the slow ones
//!       40      modules:  name (first byte, bytes), build id (first byte, bytes)
//!       ...     nodes:    parent + 1 (0: innermost), module, address, decided + 1, ends + 1, rule
//!       ...     groups:   tier, bytes promised; the worthiest first
//!       ...     statics:  module, address, bytes, tier
//!       ...     bytes of names and build ids
//! ```
//!
//! A *node* is a return address, seen from its callees. A *group* is all the sites that need not be told apart.

/// First word of the file: format 1.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VARVOBJ1");

/// Fast memory.
pub const FAST: u64 = 0;
/// Slow memory.
pub const SLOW: u64 = 1;
/// Wherever the kernel puts it.
pub const ANYWHERE: u64 = 2;

/// Words of the sets of nodes: 1024 nodes.
pub const MASK_WORDS: usize = 16;
/// Where the words of each part are.
pub const COUNTS: usize = 3;
/// The fast nodes.
pub const FAST_NODES: usize = 8;
/// The slow nodes.
pub const SLOW_NODES: usize = FAST_NODES + MASK_WORDS;
/// The first module.
pub const MODULES: usize = SLOW_NODES + MASK_WORDS;
/// Words of a module, a node, a group, a static variable.
pub const WORDS: [usize; 4] = [4, 6, 2, 4];

/// Groups that no site has, behind those of sites: what no site decides; what a program asked for in fast memory; in slow.
pub const OWN_GROUPS: usize = 3;
/// An object's group has 16 bits in the shim's tables, 0 being none, and the last one a mark.
pub const MOST_GROUPS: usize = u16::MAX as usize - 1 - OWN_GROUPS;

/// How to get from a return address to the caller's: what the compiler wrote down for unwinding, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The frame ends at the frame pointer plus `above`; otherwise at the stack pointer plus `above`.
    pub by_frame_pointer: bool,
    /// Bytes, positive.
    pub above: i32,
    /// Where the caller's frame pointer was put: bytes from the frame's end, negative. `None`: it is where it was.
    pub frame_pointer_at: Option<i16>,
}

impl Rule {
    /// As a word, which is never 0.
    pub fn packed(self) -> u64 {
        let saved = self.frame_pointer_at.map_or(0, |at| at as u16);
        1 | u64::from(self.by_frame_pointer) << 1
            | u64::from(self.frame_pointer_at.is_some()) << 2
            | u64::from(saved) << 16
            | u64::from(self.above as u32) << 32
    }

    /// From a word; 0 is no rule.
    #[inline]
    pub fn unpacked(word: u64) -> Option<Rule> {
        (word & 1 != 0).then_some(Rule {
            by_frame_pointer: word & 2 != 0,
            above: (word >> 32) as u32 as i32,
            frame_pointer_at: (word & 4 != 0).then_some((word >> 16) as u16 as i16),
        })
    }
}
