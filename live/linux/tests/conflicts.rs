//! Conflict counts against counting page by page, and the expectation against drawing at random.

use proptest::prelude::*;
use varve_live::{Bins, Conflicts, expected_random};

fn pages_in(bin: u32, pages: &[u32]) -> u64 {
    pages.iter().filter(|&&b| b == bin).count() as u64
}

proptest! {
    #[test]
    fn counts_are_those_of_counting_page_by_page(
        (sets, ways, pages) in (1u32..40, 1u32..5).prop_flat_map(|(sets, ways)| {
            (Just(sets), Just(ways), proptest::collection::vec(0..sets, 0..150))
        })
    ) {
        let bins = Bins { sets, ways };
        let c = Conflicts::of_bins(pages.iter().copied(), bins);
        let loads: Vec<u64> = (0..sets).map(|b| pages_in(b, &pages)).collect();
        let ways = u64::from(ways);
        prop_assert_eq!(c.pages, pages.len() as u64);
        prop_assert_eq!(c.bins_used, loads.iter().filter(|&&l| l > 0).count() as u64);
        let sharing = pages.iter().filter(|&&b| pages_in(b, &pages) > ways).count() as u64;
        prop_assert_eq!(c.sharing, sharing);
        prop_assert_eq!(c.excess, loads.iter().map(|l| l.saturating_sub(ways)).sum::<u64>());
        prop_assert_eq!(c.fullest, loads.iter().copied().max().unwrap_or(0).min(63));
        prop_assert!(c.excess >= c.least_excess);
    }
}

/// A small generator with a fixed start, enough to draw bins.
fn draw(state: &mut u64, below: u32) -> u32 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    ((*state >> 33) % u64::from(below)) as u32
}

#[test]
fn the_expectation_is_the_mean_of_many_draws() {
    let mut state = 7;
    for (sets, ways, pages) in [
        (64, 1, 20u32),
        (64, 1, 64),
        (64, 1, 400),
        (32, 2, 40),
        (32, 4, 200),
        (1, 1, 5),
    ] {
        let bins = Bins { sets, ways };
        let rounds = 4000;
        let (mut sharing, mut excess) = (0.0, 0.0);
        for _ in 0..rounds {
            let c = Conflicts::of_bins((0..pages).map(|_| draw(&mut state, sets)), bins);
            sharing += c.sharing as f64 / f64::from(rounds);
            excess += c.excess as f64 / f64::from(rounds);
        }
        let expected = expected_random(u64::from(pages), bins);
        // Half a page is several standard errors of 4000 rounds at these sizes.
        assert!(
            (expected.0 - sharing).abs() < 0.5,
            "{sets} {ways} {pages}: {expected:?} {sharing}"
        );
        assert!(
            (expected.1 - excess).abs() < 0.5,
            "{sets} {ways} {pages}: {expected:?} {excess}"
        );
    }
}

#[test]
fn a_full_cache_of_random_frames_leaves_37_percent_of_its_bins_empty() {
    // The birthday paradox of the paper: 48 GiB of pages in 48 GiB of bins.
    let bins = Bins::of_cache(48 << 30, 1).unwrap();
    let pages = u64::from(bins.sets);
    let (_, excess) = expected_random(pages, bins);
    assert!((excess / pages as f64 - (-1.0f64).exp()).abs() < 1e-6);
}

#[test]
fn impossible_caches_are_refused_in_one_line() {
    for (bytes, ways, word) in [
        (0, 1, "16 MiB"),
        (48 << 30, 0, "way"),
        (1 << 50, 1, "16 TiB"),
        ((48 << 30) + 1, 1, "4 KiB"),
    ] {
        let error = Bins::of_cache(bytes, ways).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn bins_of_huge_pages_are_512_bins_each() {
    let bins = Bins::of_cache(48 << 30, 1).unwrap();
    assert_eq!(bins.huge().unwrap().sets, bins.sets / 512);
    assert_eq!(bins.of_frame(u64::from(bins.sets) + 5), 5);
    // 16 MiB and one page: a huge page would straddle the end.
    assert_eq!(Bins::of_cache((16 << 20) + 4096, 1).unwrap().huge(), None);
}
