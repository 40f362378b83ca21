//! Estimates the whole of a run of which the program gives windows only.
//!
//! Phases with odd numbers are windows; the phase before each warms caches and counts for nothing. Time is taken to go
//! with work (a ratio estimate, Cochran, Sampling Techniques, 1977, chapter 6): the whole takes as much for each
//! instruction as the windows do, all together. The differences between windows give the error of the estimate.

use super::activity::ChannelActivity;
use super::outcome::{Outcome, Phase};
use super::{RankTimes, Snapshot};

/// Accuracy of a run that was simulated in windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Windows.
    pub windows: u32,
    /// Share of the work of the whole run that they are, 0 to 1.
    pub share: f64,
    /// Half-width of the 95 % confidence interval of the whole run's time, as a part of it; `None` if one window is too
    /// few to estimate it.
    pub error: Option<f64>,
    /// Factor from the recorded work to that of the whole run.
    pub times: f64,
    /// Virtual time that the run took on the model, ns: windows, and the warm-up before them.
    pub ran_ns: u64,
}

fn work(phase: &Phase) -> f64 {
    phase.counts.instructions as f64
}

/// Replaces the measurements of windows by estimates for the whole run. `false` if nothing was measured: no window
/// outlasted its warm-up.
pub fn extend(out: &mut Outcome, unseen: u64) -> bool {
    let windows: Vec<&Phase> = out.phases.iter().filter(|p| p.number % 2 == 1).collect();
    let recorded: f64 = out.phases.iter().map(work).sum();
    let seen: Vec<(f64, f64)> = windows.iter().map(|p| (work(p), p.ns() as f64)).collect();
    let measured: f64 = seen.iter().map(|(work, _)| work).sum();
    if measured <= 0.0 || recorded <= 0.0 {
        return false;
    }
    let whole = recorded + unseen as f64;
    let mut all = Phase::default();
    for window in windows {
        add(&mut all, window);
    }
    let ns = seen.iter().map(|(_, ns)| ns).sum::<f64>();
    all.end_ns = ns as u64;
    let all = times(&all, whole / measured);
    let longer = all.end_ns as f64 / out.ns.max(1) as f64;
    let each = whole / recorded;
    out.sampled = Some(Sampled {
        windows: seen.len() as u32,
        share: measured / whole,
        error: error(&seen, measured / whole),
        times: each,
        ran_ns: out.ns,
    });
    out.ns = all.end_ns;
    out.phases = vec![all];
    let long = |ns: &mut u64| *ns = (*ns as f64 * longer) as u64;
    out.thread_ns.iter_mut().for_each(long);
    for counts in &mut out.threads {
        *counts = counts.times(each);
    }
    for stalls in &mut out.thread_stalls {
        *stalls = stalls.times(longer);
    }
    for owner in &mut out.owners {
        *owner = owner.times(each);
    }
    for time in &mut out.code {
        *time = (*time as f64 * each).round() as u64;
    }
    for snapshot in &mut out.snapshots {
        *snapshot = Snapshot {
            now_ns: (snapshot.now_ns as f64 * longer) as u64,
            counts: snapshot.counts.times(longer),
            ..*snapshot
        };
    }
    let activity = out.activity.iter_mut().flatten().flatten();
    activity.for_each(|channel| *channel = channel_times(channel, longer));
    let ranks = out.ranks.iter_mut().flatten().flatten();
    ranks.for_each(|rank: &mut RankTimes| *rank = rank.times(longer));
    true
}

/// How far off the sum of ratios may be, as a part of it, with 95 % confidence; windows are `share` of all.
fn error(seen: &[(f64, f64)], share: f64) -> Option<f64> {
    let more = seen.len().checked_sub(1).filter(|more| *more > 0)?;
    let (work, ns) = seen
        .iter()
        .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let ratio = ns / work;
    let squares: f64 = seen
        .iter()
        .map(|(work, ns)| (ns - ratio * work).powi(2))
        .sum();
    let deviation = (seen.len() as f64 * squares / more as f64 * (1.0 - share)).sqrt();
    Some(student(more) * deviation / ns)
}

/// Student's t for 95 %, two-sided, by degrees of freedom: the usual table (NIST/SEMATECH e-Handbook of Statistical Methods,
/// 1.3.6.7.2), and beyond it a curve that is within 0.01 of it.
fn student(freedom: usize) -> f64 {
    const FEW: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    match FEW.get(freedom - 1) {
        Some(&t) => t,
        None => 1.96 + 2.7 / freedom as f64,
    }
}

