//! Groups call stacks into allocation sites: by the fewest calls of a stack that distinguish hot memory from cold.

use super::live_bytes::LiveBytes;
use std::collections::HashMap;
use varve_sites::Counts;
use varve_sites::native::stale::{ByName, Found};
use varve_sites::native::{Key, Profile};

/// Memory of a group is alike if the misses per byte of each part are within this factor of the group's.
const ALIKE: f64 = 4.0;
/// A part that matters has at least this share of the group's bytes or misses.
const MATTERS: f64 = 0.02;
/// Calls of a stack that are compared.
const DEEPEST: usize = 16;

/// Stacks of a run, as groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// The group of each stack, by its number in the run.
    pub of: Vec<u32>,
    /// The key of each group.
    pub keys: Vec<Key>,
    /// The groups of memory that the program itself called hot, and cold; `None`: what it said does not count.
    pub hinted: Option<[u32; 2]>,
}

fn misses(c: &Counts) -> f64 {
    (c.misses + c.write_misses) as f64
}

/// Is the memory of these stacks alike?
fn are_alike(members: &[usize], counts: &[Counts]) -> bool {
    let sum = |of: &dyn Fn(&Counts) -> f64| members.iter().map(|&m| of(&counts[m])).sum::<f64>();
    let (bytes, all) = (sum(&|c| c.peak_bytes as f64), sum(&misses));
    let mean = all / bytes.max(1.0);
    members.iter().all(|&member| {
        let c = &counts[member];
        let (own, peak) = (misses(c), c.peak_bytes as f64);
        let matters = own > MATTERS * all || peak > MATTERS * bytes;
        let density = own / peak.max(1.0);
        !matters || density <= ALIKE * mean && density * ALIKE >= mean
    })
}

impl Groups {
    /// Stacks that begin alike are together as long as their memory is.
    ///
    /// # Panics
    /// If there are not as many counts as keys.
    pub fn by_heat(keys: &[Key], counts: &[Counts]) -> Groups {
        assert_eq!(keys.len(), counts.len());
        let mut groups = Groups {
            of: vec![0; keys.len()],
            ..Groups::default()
        };
        groups.split((0..keys.len()).collect(), 1, keys, counts);
        groups
    }

    fn split(&mut self, members: Vec<usize>, depth: usize, keys: &[Key], counts: &[Counts]) {
        let mut places: HashMap<Key, usize> = HashMap::new();
        let mut parts: Vec<(Key, Vec<usize>)> = Vec::new();
        for member in members {
            let key = keys[member].cut(depth);
            let place = *places.entry(key.clone()).or_insert(parts.len());
            match parts.get_mut(place) {
                Some((_, part)) => part.push(member),
                None => parts.push((key, vec![member])),
            }
        }
        for (key, part) in parts {
            if part.len() == 1 || depth >= DEEPEST || are_alike(&part, counts) {
                let number = self.keys.len() as u32;
                self.keys.push(key);
                part.iter().for_each(|&member| self.of[member] = number);
            } else {
                self.split(part, depth + 1, keys, counts);
            }
        }
    }

    /// Each stack is of that site of a profile that has most of its innermost calls. Groups have the numbers of the
    /// profile's sites; unknown stacks are one group more, the last.
    pub fn by_profile(keys: &[Key], profile: &Profile) -> Groups {
        let sites: HashMap<&Key, u32> = (0..)
            .zip(&profile.sites)
            .map(|(n, s)| (&s.key, n))
            .collect();
        let unknown = profile.sites.len() as u32;
        let longest = |key: &Key| {
            let prefix = |calls: usize| match key {
                Key::Heap(stack) => Key::Heap(stack[..calls].to_vec()),
                Key::Mapping(stack) => Key::Mapping(stack[..calls].to_vec()),
                other => other.clone(),
            };
            let calls = key.stack().len();
            (0..=calls)
                .rev()
                .find_map(|n| sites.get(&prefix(n)).copied())
        };
        let of: Vec<u32> = keys
            .iter()
            .map(|key| longest(key).unwrap_or(unknown))
            .collect();
        let known = profile.sites.iter().map(|site| site.key.clone());
        let keys = known.chain([Key::Rest]).collect();
        Groups {
            of,
            keys,
            hinted: None,
        }
    }

    /// All stacks are one group; what the program itself called hot, or cold, are two more.
    pub fn by_hints(stacks: usize) -> Groups {
        Groups {
            of: vec![0; stacks],
            keys: vec![Key::Rest; 3],
            hinted: Some([1, 2]),
        }
    }

