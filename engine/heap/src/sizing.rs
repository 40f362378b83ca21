//! How large the nursery is, and when everything is collected. Pure arithmetic over the results of collections.

use crate::align::ObjectAlign;
use crate::config::{Config, MIN_NURSERY, NurserySize};
use crate::tuning::Tuning;
use varve_pima::Tier;

/// Of a heap's maximum, one part in this many must be free after a full collection. Less would be spent collecting.
const MIN_FREE: u64 = 50;
/// A larger nursery in fast memory pays if so much less of what is allocated survives. On the model a byte that a nursery outside of
/// the caches gives costs 0.2 ns (`kv 150000 --records 50000`, 32 instances on `cxl-spr`: 153 ms with 1 MiB, 174 ms with up to 16, and
/// as many survivors), and one that is copied 0.5 ns (`graph pagerank --scale 14`, 4 instances on `optane-6242`). What is copied is
/// also scattered, which is not measured. With 0.1 `graph` comes to 16 MiB and takes 172 ms (191 with 1 MiB), and `kv` 152 ms.
const PAYS_FAST: f64 = 0.1;
/// In slow memory. It has about a quarter of the bandwidth: that it is four times as much is thought.
const PAYS_SLOW: f64 = 0.4;

/// A nursery that grows doubles when more than one part in this many of it survived.
const MUCH_SURVIVED: u64 = 6;

/// The nursery that is wanted.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    /// It doubles when more than one part in [`MUCH_SURVIVED`] of it survived.
    Grows { size: u64, most: u64 },
    /// As large as pays.
    Pays(Tuning),
}

/// Sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizing {
    max: u64,
    initial: u64,
    growth: f64,
    align: ObjectAlign,
    /// The nursery that is wanted, room permitting.
    nursery: Wanted,
    /// Survivors above this are a reason for a full collection.
    threshold: u64,
    /// There is the smallest nursery, even without room for it.
    lent: bool,
    /// The bytes in use when a full heap first lent memory, until a full collection finds room again.
    lent_at: Option<u64>,
}

impl Sizing {
    /// The nursery is in memory of `tier`.
    pub fn new(config: &Config, tier: Tier) -> Sizing {
        let pays = match tier {
            Tier::FAST => PAYS_FAST,
            _ => PAYS_SLOW,
        };
        let mut sizing = Sizing {
            max: config.max,
            initial: config.initial,
            growth: config.growth,
            align: config.align,
            nursery: match config.sized {
                NurserySize::Pays => {
                    Wanted::Pays(Tuning::new(config.nursery, config.nursery_max, pays))
                }
                NurserySize::Given | NurserySize::Fits => Wanted::Grows {
                    size: config.nursery,
                    most: config.nursery_max,
                },
            },
            threshold: 0,
            lent: false,
            lent_at: None,
        };
        sizing.after_full(0);
        sizing
    }

    /// A nursery of `size` bytes was full and `promoted` of them survived.
    pub fn after_nursery(&mut self, size: u64, promoted: u64) {
        match &mut self.nursery {
            Wanted::Pays(tuning) => tuning.after(size, promoted),
            Wanted::Grows { size: wanted, most } => {
                if size >= *wanted && promoted > size / MUCH_SURVIVED {
                    *wanted = (2 * *wanted).min(*most);
                }
            }
        }
    }

    /// A full collection left `used` bytes in use.
    pub fn after_full(&mut self, used: u64) {
        if !self.is_full(used) {
            self.lent_at = None;
        }
        let grown = ((used as f64 * self.growth) as u64).max(self.initial);
        // Two nurseries of a quarter of the free room fit between this and the maximum, and two more before the
        // next full collection.
        self.threshold = grown.min(self.max.saturating_sub(2 * self.nursery(used)));
    }

    /// Bytes of the next nursery while `used` are in use elsewhere: at least as much again is left for its
    /// survivors. 0 is no nursery.
    pub fn nursery(&self, used: u64) -> u64 {
        if self.lends(used) {
            return MIN_NURSERY;
        }
        let free = self.free(used);
        if free < 2 * MIN_NURSERY {
            return 0;
        }
        let wanted = match &self.nursery {
            Wanted::Pays(tuning) => tuning.size(),
            Wanted::Grows { size, .. } => *size,
        };
        let wanted = wanted.min((free / 4).max(MIN_NURSERY));
        self.align.round_down(wanted)
    }

    /// Whether a full collection is due.
    pub fn full_is_due(&self, used: u64) -> bool {
        used > self.threshold
    }

