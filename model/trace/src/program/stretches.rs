//! How much of a run each of its windows stands for: what is nearer to it than to the others.

use varve_access::Stretch;

/// A phase that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Its number.
    pub phase: u64,
    /// The window that it is in. 0 is the beginning of the run, where all of that was recorded: it stands for itself.
    pub window: u32,
    /// The part of the run.
    pub part: u64,
}

/// The stretches of phases that follow one another. `gaps` are the instructions before each window from 1 on, and after the last one,
/// which are `skipped` in all; they are missing in traces of older versions.
pub(crate) fn stretches(measured: &[Measured], gaps: &[u64], skipped: u64) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = measured
        .iter()
        .map(|one| Stretch {
            phase: one.phase,
            unseen: 0,
            part: one.part,
        })
        .collect();
    if gaps.is_empty() {
        let each = skipped / all.len().max(1) as u64;
        all.iter_mut().for_each(|stretch| stretch.unseen = each);
        return all;
    }
    let between = |from: u32, to: u32| -> u64 {
        let to = (to as usize).min(gaps.len());
        gaps.get(from as usize..to)
            .map_or(0, |gaps| gaps.iter().sum())
    };
    let mut last: Option<u32> = None;
    for (at, one) in measured.iter().enumerate() {
        match last.replace(one.window) {
            Some(window) if window == one.window => {}
            None => all[at].unseen += between(0, one.window),
            Some(0) => all[at].unseen += between(0, one.window),
            Some(window) => {
                let gap = between(window, one.window);
                all[at - 1].unseen += gap / 2;
                all[at].unseen += gap - gap / 2;
            }
        }
    }
    if let (Some(window), Some(stretch)) = (last, all.last_mut()) {
        stretch.unseen += between(window, u32::MAX);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unseen(measured: &[(u32, u64)], gaps: &[u64]) -> Vec<u64> {
        let measured: Vec<Measured> = (1..)
            .zip(measured)
            .map(|(phase, &(window, part))| Measured {
                phase,
                window,
                part,
            })
            .collect();
        let all = stretches(&measured, gaps, gaps.iter().sum());
        all.iter().map(|stretch| stretch.unseen).collect()
    }

    #[test]
    fn a_gap_is_of_the_two_windows_at_its_sides() {
        assert_eq!(
            unseen(&[(1, 0), (2, 0), (3, 0)], &[100, 10, 20, 5]),
            [105, 15, 15]
        );
    }

    #[test]
    fn a_beginning_that_was_recorded_stands_for_itself() {
        assert_eq!(
            unseen(&[(0, 0), (1, 0), (2, 0)], &[100, 10, 5]),
            [0, 105, 10]
        );
    }

    #[test]
    fn a_window_of_two_parts_has_a_side_in_each() {
        assert_eq!(
            unseen(&[(1, 0), (2, 0), (2, 1), (3, 1)], &[0, 10, 20, 5]),
            [5, 5, 10, 15]
        );
    }

    #[test]
    fn a_window_in_which_nothing_ran_is_part_of_the_gap() {
        assert_eq!(unseen(&[(1, 0), (3, 0)], &[0, 10, 20, 5]), [15, 20]);
    }

    proptest! {
        /// Whatever windows there are: stretches are the whole of what was skipped.
        #[test]
        fn nothing_is_counted_twice_or_never(windows in prop::collection::btree_set(0u32..20, 1..20), gaps in prop::collection::vec(0u64..1000, 20..30)) {
            prop_assume!(windows.len() > 1 || !windows.contains(&0));
            let measured: Vec<(u32, u64)> = windows.iter().map(|window| (*window, 0)).collect();
            prop_assert_eq!(unseen(&measured, &gaps).iter().sum::<u64>(), gaps.iter().sum::<u64>());
        }
    }
}
