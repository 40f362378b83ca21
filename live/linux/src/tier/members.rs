//! The processes of a run, and what is reported of them. A service may start any number of them in a month: those that have ended are
//! kept as far as a report is read by people, and their numbers are given again.

use super::report::TieredProcess;
use std::collections::{BTreeMap, VecDeque};

/// Ended processes that are reported one by one.
const ENDED: usize = 256;

/// A process, and seconds of processor time that the kernel took for watching it.
#[derive(Clone, Debug, Default)]
struct Member {
    /// Its place among all that were ever taken in.
    order: u64,
    report: TieredProcess,
    monitor_seconds: f64,
}

/// Processes by their number in this run.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    living: BTreeMap<u32, Member>,
    /// Numbers that are free again.
    free: Vec<u32>,
    /// Those that ended last.
    ended: VecDeque<Member>,
    /// How many ended before them.
    forgotten: u64,
    forgotten_seconds: f64,
    order: u64,
}

impl Members {
    /// Takes a process in; returns its number.
    pub fn add(&mut self, report: TieredProcess) -> u32 {
        // Numbers from 0 to the most that lived at a time are in use or free.
        let next = self.living.len() as u32;
        let number = self.free.pop().unwrap_or(next);
        self.order += 1;
        let member = Member {
            order: self.order,
            report,
            monitor_seconds: 0.0,
        };
        self.living.insert(number, member);
        number
    }

    /// A process has ended, or is dropped: its number may be given again.
    pub fn end(&mut self, number: u32) -> Option<TieredProcess> {
        let member = self.living.remove(&number)?;
        self.free.push(number);
        let report = member.report.clone();
        self.ended.push_back(member);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.forgotten += 1;
            self.forgotten_seconds += oldest.monitor_seconds;
        }
        Some(report)
    }

    /// A living process.
    pub fn get(&self, number: u32) -> Option<&TieredProcess> {
        self.living.get(&number).map(|member| &member.report)
    }

    /// A living process, to be noted of; with the seconds that watching it has taken so far.
    pub fn watched(&mut self, number: u32, seconds: f64) -> Option<&mut TieredProcess> {
        let member = self.living.get_mut(&number)?;
        member.monitor_seconds = member.monitor_seconds.max(seconds);
        Some(&mut member.report)
    }

    /// Living processes.
    pub fn living(&self) -> impl Iterator<Item = &TieredProcess> {
        self.living.values().map(|member| &member.report)
    }

    /// Living ones, and those that ended last, in the order in which they came.
    pub fn all(&self) -> Vec<TieredProcess> {
        let mut all: Vec<&Member> = self.living.values().chain(&self.ended).collect();
        all.sort_by_key(|member| member.order);
        all.into_iter()
            .map(|member| member.report.clone())
            .collect()
    }

    /// How many are not among [`Members::all`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Seconds of processor time that the kernel took for watching all of them.
    pub fn monitor_seconds(&self) -> f64 {
        let there = self.living.values().chain(&self.ended);
        self.forgotten_seconds + there.map(|m| m.monitor_seconds).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> TieredProcess {
        TieredProcess {
            pid,
            ..TieredProcess::default()
        }
    }

    #[test]
    fn numbers_are_given_again_and_what_is_kept_is_bounded() {
        let mut members = Members::default();
        let stays = members.add(process(1));
        for pid in 2..10_000 {
            let number = members.add(process(pid));
            assert!(number < 2, "{number}");
            assert!(members.watched(number, 0.5).is_some());
            assert_eq!(members.end(number).map(|p| p.pid), Some(pid));
            assert!(members.get(number).is_none());
        }
        let all = members.all();
        assert_eq!((all[0].pid, all.len()), (1, 1 + ENDED));
        assert_eq!(all.last().map(|p| p.pid), Some(9_999));
        assert_eq!(members.forgotten(), 9_998 - ENDED as u64);
        assert_eq!(members.monitor_seconds(), 0.5 * 9_998.0);
        assert_eq!(members.living().count(), 1);
        assert!(members.get(stays).is_some());
        assert!(members.end(7).is_none());
    }

    #[test]
    fn several_that_live_have_numbers_of_their_own() {
        let mut members = Members::default();
        let numbers: Vec<u32> = (0..5).map(|pid| members.add(process(pid))).collect();
        members.end(numbers[1]);
        members.end(numbers[3]);
        let again: Vec<u32> = (5..9).map(|pid| members.add(process(pid))).collect();
        let mut all: Vec<u32> = [numbers[0], numbers[2], numbers[4]].into();
        all.extend(&again);
        all.sort();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    }
}
