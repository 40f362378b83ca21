//! When values were last asked for. It is known on the host's side alone: a read must not write to a store whose values survive.
//!
//! A table of numbers of eight bytes, in buckets of eight that are one cache line each, found by a hash of the key:
//!
//! ```text
//! bit   63..32  hash    31 fetched    30 passed    29..0  seconds since the table's beginning, and one
//! ```
//!
//! It takes 11 to 32 bytes for each value. Two keys of one hash in 2^32 share their access state, and in a bucket that is full the oldest one
//! makes room.

use crate::hash::fnv1a;
const BUCKET: usize = 8;
const FETCHED: u64 = 1 << 31;
const PASSED: u64 = 1 << 30;
const SECONDS: u64 = PASSED - 1;
/// No more slots than this: 2 GiB.
const MOST_SLOTS: usize = 1 << 28;

/// The access state of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When it was stored or asked for, seconds since 1970.
    pub last: i64,
    /// Whether it was asked for since it was stored.
    pub fetched: bool,
}

/// See the module.
pub struct Access {
    slots: Vec<u64>,
    used: usize,
    since: i64,
}

impl Access {
    /// Knows nothing yet. Values from before are taken for ones from now.
    pub fn new(now: i64) -> Access {
        Access {
            slots: vec![0; 64 * BUCKET],
            used: 0,
            since: now,
        }
    }

    /// A value was stored.
    pub fn stored(&mut self, key: &[u8], now: i64) {
        self.set(hash(key), self.seconds(now));
    }

    /// A value was asked for.
    pub fn fetched(&mut self, key: &[u8], now: i64) {
        self.set(hash(key), FETCHED | self.seconds(now));
    }

    /// A value is gone.
    pub fn forget(&mut self, key: &[u8]) {
        if let Some(at) = self.find(hash(key)) {
            self.slots[at] = 0;
            self.used -= 1;
        }
    }

    /// All values are gone.
    pub fn clear(&mut self) {
        *self = Access::new(self.since);
    }

    /// The access state of a value that is there.
    pub fn seen(&self, key: &[u8]) -> Seen {
        let slot = self.find(hash(key)).map_or(1, |at| self.slots[at]);
        Seen {
            last: self.since + (slot & SECONDS) as i64 - 1,
            fetched: slot & FETCHED != 0,
        }
    }

    /// Records that the eviction scan passed this value. Returns the time of the last access; none if there was none since the scan's last pass.
    pub fn pass(&mut self, key: &[u8]) -> Option<i64> {
        let at = self.find(hash(key))?;
        let slot = &mut self.slots[at];
        if *slot & PASSED != 0 {
            return None;
        }
        *slot |= PASSED;
        Some(self.since + (*slot & SECONDS) as i64 - 1)
    }

    fn seconds(&self, now: i64) -> u64 {
        ((now - self.since).max(0) as u64 + 1).min(SECONDS)
    }

    fn bucket(&self, hash: u32) -> usize {
        (hash as usize & (self.slots.len() / BUCKET - 1)) * BUCKET
    }

    fn find(&self, hash: u32) -> Option<usize> {
        let first = self.bucket(hash);
        let bucket = &self.slots[first..first + BUCKET];
        let at = bucket
            .iter()
            .position(|&slot| slot != 0 && (slot >> 32) as u32 == hash)?;
        Some(first + at)
    }

    fn set(&mut self, hash: u32, rest: u64) {
        let slot = u64::from(hash) << 32 | rest;
        if let Some(at) = self.find(hash) {
            self.slots[at] = slot;
            return;
        }
        if self.used >= self.slots.len() / 4 * 3 && self.slots.len() < MOST_SLOTS {
            self.grow();
        }
        self.insert(slot);
    }

    /// Puts a slot whose hash is not there into an empty one of its bucket, or in the place of the oldest.
    fn insert(&mut self, slot: u64) {
        let first = self.bucket((slot >> 32) as u32);
        let bucket = &mut self.slots[first..first + BUCKET];
        let place = bucket
            .iter_mut()
            .min_by_key(|slot| **slot & SECONDS)
            .expect("a bucket has slots");
        self.used += usize::from(*place == 0);
        *place = slot;
    }

    fn grow(&mut self) {
        let larger = vec![0; 2 * self.slots.len()];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            self.insert(slot);
        }
    }
}

/// FNV-1a, folded.
fn hash(key: &[u8]) -> u32 {
    let all = fnv1a(key);
    (all ^ all >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn what_is_known_of_values_is_what_a_map_knows() {
        let mut access = Access::new(1000);
        let mut map: HashMap<String, Seen> = HashMap::new();
        let mut now = 1000;
        for i in 0u64..40_000 {
            let key = format!("key{}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
            now += i as i64 % 3;
            match i % 5 {
                0 | 1 => {
                    access.stored(key.as_bytes(), now);
                    let fetched = false;
                    map.insert(key, Seen { last: now, fetched });
                }
                2 => {
                    access.forget(key.as_bytes());
                    map.remove(&key);
                }
                _ if map.contains_key(&key) => {
                    access.fetched(key.as_bytes(), now);
                    let fetched = true;
                    map.insert(key, Seen { last: now, fetched });
                }
                _ => {}
            }
        }
        let right = map
            .iter()
            .filter(|(k, seen)| access.seen(k.as_bytes()) == **seen);
        // Some share a hash, or were in a bucket that was full.
        let (right, all) = (right.count(), map.len());
        assert!(all > 5000 && right * 100 > all * 95, "{right} of {all}");
        assert!(
            access.slots.len() * 8 <= 32 * all,
            "{} slots for {all}",
            access.slots.len()
        );
    }

    #[test]
    fn a_value_is_passed_once_until_it_is_asked_for_again() {
        let mut access = Access::new(1000);
        access.stored(b"a", 1005);
        assert_eq!(access.pass(b"a"), Some(1005));
        assert_eq!(access.pass(b"a"), None);
        access.fetched(b"a", 1007);
        assert_eq!(access.pass(b"a"), Some(1007));
        assert_eq!(access.pass(b"unknown"), None);
    }

    #[test]
    fn a_clock_far_ahead_or_behind_is_no_reason_to_fail() {
        let mut access = Access::new(1000);
        access.stored(b"a", i64::MAX / 2);
        access.stored(b"b", 0);
        assert_eq!(access.seen(b"b").last, 1000);
        assert!(access.seen(b"a").last > 1_000_000_000);
        access.clear();
        assert_eq!(access.seen(b"a").last, 1000);
    }
}