fn add(all: &mut Phase, one: &Phase) {
    all.counts.add(&one.counts);
    all.stalls.add(&one.stalls);
    all.awake_ns += one.awake_ns;
    all.moves.add(&one.moves);
    let owners = all.owners.len().max(one.owners.len());
    all.owners.resize(owners, Default::default());
    for (sum, owner) in all.owners.iter_mut().zip(&one.owners) {
        sum.add(owner);
    }
    all.sockets.resize_with(one.sockets.len(), Default::default);
    for (sum, socket) in all.sockets.iter_mut().zip(&one.sockets) {
        sum.add(socket);
    }
    all.channels.resize_with(one.channels.len(), Vec::new);
    for (sums, channels) in all.channels.iter_mut().zip(&one.channels) {
        if sums.is_empty() {
            sums.clone_from(channels);
            continue;
        }
        for (sum, channel) in sums.iter_mut().zip(channels) {
            sum.dram.add(&channel.dram);
            if let (Some(sum), Some(pm)) = (&mut sum.pm, &channel.pm) {
                sum.add(pm);
            }
            for (sum, rank) in sum.ranks.iter_mut().zip(&channel.ranks) {
                sum.add(rank);
            }
        }
    }
}

fn channel_times(channel: &ChannelActivity, factor: f64) -> ChannelActivity {
    ChannelActivity {
        dram: channel.dram.times(factor),
        pm: channel.pm.map(|pm| pm.times(factor)),
        ranks: channel
            .ranks
            .iter()
            .map(|rank| rank.times(factor))
            .collect(),
    }
}

fn times(all: &Phase, factor: f64) -> Phase {
    let channels = |socket: &Vec<ChannelActivity>| {
        let channels = socket.iter().map(|channel| channel_times(channel, factor));
        channels.collect()
    };
    Phase {
        number: 0,
        begin_ns: 0,
        end_ns: (all.end_ns as f64 * factor).round() as u64,
        counts: all.counts.times(factor),
        stalls: all.stalls.times(factor),
        awake_ns: (all.awake_ns as f64 * factor).round() as u64,
        sockets: all.sockets.iter().map(|s| s.times(factor)).collect(),
        channels: all.channels.iter().map(channels).collect(),
        // Moves of a daemon per second scale with time as well.
        moves: all.moves.times(factor),
        owners: all.owners.iter().map(|owner| owner.times(factor)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(number: u64, begin_ns: u64, end_ns: u64, instructions: u64) -> Phase {
        let mut phase = Phase {
            number,
            begin_ns,
            end_ns,
            ..Phase::default()
        };
        phase.counts.instructions = instructions;
        phase
    }

    /// Windows of 100 instructions in 50 and 150 ns, with as much before each that does not count, in a run of 4000: 1 ns an
    /// instruction.
    #[test]
    fn the_whole_is_as_slow_as_the_windows_are_together() {
        let mut out = Outcome {
            phases: vec![
                phase(2, 0, 500, 100),
                phase(3, 500, 550, 100),
                phase(4, 550, 1000, 100),
                phase(5, 1000, 1150, 100),
            ],
            ns: 1150,
            thread_ns: vec![1150],
            ..Outcome::default()
        };
        assert!(extend(&mut out, 3600));
        assert_eq!(
            (out.ns, out.thread_ns[0], out.phases.len()),
            (4000, 4000, 1)
        );
        assert_eq!(out.last().counts.instructions, 4000);
        let sampled = out.sampled.unwrap();
        assert_eq!((sampled.windows, sampled.ran_ns), (2, 1150));
        assert!((sampled.share - 0.05).abs() < 1e-12);
        // 50 ns off each, of 200: the root of 2 times 5000, by 12.71 and the unseen part.
        let expected = 12.71 * (2.0 * 5000.0 * 0.95_f64).sqrt() / 200.0;
        assert!((sampled.error.unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_was_only_warmed_up_tells_nothing() {
        let mut out = Outcome {
            phases: vec![phase(2, 0, 500, 100)],
            ..Outcome::default()
        };
        assert!(!extend(&mut out, 3600));
    }

    #[test]
    fn windows_that_are_alike_leave_no_doubt_and_one_window_leaves_all() {
        assert_eq!(error(&[(100.0, 50.0), (200.0, 100.0)], 0.1), Some(0.0));
        assert_eq!(error(&[(100.0, 50.0)], 0.1), None);
    }
}
