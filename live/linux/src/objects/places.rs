//! Where the memory of a running program is, by the kernel's word, looked at from time to time.

use super::ledger::RANGE;
use super::share::Taker;
use crate::nodes::{Kinds, by_node};
use crate::probe::sysfs::parse_list;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes by the node that they were on, when most were in use of all times that it was looked. Of processes that share pages, each
/// counts its part of them, which is taken to be the same in all of its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResidentBytes {
    /// Since the program began.
    pub seconds: f64,
    /// How often it was looked.
    pub looks: u32,
    /// Of memory that is to be fast: objects, mappings and static variables.
    pub fast: BTreeMap<u32, u64>,
    /// Of memory that is to be slow.
    pub slow: BTreeMap<u32, u64>,
    /// All other memory of the same processes: stacks, code, and what no site decides.
    pub others: BTreeMap<u32, u64>,
}

impl ResidentBytes {
    /// All bytes.
    pub fn bytes(&self) -> u64 {
        let all = [&self.fast, &self.slow, &self.others];
        all.iter().flat_map(|nodes| nodes.values()).sum()
    }

    /// Bytes of memory that is to be fast (slow) on no fast (slow) node.
    pub fn elsewhere(&self, kinds: &Kinds) -> u64 {
        let not_on = |there: &BTreeMap<u32, u64>, nodes: &[u32]| -> u64 {
            let not = there.iter().filter(|(node, _)| !nodes.contains(node));
            not.map(|(_, bytes)| bytes).sum()
        };
        not_on(&self.fast, &kinds.fast) + not_on(&self.slow, &kinds.slow)
    }

    /// Adds a part of what another process has.
    fn join(&mut self, other: ResidentBytes, part: f64) {
        for (to, from) in [
            (&mut self.fast, other.fast),
            (&mut self.slow, other.slow),
            (&mut self.others, other.others),
        ] {
            for (node, bytes) in from {
                *to.entry(node).or_default() += (bytes as f64 * part) as u64;
            }
        }
    }

    /// Adds a line of `numa_maps` of a process whose ranges begin at `base`.
    fn add(&mut self, line: &str, base: u64, kinds: &Kinds) {
        let there = by_node(line, |_| true);
        if there.is_empty() {
            return;
        }
        let to = match meant(line, base, kinds) {
            Some(true) => &mut self.fast,
            Some(false) => &mut self.slow,
            None => &mut self.others,
        };
        for (node, bytes) in there {
            *to.entry(node).or_default() += bytes;
        }
    }
}

/// The part of a process's memory that counts as its own, of `smaps_rollup`: a page that several share is each one's in part.
fn proportion(rollup: &str) -> Option<f64> {
    let number = |name: &str| -> Option<f64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (own, all) = (number("Pss:")?, number("Rss:")?);
    (all > 0.0).then(|| (own / all).min(1.0))
}

