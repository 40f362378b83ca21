//! Asks a policy, interval by interval, in which memory the old generation of a virtual machine is to be.
//!
//! ```text
//! agent (decider.rs there)  --sums, by a socket-->  Talk  --intervals-->  GenerationPolicy
//!       moves pages         <--nodes--------------        <--fast, slow--
//! ```
//!
//! An interval is an equal amount of allocation, and its time is the program's own without collections. Once the program reports
//! intervals itself (`programs/api`), those are taken.

use super::cutter::{Cutter, Sums};
use crate::nodes::Kinds;
use std::time::Duration;

/// A policy that decides where an old generation is. It starts in slow memory.
pub trait GenerationPolicy: Send {
    /// An interval has ended. `Some` is whether the old generation is to be in fast memory now; [`GenerationPolicy::moved`] says when it is.
    fn interval(&mut self, interval: &Interval) -> Option<bool>;

    /// Earlier measurements were taken under other conditions, and must not be compared with later ones.
    fn forget(&mut self, now: Duration);

    /// The old generation was moved.
    fn moved(&mut self, moved: &GenerationMove);
}

/// A part of a program's work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Counts up from 1.
    pub id: u64,
    /// How long it took.
    pub took: Duration,
    /// When that is known, since the command was started.
    pub now: Duration,
    /// Bytes of objects in the old generation.
    pub old_bytes: u64,
    /// Bytes of fast memory that could be had.
    pub free_bytes: u64,
}

/// A move of the old generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerationMove {
    /// When it was done, since the command was started.
    pub now: Duration,
    /// Whether it went to fast memory.
    pub fast: bool,
    /// Bytes that were moved.
    pub bytes: u64,
    /// How long that took; the program ran on.
    pub took: Duration,
    /// Bytes that are somewhere else nevertheless.
    pub elsewhere_bytes: u64,
}

/// A virtual machine, and who decides for it.
#[derive(Debug)]
pub struct Decided<D> {
    /// The machine's process.
    pub pid: u32,
    /// Whether intervals are those that the program reported.
    pub reported: bool,
    /// Intervals that ended.
    pub intervals: u64,
    /// Bytes that the program allocated, as far as is known.
    pub allocated: u64,
    /// The policy.
    pub by: D,
}

/// A conversation with an agent.
pub(super) struct Talk<'k, D> {
    kinds: &'k Kinds,
    /// Bytes allocated in an interval.
    unit: u64,
    cutter: Cutter,
    /// The old generation moves to fast memory, or to slow memory.
    to_fast: bool,
    /// Numbers of collections and reports at the migration: those that had begun by then belong to no memory.
    settled: Option<(u64, u64)>,
    pub decided: Decided<D>,
}

impl<'k, D: GenerationPolicy> Talk<'k, D> {
    pub fn new(kinds: &'k Kinds, unit: u64, by: D) -> Talk<'k, D> {
        Talk {
            kinds,
            unit,
            cutter: Cutter::new(unit, Sums::default()),
            to_fast: false,
            settled: None,
            decided: Decided {
                pid: 0,
                reported: false,
                intervals: 0,
                allocated: 0,
                by,
            },
        }
    }

    pub fn kinds(&self) -> &'k Kinds {
        self.kinds
    }

    /// Handles a line of the agent, at a time since the start of the command. `free` returns the available fast memory. Returns the
    /// answer.
    pub fn hear(&mut self, line: &str, now: Duration, free: &dyn Fn() -> u64) -> Option<String> {
        let (what, rest) = line.split_once(' ')?;
        let words = rest.split_ascii_whitespace();
        let words: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        match (what, &words[..]) {
            ("machine", &[pid]) => {
                self.decided.pid = pid as u32;
                None
            }
            ("moved", &[bytes, nanos, elsewhere_bytes, pauses, reports]) => {
                self.settled = Some((pauses, reports));
                self.decided.by.moved(&GenerationMove {
                    now,
                    fast: self.to_fast,
                    bytes,
                    took: Duration::from_nanos(nanos),
                    elsewhere_bytes,
                });
                None
            }
            ("came", &[pauses, allocated, ran_ns, reports, reported_ns, old]) => {
                self.decided.allocated = allocated;
                let by_allocation = Sums {
                    work: allocated,
                    nanos: ran_ns,
                };
                let by_reports = Sums {
                    work: reports,
                    nanos: reported_ns,
                };
                let to = self.came(
                    (pauses, reports),
                    by_allocation,
                    by_reports,
                    |talk, took| {
                        talk.decided.intervals += 1;
                        talk.decided.by.interval(&Interval {
                            id: talk.decided.intervals,
                            took,
                            now,
                            old_bytes: old,
                            free_bytes: free(),
                        })
                    },
                    now,
                );
                Some(match to {
                    None => "stay\n".into(),
                    Some(fast) => {
                        self.to_fast = fast;
                        let nodes = self.kinds.of_tier(u8::from(!fast));
                        format!("move {}\n", Kinds::list(nodes))
                    }
                })
            }
            _ => None,
        }
    }

