//! Where the memory of a process is, as the kernel tells in `/proc/PID/numa_maps`.

use std::collections::BTreeMap;

/// Bytes by node of the mappings whose words say that they count.
///
/// `7f.. default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4`
pub fn by_node(maps: &str, counts: impl Fn(&[&str]) -> bool) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !counts(&words) {
            continue;
        }
        let size = words
            .iter()
            .find_map(|w| w.strip_prefix("kernelpagesize_kB=")?.parse().ok());
        for word in words {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|w| w.split_once('=')) else {
                continue;
            };
            if let (Ok(node), Ok(pages)) = (node.parse(), pages.parse::<u64>()) {
                *all.entry(node).or_default() += pages * size.unwrap_or(4u64) * 1024;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_mappings_are_told_by_node() {
        let all = |maps| by_node(maps, |_| true);
        let line = "7f2a00000000 prefer (many):0 anon=3 dirty=3 active=0 N0=2 N11=1 kernelpagesize_kB=2048";
        assert_eq!(all(line), [(0, 4 << 20), (11, 2 << 20)].into());
        let line = "55d0 default file=/usr/bin/N1=5 mapped=7 N0=7 kernelpagesize_kB=4";
        assert_eq!(all(line), [(0, 28 << 10)].into());
        assert_eq!(all("55d0 default\n55d1 default N0=1"), [(0, 4096)].into());
        assert!(by_node(line, |words| words.contains(&"heap")).is_empty());
    }
}
