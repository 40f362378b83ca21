//! Sites whose accesses a cache answered while the profile was made, and may not answer on a larger input.

use super::{Key, Profile, Site};

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Such sites matter if they make this share of the accesses.
const MOST_ACCESSES: f64 = 0.5;
/// Misses for each line of theirs: first touches, and a few that other memory pushed out.
const FEW_MISSES: u64 = 2;

/// Hot sites that fit into a cache together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached {
    /// Their share of the accesses of all allocated objects, 0 to 1.
    pub share: f64,
    /// Bytes of them together, at their peaks.
    pub bytes: u64,
    /// The one with the most accesses.
    pub site: Key,
}

/// The sites with the most accesses per byte, as far as `cache` bytes hold them: if these make most of the accesses and
/// have few misses, their misses would grow with the input. `None` if all objects fit, or if that is not so.
pub fn cached(profile: &Profile, cache: u64) -> Option<Cached> {
    let accesses = |site: &Site| site.counts.reads + site.counts.writes;
    let mut sites: Vec<&Site> = profile
        .sites
        .iter()
        .filter(|s| s.counts.objects > 0)
        .collect();
    let all: u64 = sites.iter().map(|site| accesses(site)).sum();
    let bytes: u64 = sites.iter().map(|site| site.counts.peak_bytes).sum();
    if all == 0 || bytes <= cache {
        return None;
    }
    let heat = |site: &Site| accesses(site) as f64 / site.counts.peak_bytes.max(1) as f64;
    sites.sort_by(|a, b| heat(b).total_cmp(&heat(a)));
    let mut hot: Vec<&Site> = Vec::new();
    let mut left = cache;
    for site in sites {
        match left.checked_sub(site.counts.peak_bytes) {
            Some(rest) => left = rest,
            None => break,
        }
        hot.push(site);
    }
    let sum = |of: &dyn Fn(&Site) -> u64| hot.iter().map(|site| of(site)).sum::<u64>();
    let bytes = sum(&|site| site.counts.peak_bytes);
    let misses = sum(&|site| site.counts.misses + site.counts.write_misses);
    let share = sum(&accesses) as f64 / all as f64;
    let few = misses <= FEW_MISSES * bytes.div_ceil(LINE);
    let most = hot.iter().max_by_key(|site| accesses(site))?;
    (few && share >= MOST_ACCESSES).then(|| Cached {
        share,
        bytes,
        site: most.key.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;

    const MIB: u64 = 1 << 20;

    fn site(name: &str, mib: u64, reads: u64, misses: u64) -> Site {
        Site {
            key: Key::Static {
                module: "p".into(),
                build_id: String::new(),
                symbol: name.into(),
            },
            counts: Counts {
                objects: 1,
                peak_bytes: mib * MIB,
                reads,
                misses,
                ..Counts::default()
            },
        }
    }

    fn found(sites: Vec<Site>) -> Option<Cached> {
        let profile = Profile {
            sites,
            ..Profile::default()
        };
        cached(&profile, 16 * MIB)
    }

    #[test]
    fn a_hot_table_in_the_cache_beside_a_large_archive_is_named() {
        let archive = site("archive", 20, 100_000, 330_000);
        let hot = found(vec![archive.clone(), site("table", 8, 5_000_000, 140_000)]).unwrap();
        assert!(matches!(&hot.site, Key::Static { symbol, .. } if symbol == "table"));
        assert_eq!(hot.bytes, 8 * MIB);
        assert!(hot.share > 0.9);
        // With many misses it is known what it costs; and so is the archive, if that is what is used.
        assert_eq!(
            found(vec![archive.clone(), site("table", 8, 5_000_000, 900_000)]),
            None
        );
        assert_eq!(
            found(vec![
                site("archive", 20, 5_000_000, 330_000),
                site("small", 1, 10, 10)
            ]),
            None
        );
        // What fits as a whole is for another note.
        assert_eq!(found(vec![site("table", 8, 5_000_000, 140_000)]), None);
    }
}
