//! Which nursery pays. Pure arithmetic over the results of collections.
//!
//! A larger nursery gives objects more time to die, which saves copies. But it leaves the caches: what is allocated there is fetched
//! from memory and written back, and it takes memory that old objects could have. So a size is tried for a few collections, and kept
//! if the part of it that survives shows that it pays: less by a given share of what is allocated, or, for a smaller one, not more.

/// Collections that a size is judged by, and one that is tried: a larger nursery is more to judge by.
const LOOKS: u32 = 4;
const LOOKS_AT_TRIAL: u32 = 2;
/// A size that is tried is this many times as large, or as small.
const STEP: u64 = 4;
/// Collections after the first trial that changed nothing until the next one, so that trials are an eighth of what is allocated. It
/// doubles with each such trial.
const WAIT: u32 = 64;
const LONGEST_WAIT: u32 = 1024;

/// What survives of some nurseries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Survival {
    collections: u32,
    bytes: u64,
    survived: u64,
}

impl Survival {
    fn share(self) -> f64 {
        self.survived as f64 / self.bytes.max(1) as f64
    }
}

/// A size that is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// The size before.
    from: u64,
    /// The share that survived there.
    share: f64,
}

/// See the module. Sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuning {
    least: u64,
    most: u64,
    /// A larger nursery pays if so much less of what is allocated survives, 0 to 1.
    pays: f64,
    size: u64,
    now: Survival,
    trial: Option<Trial>,
    /// The next trial is of a larger size, if there is a choice.
    up: bool,
    /// Collections until it.
    left: u32,
    wait: u32,
}

impl Tuning {
    /// A nursery that begins with `least` bytes and may take `most`.
    pub fn new(least: u64, most: u64, pays: f64) -> Tuning {
        Tuning {
            least,
            most,
            pays,
            size: least,
            now: Survival::default(),
            trial: None,
            up: true,
            left: 0,
            wait: WAIT,
        }
    }

    /// The size that is wanted.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A nursery of `size` bytes was full and `survived` of them survived.
    pub fn after(&mut self, size: u64, survived: u64) {
        // One that had no room to be as large says nothing.
        if size < self.size {
            return;
        }
        self.now.collections += 1;
        self.now.bytes += size;
        self.now.survived += survived;
        self.left = self.left.saturating_sub(1);
        let looks = match self.trial {
            Some(_) => LOOKS_AT_TRIAL,
            None => LOOKS,
        };
        if self.now.collections < looks {
            return;
        }
        let share = std::mem::take(&mut self.now).share();
        match self.trial.take() {
            Some(trial) => self.judge(trial, share),
            None if self.left == 0 => self.attempt(share),
            None => {}
        }
    }

    fn judge(&mut self, trial: Trial, share: f64) {
        let kept = match self.size > trial.from {
            true => trial.share - share >= self.pays,
            false => share - trial.share < self.pays,
        };
        if kept {
            self.wait = WAIT;
            self.attempt(share);
        } else {
            self.size = trial.from;
            self.up = !self.up;
            self.settle();
        }
    }

    /// Tries another size where `share` of this one survives.
    fn attempt(&mut self, share: f64) {
        // No larger size can save more than all that survives.
        let larger = (self.size * STEP).min(self.most);
        let may_grow = larger > self.size && share >= self.pays;
        let smaller = (self.size / STEP).max(self.least);
        let may_shrink = smaller < self.size;
        let size = match (may_grow, may_shrink) {
            (true, true) if self.up => larger,
            (true, false) => larger,
            (_, true) => smaller,
            (false, false) => return self.settle(),
        };
        self.up = size > self.size;
        self.trial = Some(Trial {
            from: self.size,
            share,
        });
        self.size = size;
    }

    /// The size stays for a while.
    fn settle(&mut self) {
        self.left = self.wait;
        self.wait = (2 * self.wait).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// The size after some collections of a program of whose nursery this share survives.
    fn after(collections: u32, tuning: &mut Tuning, survives: impl Fn(u64) -> f64) -> u64 {
        for _ in 0..collections {
            let size = tuning.size();
            tuning.after(size, (size as f64 * survives(size)) as u64);
        }
        tuning.size()
    }

    /// Sizes that it had after each collection.
    fn sizes(
        collections: u32,
        tuning: &mut Tuning,
        survives: impl Fn(u64) -> f64 + Copy,
    ) -> Vec<u64> {
        (0..collections)
            .map(|_| after(1, tuning, survives))
            .collect()
    }

    #[test]
    fn a_nursery_grows_where_objects_then_have_time_to_die() {
        // All objects of the last 2 MiB are alive.
        let survives = |size: u64| (2.0 * MIB as f64 / size as f64).min(1.0);
        let mut tuning = Tuning::new(MIB, 32 * MIB, 0.1);
        assert_eq!(after(40, &mut tuning, survives), 16 * MIB);
        // Where the next step would save less than it costs, it stays.
        let most = sizes(2000, &mut tuning, survives);
        let stayed = most.iter().filter(|size| **size == 16 * MIB).count();
        assert!(stayed > 1900, "{stayed}");
    }

    #[test]
    fn a_nursery_stays_where_all_survives_whatever_its_size() {
        let mut tuning = Tuning::new(MIB, 32 * MIB, 0.1);
        let all = sizes(2000, &mut tuning, |_| 1.0);
        let stayed = all.iter().filter(|size| **size == MIB).count();
        assert!(stayed > 1900, "{stayed}");
        // Nor does it try others where hardly anything survives.
        assert!(
            sizes(2000, &mut tuning, |_| 0.05)
                .iter()
                .skip(LOOKS as usize)
                .all(|size| *size == MIB)
        );
    }

    #[test]
    fn a_nursery_shrinks_again_when_the_program_has_changed() {
        let mut tuning = Tuning::new(MIB, 32 * MIB, 0.1);
        let grown = after(60, &mut tuning, |size| {
            (2.0 * MIB as f64 / size as f64).min(1.0)
        });
        assert_eq!(grown, 16 * MIB);
        assert_eq!(after(1600, &mut tuning, |_| 0.01), MIB);
    }

    proptest! {
        /// Sizes are in their bounds, and those without room for them change nothing.
        #[test]
        fn sizes_are_within_bounds(
            least in 1u64..5, most in 5u64..50, shares in prop::collection::vec((0.0f64..1.0, any::<bool>()), 1..400)
        ) {
            let mut tuning = Tuning::new(least * MIB, most * MIB, 0.1);
            for (share, room) in shares {
                let size = tuning.size();
                prop_assert!((least * MIB..=most * MIB).contains(&size));
                let had = if room { size } else { size / 2 };
                let before = tuning.clone();
                tuning.after(had, (had as f64 * share) as u64);
                prop_assert!(room || tuning == before);
            }
        }
    }
}