    /// The same for a profile of another build: stacks that are not found by address are searched by the names of
    /// functions. Also returns how many stacks may be of several sites; these are not known.
    pub fn by_name(keys: &[Key], profile: &Profile) -> (Groups, usize) {
        let mut groups = Groups::by_profile(keys, profile);
        let names = ByName::new(profile);
        let unknown = profile.sites.len() as u32;
        let mut several = 0;
        for (group, key) in groups.of.iter_mut().zip(keys) {
            if *group != unknown {
                continue;
            }
            match names.find(key) {
                Found::Site(number) => *group = number as u32,
                Found::Several => several += 1,
                Found::Unknown => {}
            }
        }
        (groups, several)
    }

    /// The group of a stack.
    pub fn group(&self, site: u32) -> u32 {
        self.of.get(site as usize).copied().unwrap_or(site)
    }

    /// The counts, by group. Where nothing is known of the course of a run, a peak is the sum of peaks, which need not have been at
    /// one time.
    pub fn sum(&self, counts: &[Counts], live: &LiveBytes) -> Vec<Counts> {
        let mut sums = vec![Counts::default(); self.keys.len()];
        for (&group, counts) in self.of.iter().zip(counts) {
            let sum = &mut sums[group as usize];
            let peak = sum.peak_bytes + counts.peak_bytes;
            sum.add(counts);
            sum.peak_bytes = peak;
        }
        for (sum, peak) in sums
            .iter_mut()
            .zip(live.peaks(self.keys.len(), &self.of).unwrap_or_default())
        {
            sum.peak_bytes = peak;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use varve_sites::native::{Frame, Site};

    fn stack(calls: &[u64]) -> Key {
        let frame = |&offset: &u64| Frame {
            module: "p".into(),
            offset,
            ..Frame::default()
        };
        Key::Heap(calls.iter().map(frame).collect())
    }

    fn counts(peak_bytes: u64, misses: u64) -> Counts {
        Counts {
            objects: 1,
            bytes: peak_bytes,
            peak_bytes,
            misses,
            ..Counts::default()
        }
    }

    #[test]
    fn a_helper_is_told_apart_by_its_callers_where_these_differ() {
        let keys = [
            stack(&[1, 10, 100]),
            stack(&[1, 10, 200]),
            stack(&[1, 20, 100]),
            stack(&[2, 10, 100]),
            stack(&[2, 20, 100]),
        ];
        let all = [
            counts(1000, 9000),
            counts(1000, 8000),
            counts(50_000, 10),
            counts(100, 5),
            counts(100, 6),
        ];
        let groups = Groups::by_heat(&keys, &all);
        assert_eq!(groups.of, [0, 0, 1, 2, 2]);
        assert_eq!(groups.keys, [stack(&[1, 10]), stack(&[1, 20]), stack(&[2])]);
        let sums = groups.sum(&all, &LiveBytes::default());
        assert_eq!((sums[0].peak_bytes, sums[0].misses), (2000, 17_000));
    }

    #[test]
    fn a_stack_is_of_the_site_with_most_of_its_calls() {
        let site = |key| Site {
            key,
            counts: Counts::default(),
        };
        let profile = Profile {
            sites: vec![site(stack(&[1])), site(stack(&[1, 10])), site(Key::Rest)],
            ..Profile::default()
        };
        let keys = [
            Key::Rest,
            stack(&[1, 10, 5]),
            stack(&[1, 11]),
            stack(&[3, 1]),
        ];
        let groups = Groups::by_profile(&keys, &profile);
        assert_eq!(groups.of, [2, 1, 0, 3]);
        assert_eq!(groups.keys.len(), 4);
    }

    proptest! {
        /// Each stack is in a group whose calls it begins with, all are counted once, and no group could be made of
        /// stacks of others.
        #[test]
        fn groups_are_beginnings_of_stacks(
            stacks in prop::collection::hash_set(prop::collection::vec(0u64..3, 1..5), 1..20),
            seed in prop::collection::vec((1u64..10_000, 0u64..10_000), 20)
        ) {
            let keys: Vec<Key> = stacks.iter().map(|calls| stack(calls)).collect();
            let all: Vec<Counts> = keys.iter().zip(&seed).map(|(_, &(bytes, misses))| counts(bytes, misses)).collect();
            let groups = Groups::by_heat(&keys, &all);
            for (key, &group) in keys.iter().zip(&groups.of) {
                let of = groups.keys[group as usize].stack();
                prop_assert!(key.stack().starts_with(of));
            }
            let sums = groups.sum(&all, &LiveBytes::default());
            prop_assert_eq!(sums.iter().map(|c| c.misses).sum::<u64>(), all.iter().map(|c| c.misses).sum::<u64>());
            let distinct: std::collections::HashSet<&Key> = groups.keys.iter().collect();
            prop_assert_eq!(distinct.len(), groups.keys.len());
        }
    }
}
