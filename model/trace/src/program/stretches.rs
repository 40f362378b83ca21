//! How much of a run each of its windows stands for.

use crate::writer::WindowShare;
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

/// Windows of which nothing is known stand for as much as each other.
pub(crate) fn equal(windows: u32, skipped: u64) -> Vec<WindowShare> {
    let share = WindowShare {
        phase: 0,
        instructions: skipped / u64::from(windows.max(1)),
    };
    vec![share; windows as usize]
}

/// The stretches of phases that follow one another. `shares` are those of the windows from 1 on; what is left of the `skipped`
/// instructions is of the last phase.
pub(crate) fn stretches(
    measured: &[Measured],
    shares: &[WindowShare],
    skipped: u64,
) -> Vec<Stretch> {
    let share = |window: u32| -> Option<&WindowShare> {
        (window as usize)
            .checked_sub(1)
            .and_then(|at| shares.get(at))
    };
    let mut all: Vec<Stretch> = measured
        .iter()
        .map(|one| Stretch {
            phase: one.phase,
            unseen: 0,
            part: one.part,
            like: share(one.window).map_or(0, |share| share.phase),
        })
        .collect();
    for (window, share) in (1..).zip(shares) {
        let first = measured.partition_point(|one| one.window < window);
        let end = measured.partition_point(|one| one.window <= window);
        // A window in which nothing ran is part of what the one before it stands for, or else the next one.
        let last = if end > first {
            end - 1
        } else {
            first.saturating_sub(1)
        };
        let first = if end > first { first } else { last };
        let half = share.instructions / 2;
        if let Some(stretch) = all.get_mut(first) {
            stretch.unseen += half;
        }
        if let Some(stretch) = all.get_mut(last) {
            stretch.unseen += share.instructions - half;
        }
    }
    let stood: u64 = all.iter().map(|stretch| stretch.unseen).sum();
    if let Some(last) = all.last_mut() {
        last.unseen += skipped.saturating_sub(stood);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unseen(measured: &[(u32, u64)], shares: &[u64]) -> Vec<u64> {
        let measured: Vec<Measured> = (1..)
            .zip(measured)
            .map(|(phase, &(window, part))| Measured {
                phase,
                window,
                part,
            })
            .collect();
        let share = |&instructions| WindowShare {
            phase: 1,
            instructions,
        };
        let shares: Vec<WindowShare> = shares.iter().map(share).collect();
        let skipped = shares.iter().map(|share| share.instructions).sum();
        let all = stretches(&measured, &shares, skipped);
        all.iter().map(|stretch| stretch.unseen).collect()
    }

    #[test]
    fn a_beginning_that_was_recorded_stands_for_itself() {
        assert_eq!(unseen(&[(0, 0), (1, 0), (2, 0)], &[100, 10]), [0, 100, 10]);
    }

    #[test]
    fn a_window_of_two_parts_has_a_half_in_each() {
        assert_eq!(
            unseen(&[(1, 0), (2, 0), (2, 1), (3, 1)], &[5, 30, 15]),
            [5, 15, 15, 15]
        );
    }

    #[test]
    fn a_window_in_which_nothing_ran_is_of_the_one_before() {
        assert_eq!(unseen(&[(2, 0), (4, 0)], &[1, 10, 20, 5]), [31, 5]);
    }

    #[test]
    fn windows_of_which_nothing_is_known_are_equal() {
        let measured = [1, 2, 3].map(|window| Measured {
            phase: u64::from(window),
            window,
            part: 0,
        });
        let of = |shares: &[WindowShare]| -> Vec<u64> {
            let all = stretches(&measured, shares, 302);
            all.iter().map(|stretch| stretch.unseen).collect()
        };
        assert_eq!(of(&equal(3, 302)), [100, 100, 102]);
        assert_eq!(of(&[]), [0, 0, 302]);
    }

    proptest! {
        /// Whatever windows there are: stretches are the whole of what was skipped.
        #[test]
        fn nothing_is_counted_twice_or_never(windows in prop::collection::btree_set(0u32..20, 1..20), shares in prop::collection::vec(0u64..1000, 20)) {
            let measured: Vec<(u32, u64)> = windows.iter().map(|window| (*window, 0)).collect();
            prop_assert_eq!(unseen(&measured, &shares).iter().sum::<u64>(), shares.iter().sum::<u64>());
        }
    }
}
