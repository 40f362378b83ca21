//! Cuts a program's work into intervals of equal amounts.

/// Sums grow, of work and of the time for it; an interval is a fixed amount of work. Where one ends between two sums, its time is
/// what a steady pace between them makes it.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    /// The work of an interval, at least 1.
    unit: u64,
    /// The last sums.
    last: Sums,
    /// Where the interval of now began.
    from: Sums,
}

/// Work, in units of its own, and the time for it, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// All work so far.
    pub work: u64,
    /// All time so far, ns.
    pub nanos: u64,
}

impl Cutter {
    /// Intervals of a fixed amount of work each, from these sums on.
    pub fn new(unit: u64, from: Sums) -> Cutter {
        Cutter {
            unit: unit.max(1),
            last: from,
            from,
        }
    }

    /// The times of the intervals that have ended, ns. Sums that are smaller than the last are taken for those.
    pub fn until(&mut self, sums: Sums) -> impl Iterator<Item = u64> {
        let last = self.last;
        let now = Sums {
            work: sums.work.max(last.work),
            nanos: sums.nanos.max(last.nanos),
        };
        self.last = now;
        std::iter::from_fn(move || {
            let end = self.from.work.checked_add(self.unit)?;
            if end > now.work {
                return None;
            }
            let part = u128::from(end - last.work) * u128::from(now.nanos - last.nanos);
            // Less than the time between the sums.
            let part = (part / u128::from(now.work - last.work)) as u64;
            let end = Sums {
                work: end,
                nanos: last.nanos + part,
            };
            let time = end.nanos - self.from.nanos;
            self.from = end;
            Some(time)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_that_ends_between_two_sums_ends_at_a_steady_pace() {
        let mut cutter = Cutter::new(100, Sums::default());
        let mut until = |work, nanos| cutter.until(Sums { work, nanos }).collect::<Vec<_>>();
        assert_eq!(until(50, 500), [0; 0]);
        // Half of these 100 are in the first interval, and took half of the time.
        assert_eq!(until(150, 1500), [1000]);
        assert_eq!(until(400, 2750), [750, 500, 500]);
    }

    proptest! {
        /// However work is reported, the number of intervals follows from its amount, and their times sum to those of all the work.
        #[test]
        fn intervals_are_equal_amounts_of_all_work(
            unit in 1u64..1000,
            steps in prop::collection::vec((0u64..5000, 0u64..1 << 40), 1..50),
        ) {
            let mut cutter = Cutter::new(unit, Sums::default());
            let (mut sums, mut intervals, mut time) = (Sums::default(), 0, 0);
            for (work, nanos) in steps {
                sums = Sums { work: sums.work + work, nanos: sums.nanos + nanos };
                for took in cutter.until(sums) {
                    intervals += 1;
                    time += took;
                }
                prop_assert_eq!(intervals, sums.work / unit);
                prop_assert!(time <= sums.nanos);
                if sums.work.is_multiple_of(unit) && work > 0 {
                    prop_assert_eq!(time, sums.nanos);
                }
            }
        }

        /// A program at a steady pace has intervals of the same time, but for rounding.
        #[test]
        fn a_steady_program_has_steady_intervals(unit in 1u64..1000, pace in 1u64..1000, steps in prop::collection::vec(1u64..5000, 1..50)) {
            let mut cutter = Cutter::new(unit, Sums::default());
            let mut work = 0;
            for step in steps {
                work += step;
                for took in cutter.until(Sums { work, nanos: work * pace }) {
                    prop_assert_eq!(took, unit * pace);
                }
            }
        }
    }
}