    /// Whether a full collection that left `used` bytes was in vain.
    pub fn is_exhausted(&self, used: u64) -> bool {
        !self.lends(used) && self.is_full(used)
    }

    /// Reserves the smallest nursery from now on whatever is in use, or ends that. Its survivors must not add up: returns false once they take as
    /// much as was lent, and no full collection found room meanwhile. With an observer space, more than the maximum may have been in use before.
    pub fn lend(&mut self, open: bool, used: u64) -> bool {
        self.lent = open;
        if open && self.is_full(used) {
            self.lent_at.get_or_insert(used);
        }
        self.lends(used) == open
    }

    /// Whether memory is lent while `used` bytes are in use.
    pub fn lends(&self, used: u64) -> bool {
        self.lent && self.lent_at.is_none_or(|at| used <= at + MIN_NURSERY)
    }

    fn is_full(&self, used: u64) -> bool {
        self.free(used) < (self.max / MIN_FREE).max(2 * MIN_NURSERY)
    }

    /// Whether `bytes` more leave room for a nursery.
    pub fn has_room(&self, used: u64, bytes: u64) -> bool {
        used.checked_add(bytes)
            .is_some_and(|used| !self.is_exhausted(used))
    }

    /// Bytes of survivors above which a full collection comes.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// All of the heap.
    pub fn max(&self) -> u64 {
        self.max
    }

    fn free(&self, used: u64) -> u64 {
        self.max.saturating_sub(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizing(max: u64, nursery: u64) -> Sizing {
        Sizing::new(
            &Config {
                max,
                nursery,
                nursery_max: 4 * nursery,
                initial: 8 << 20,
                growth: 2.0,
                ..Config::default()
            },
            Tier::FAST,
        )
    }

    #[test]
    fn the_next_full_collection_follows_what_is_live() {
        let mut sizing = sizing(1 << 30, 1 << 20);
        assert_eq!(sizing.threshold(), 8 << 20);
        sizing.after_full(100 << 20);
        assert_eq!(sizing.threshold(), 200 << 20);
        assert!(!sizing.full_is_due(200 << 20) && sizing.full_is_due((200 << 20) + 1));
        sizing.after_full(1 << 20);
        assert_eq!(sizing.threshold(), 8 << 20);
    }

    #[test]
    fn a_nursery_grows_while_much_survives_and_shrinks_with_the_room() {
        let mut sizing = sizing(64 << 20, 1 << 20);
        sizing.after_nursery(1 << 20, 1 << 16);
        assert_eq!(sizing.nursery(0), 1 << 20);
        for expected in [2, 4, 4] {
            sizing.after_nursery(sizing.nursery(0), 1 << 20);
            assert_eq!(sizing.nursery(0), expected << 20);
        }
        assert_eq!(sizing.nursery(60 << 20), 1 << 20);
    }

    #[test]
    fn a_full_heap_lends_the_smallest_nursery_but_not_for_ever() {
        let max = 8 << 20;
        let mut sizing = sizing(max, 1 << 20);
        assert_eq!((sizing.nursery(max), sizing.is_exhausted(max)), (0, true));
        assert!(sizing.lend(true, max));
        assert_eq!(sizing.nursery(max), MIN_NURSERY);
        assert!(!sizing.is_exhausted(max));
        assert!(sizing.lend(false, max) && sizing.is_exhausted(max));
        assert!(!sizing.lend(true, max + MIN_NURSERY + 1));
        assert!(sizing.is_exhausted(max + MIN_NURSERY + 1));
        // Nor once more while it stays full.
        sizing.after_full(max);
        assert!(!sizing.lend(true, max + MIN_NURSERY + 1));
        sizing.after_full(max / 2);
        assert!(sizing.lend(true, max + MIN_NURSERY + 1));
    }

    /// Whatever survives between two full collections, a collection always has room for a whole nursery.
    #[test]
    fn survivors_always_fit() {
        for max in [1 << 20, 3 << 20, 10 << 20, 100 << 20] {
            for live in (0..100).map(|percent| max / 100 * percent) {
                let mut sizing = sizing(max, 1 << 20);
                sizing.after_full(live);
                let mut used = live;
                while !sizing.is_exhausted(used) && !sizing.full_is_due(used) {
                    let nursery = sizing.nursery(used);
                    assert!(
                        nursery >= MIN_NURSERY && used + 2 * nursery <= max,
                        "{max} {live} {used}"
                    );
                    used += nursery;
                }
                assert!(
                    used > live || sizing.is_exhausted(live),
                    "{max} {live}: a full collection right after another"
                );
            }
        }
    }
}