    fn came(
        &mut self,
        (pauses, reports): (u64, u64),
        by_allocation: Sums,
        by_reports: Sums,
        mut ended: impl FnMut(&mut Self, Duration) -> Option<bool>,
        now: Duration,
    ) -> Option<bool> {
        if reports > 0 && !self.decided.reported {
            self.decided.reported = true;
            self.cutter = Cutter::new(1, by_reports);
            self.decided.by.forget(now);
        }
        let (sums, unit) = match self.decided.reported {
            true => (by_reports, 1),
            false => (by_allocation, self.unit),
        };
        if let Some((pauses_then, reports_then)) = self.settled {
            let over = match self.decided.reported {
                true => reports > reports_then,
                false => pauses > pauses_then,
            };
            if over {
                self.cutter = Cutter::new(unit, sums);
                self.settled = None;
            }
            return None;
        }
        let times: Vec<u64> = self.cutter.until(sums).collect();
        let mut times = times.into_iter().map(Duration::from_nanos);
        times.find_map(|took| ended(self, took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says fast after each second interval in slow memory and slow after each second one in fast memory, and remembers all.
    #[derive(Default)]
    struct Turns {
        fast: bool,
        heard: Vec<(bool, Duration)>,
        told: Vec<GenerationMove>,
        forgot: u32,
    }

    impl GenerationPolicy for Turns {
        fn interval(&mut self, interval: &Interval) -> Option<bool> {
            self.heard.push((self.fast, interval.took));
            let turn = self.heard.len().is_multiple_of(2);
            self.fast ^= turn;
            turn.then_some(self.fast)
        }

        fn forget(&mut self, _: Duration) {
            self.forgot += 1;
        }

        fn moved(&mut self, moved: &GenerationMove) {
            self.told.push(*moved);
        }
    }

    fn kinds() -> Kinds {
        Kinds {
            fast: vec![0, 2],
            slow: vec![1],
        }
    }

    fn hear(talk: &mut Talk<'_, Turns>, line: &str) -> Option<String> {
        talk.hear(line, Duration::ZERO, &|| 0)
    }

    #[test]
    fn what_was_under_way_while_pages_moved_belongs_to_no_memory() {
        let kinds = kinds();
        let mut talk = Talk::new(&kinds, 100, Turns::default());
        assert_eq!(hear(&mut talk, "machine 7"), None);
        assert_eq!(hear(&mut talk, "came 1 100 10 0 0 5").unwrap(), "stay\n");
        assert_eq!(
            hear(&mut talk, "came 2 200 30 0 0 5").unwrap(),
            "move 0+2\n"
        );
        // Two collections by the end of the move; the third is the first whose time is counted from.
        assert_eq!(hear(&mut talk, "moved 4096 1000 0 2 0"), None);
        assert_eq!(hear(&mut talk, "came 3 400 9000 0 0 5").unwrap(), "stay\n");
        assert_eq!(
            hear(&mut talk, "came 4 600 9080 0 0 5").unwrap(),
            "move 1\n"
        );
        let turns = &talk.decided.by;
        let ns = Duration::from_nanos;
        let took = [
            (false, ns(10)),
            (false, ns(20)),
            (true, ns(40)),
            (true, ns(40)),
        ];
        assert_eq!(turns.heard, took);
        assert_eq!((turns.told.len(), turns.told[0].fast), (1, true));
        assert_eq!((talk.decided.pid, talk.decided.intervals), (7, 4));
    }

    #[test]
    fn a_program_that_reports_is_judged_by_its_reports_alone() {
        let kinds = kinds();
        let mut talk = Talk::new(&kinds, 100, Turns::default());
        hear(&mut talk, "came 1 100 10 0 0 5");
        // The first report: allocation counts no more, and what was measured by it is forgotten.
        hear(&mut talk, "came 2 900 20 1 70 5");
        assert_eq!(
            (talk.decided.by.forgot, talk.decided.by.heard.len()),
            (1, 1)
        );
        let answer = hear(&mut talk, "came 3 990 30 2 75 5");
        assert_eq!(answer.unwrap(), "move 0+2\n");
        hear(&mut talk, "moved 0 0 0 9 3");
        // The third report was under way; the fourth ends it.
        assert_eq!(hear(&mut talk, "came 3 990 30 3 75 5").unwrap(), "stay\n");
        assert_eq!(talk.decided.by.heard.len(), 2);
        hear(&mut talk, "came 3 990 30 4 95 5");
        hear(&mut talk, "came 3 990 30 5 101 5");
        let last = talk.decided.by.heard.last().unwrap();
        assert_eq!(*last, (true, Duration::from_nanos(6)));
    }

    #[test]
    fn what_is_no_line_of_an_agent_is_not_answered() {
        let kinds = kinds();
        let mut talk = Talk::new(&kinds, 100, Turns::default());
        for line in ["", "came", "came 1 2 x", "moved 1", "went 1 2 3 4 5 6"] {
            assert_eq!(hear(&mut talk, line), None, "{line:?}");
        }
    }
}
