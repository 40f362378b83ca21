//! The chooser: which of the candidate frames to keep. Pure, no I/O.
//!
//! Keeping a page raises the load of its bin by one, so the r-th candidate kept in a bin lands on level
//! `load + r`. Ordering all candidates by that level and keeping the lowest is the same as asking again and
//! again for the bin with the fewest pages (the static policy of Johnny Cache, OSDI 2023, section 4.2), in
//! linear time. It is the best choice for every convex cost of a load at once.

/// The bin of a candidate that must not be kept (not in memory, or not of the wanted size).
pub const NO_BIN: u32 = u32::MAX;

/// The frames to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// One flag per candidate, in their order.
    pub keep: Vec<bool>,
    /// Number of flags set: the wanted number, or fewer when there are not enough usable candidates.
    pub kept: usize,
    /// Load of the fullest bin among those that received a page, counting the pages kept; 0 when none was.
    pub fullest: u32,
    /// Sum over the kept pages of the load that each found in its bin: the number of pairs that share a bin.
    pub cost: u64,
}

/// Keeps `wanted` of the candidates so that their bins end up as evenly and as little loaded as possible.
///
/// `bins[i]` is the bin of candidate `i`, below `sets`, or [`NO_BIN`]; `load(bin)` is the number of pages that
/// the bin already holds. Among candidates that are equally good the earlier one stays.
pub fn choose(bins: &[u32], wanted: usize, sets: u32, load: impl Fn(u32) -> u32) -> Choice {
    // Zeroed memory that is never touched costs nothing, so a large cache with few candidates stays cheap.
    let mut rank = vec![0u32; sets as usize];
    let mut level = vec![u32::MAX; bins.len()];
    let mut at_level: Vec<usize> = Vec::new();
    for (i, &bin) in bins.iter().enumerate() {
        if bin == NO_BIN {
            continue;
        }
        let l = load(bin) + rank[bin as usize];
        rank[bin as usize] += 1;
        level[i] = l;
        if at_level.len() <= l as usize {
            at_level.resize(l as usize + 1, 0);
        }
        at_level[l as usize] += 1;
    }

    // Whole levels below `last` are kept, and `room` pages of level `last`.
    let mut room = wanted;
    let mut last = 0u32;
    while (last as usize) < at_level.len() && at_level[last as usize] <= room {
        room -= at_level[last as usize];
        last += 1;
    }

    let mut choice = Choice {
        keep: vec![false; bins.len()],
        kept: 0,
        fullest: 0,
        cost: 0,
    };
    for (i, &l) in level.iter().enumerate() {
        if l == u32::MAX || l > last {
            continue;
        }
        if l == last {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        choice.keep[i] = true;
        choice.kept += 1;
        choice.fullest = choice.fullest.max(l + 1);
        choice.cost += u64::from(l);
    }
    choice
}
