//! The chooser against the slow, obvious way: ask again and again for the bin with the fewest pages.

use proptest::prelude::*;
use varve_live::{NO_BIN, choose};

/// Loads of all bins in the end, when the next page always goes to the least loaded bin that still has a
/// candidate.
fn one_by_one(bins: &[u32], wanted: usize, loads: &[u32]) -> Vec<u32> {
    let mut loads = loads.to_vec();
    let mut left: Vec<u32> = bins.iter().copied().filter(|&b| b != NO_BIN).collect();
    for _ in 0..wanted {
        let Some(best) = (0..left.len()).min_by_key(|&i| loads[left[i] as usize]) else {
            break;
        };
        loads[left.swap_remove(best) as usize] += 1;
    }
    loads
}

fn sorted(mut loads: Vec<u32>) -> Vec<u32> {
    loads.sort_unstable();
    loads
}

/// `(sets, loads, candidates, wanted)`, with few sets so that bins are shared, and some unusable candidates.
fn cases() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, usize)> {
    (1u32..12).prop_flat_map(|sets| {
        let candidate = prop_oneof![9 => 0..sets, 1 => Just(NO_BIN)];
        (
            proptest::collection::vec(0u32..5, sets as usize),
            proptest::collection::vec(candidate, 0..60),
            0usize..70,
        )
    })
}

proptest! {
    #[test]
    fn the_choice_is_as_even_as_asking_one_by_one((loads, bins, wanted) in cases()) {
        let choice = choose(&bins, wanted, loads.len() as u32, |b| loads[b as usize]);
        let mut end = loads.clone();
        for (&bin, _) in bins.iter().zip(&choice.keep).filter(|(_, kept)| **kept) {
            end[bin as usize] += 1;
        }
        prop_assert_eq!(sorted(end.clone()), sorted(one_by_one(&bins, wanted, &loads)));

        let usable = bins.iter().filter(|&&b| b != NO_BIN).count();
        prop_assert_eq!(choice.kept, wanted.min(usable));
        prop_assert_eq!(choice.kept, choice.keep.iter().filter(|&&k| k).count());
        let touched = (0..loads.len()).filter(|&b| end[b] > loads[b]);
        prop_assert_eq!(choice.fullest, touched.map(|b| end[b]).max().unwrap_or(0));
        let pairs = |l: &[u32]| l.iter().map(|&n| u64::from(n) * u64::from(n).saturating_sub(1) / 2).sum::<u64>();
        prop_assert_eq!(choice.cost, pairs(&end) - pairs(&loads));
    }

    #[test]
    fn no_other_choice_has_fewer_pairs_in_a_bin(
        (loads, bins, wanted) in (1u32..5).prop_flat_map(|sets| (
            proptest::collection::vec(0u32..4, sets as usize),
            proptest::collection::vec(0..sets, 0..10),
            0usize..10,
        ))
    ) {
        let choice = choose(&bins, wanted, loads.len() as u32, |b| loads[b as usize]);
        let mut least = u64::MAX;
        for subset in 0u32..1 << bins.len() {
            if subset.count_ones() as usize != wanted.min(bins.len()) {
                continue;
            }
            let mut l = loads.clone();
            let mut cost = 0;
            for (i, &b) in bins.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1) {
                let _ = i;
                cost += u64::from(l[b as usize]);
                l[b as usize] += 1;
            }
            least = least.min(cost);
        }
        prop_assert_eq!(choice.cost, least);
    }
}

#[test]
fn among_equals_the_first_stays() {
    let choice = choose(&[3, 3, 1, 1], 2, 4, |_| 0);
    assert_eq!(choice.keep, [true, false, true, false]);
}

#[test]
fn pages_of_others_push_the_choice_away() {
    let choice = choose(&[0, 1, 0, 1], 2, 2, |bin| if bin == 0 { 5 } else { 0 });
    assert_eq!(choice.keep, [false, true, false, true]);
}