/// Whether a line's memory is to be fast. Its policy says so. If all nodes are of both kinds, its range does.
fn meant(line: &str, base: u64, kinds: &Kinds) -> Option<bool> {
    let (address, rest) = line.split_once(' ')?;
    if kinds.fast == kinds.slow {
        let address = u64::from_str_radix(address, 16).ok()?;
        return match address.checked_sub(base)? / RANGE {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
    }
    let nodes = rest
        .strip_prefix("prefer (many):")
        .or_else(|| rest.strip_prefix("prefer:"))?;
    let nodes = parse_list(nodes.split_whitespace().next()?);
    // Of an older kernel, which prefers one node alone, the first.
    let is = |kind: &[u32]| nodes == kind || nodes.len() == 1 && kind.first() == nodes.first();
    match (is(&kinds.fast), is(&kinds.slow)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Looks now and then, and keeps what it saw when most memory was in use.
#[derive(Debug)]
pub(super) struct Looks {
    begun: Instant,
    next: Duration,
    most: ResidentBytes,
}

impl Looks {
    pub fn begin() -> Looks {
        Looks {
            begun: Instant::now(),
            next: Duration::ZERO,
            most: ResidentBytes::default(),
        }
    }

    /// Looks, if it is time. The kernel goes through all pages of a process, during which its mappings cannot change: that is to
    /// take at most a hundredth of the time.
    pub fn look(&mut self, takers: &[Taker], kinds: &Kinds) {
        const LEAST: Duration = Duration::from_millis(5);
        const MOST: Duration = Duration::from_secs(1);
        let before = self.begun.elapsed();
        if before < self.next || takers.is_empty() {
            return;
        }
        let mut now = ResidentBytes::default();
        for taker in takers {
            let folder = Path::new("/proc").join(taker.pid.to_string());
            let read = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let part = match takers.len() {
                1 => Some(1.0),
                _ => proportion(&read("smaps_rollup")),
            };
            // It may have ended by now. Then its pages are all the others'.
            let Some(part) = part else { continue };
            let mut own = ResidentBytes::default();
            for line in read("numa_maps").lines() {
                own.add(line, taker.base, kinds);
            }
            now.join(own, part);
        }
        let after = self.begun.elapsed();
        self.next = after + ((after - before) * 100).max((after / 8).clamp(LEAST, MOST));
        if now.bytes() == 0 {
            return;
        }
        let looks = self.most.looks + 1;
        if now.bytes() >= self.most.bytes() {
            self.most = now;
            self.most.seconds = before.as_secs_f64();
        }
        self.most.looks = looks;
    }

    /// What was so when most memory was in use; none if it was never looked.
    pub fn most(self) -> Option<ResidentBytes> {
        (self.most.looks > 0).then_some(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(fast: &[u32], slow: &[u32]) -> Kinds {
        Kinds {
            fast: fast.to_vec(),
            slow: slow.to_vec(),
        }
    }

    #[test]
    fn a_lines_policy_says_what_its_memory_is_meant_to_be() {
        let of = |line: &str, kinds: &Kinds| meant(line, 0x10000000000, kinds);
        let two = kinds(&[0, 1], &[2]);
        assert_eq!(of("7f00 prefer (many):0-1 anon=2 N0=2", &two), Some(true));
        assert_eq!(of("7f00 prefer:0 anon=2 N0=2", &two), Some(true));
        assert_eq!(of("7f00 prefer:2 anon=2 N0=2", &two), Some(false));
        assert_eq!(of("7f00 default heap anon=2 N0=2", &two), None);
        assert_eq!(of("7f00 bind:0-1 anon=2 N0=2", &two), None);
        let alike = kinds(&[0], &[0]);
        for (address, is) in [
            ("0", None),
            ("1", None),
            ("2", Some(true)),
            ("3", Some(false)),
            ("4", None),
        ] {
            let line = format!("{address}0000000000 prefer:0 anon=2 N0=2");
            assert_eq!(of(&line, &alike), is, "{line}");
        }
    }

    #[test]
    fn bytes_that_are_not_where_they_are_meant_to_be_are_counted() {
        let two = kinds(&[0], &[2]);
        let mut places = ResidentBytes::default();
        for line in [
            "7f00 prefer (many):0 anon=3 N0=2 N2=1 kernelpagesize_kB=4",
            "7f01 prefer (many):2 anon=3 N0=1 N2=2 kernelpagesize_kB=2048",
            "7f02 default file=/bin/sh mapped=3 N0=3 kernelpagesize_kB=4",
            "7f03 default",
        ] {
            places.add(line, 0, &two);
        }
        assert_eq!(places.fast, [(0, 8 << 10), (2, 4 << 10)].into());
        assert_eq!(places.slow, [(0, 2 << 20), (2, 4 << 20)].into());
        assert_eq!(places.others, [(0, 12 << 10)].into());
        assert_eq!(places.elsewhere(&two), (4 << 10) + (2 << 20));
        // Two processes that share all.
        let mut both = ResidentBytes::default();
        let part =
            proportion("7f00-7fff ---p 0 00:00 0 [rollup]\nRss:  8 kB\nPss:  4 kB\n").unwrap();
        both.join(places.clone(), part);
        both.join(places.clone(), part);
        assert_eq!(both, places);
        assert_eq!(proportion(""), None);
    }
}
