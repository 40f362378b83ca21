//! Estimates the whole of a run of which the program gives windows only.
//!
//! Each window stands for what is like it around it: that takes as much time for each instruction as the window does (a stratified
//! estimate, Cochran, Sampling Techniques, 1977, chapter 5). What was seen whole stands for itself. What differs between neighbours
//! that are alike gives the error of the estimate (the same, section 8.9: one window in a stretch, as in a systematic sample).

use super::activity::ChannelActivity;
use super::outcome::{Outcome, Phase};
use super::{OwnerCounts, RankTimes, Snapshot};
use varve_access::Stretch;

/// Accuracy of a run that was simulated in windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Windows.
    pub windows: u32,
    /// Share of the work of the whole run that they are, 0 to 1.
    pub share: f64,
    /// By phase of the outcome, half-width of the 95 % confidence interval of its time, as a part of it; `None` if one window is too
    /// few to estimate it.
    pub errors: Vec<Option<f64>>,
    /// Factor from the recorded work to that of the whole run.
    pub times: f64,
    /// Virtual time that the run took on the model, ns: windows, and the warm-up before them.
    pub ran_ns: u64,
}

/// A window, and what it stands for.
struct Window<'a> {
    phase: &'a Phase,
    /// Which part of the run it belongs to.
    part: u64,
    /// Which others it is like.
    like: u32,
    /// Instructions that it stands for, its own among them.
    covers: f64,
}

impl Window<'_> {
    fn rate(&self) -> f64 {
        self.phase.ns() as f64 / work(self.phase)
    }

    fn unseen(&self) -> f64 {
        self.covers - work(self.phase)
    }
}

fn work(phase: &Phase) -> f64 {
    phase.counts.instructions as f64
}

/// Replaces the measurements of windows by estimates for the whole run, a phase for each of its parts. `false` if nothing was
/// measured: no window outlasted its warm-up.
pub fn extend(out: &mut Outcome, stretches: &[Stretch]) -> bool {
    let phases = std::mem::take(&mut out.phases);
    let windows = windows(&phases, stretches);
    let recorded: f64 = phases.iter().map(work).sum();
    let measured: f64 = windows.iter().map(|window| work(window.phase)).sum();
    let whole: f64 = windows.iter().map(|window| window.covers).sum();
    if measured <= 0.0 {
        return false;
    }
    let (mut parts, mut errors, mut ns): (Vec<Phase>, _, u64) = (Vec::new(), Vec::new(), 0);
    for part in windows.chunk_by(|one, other| one.part == other.part) {
        let mut all = Phase::default();
        for window in part {
            let longer = times(window.phase, window.covers / work(window.phase));
            all.end_ns += longer.end_ns;
            add(&mut all, &longer);
        }
        (all.number, all.begin_ns) = (part[0].part, ns);
        all.end_ns += ns;
        ns = all.end_ns;
        parts.push(all);
        errors.push(error(part));
    }
    let longer = ns as f64 / out.ns.max(1) as f64;
    let each = whole / recorded;
    out.sampled = Some(Sampled {
        windows: windows.len() as u32,
        share: measured / whole,
        errors,
        times: each,
        ran_ns: out.ns,
    });
    for (number, owner) in out.owners.iter_mut().enumerate() {
        let mut sum = OwnerCounts::default();
        parts
            .iter()
            .filter_map(|part| part.owners.get(number))
            .for_each(|counts| sum.add(counts));
        *owner = sum;
    }
    (out.ns, out.phases) = (ns, parts);
    let long = |ns: &mut u64| *ns = (*ns as f64 * longer) as u64;
    out.thread_ns.iter_mut().for_each(long);
    for counts in &mut out.threads {
        *counts = counts.times(each);
    }
    for stalls in &mut out.thread_stalls {
        *stalls = stalls.times(longer);
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

/// The phases that measure, with what each stands for: its stretch, and what was given before it to warm caches.
fn windows<'a>(phases: &'a [Phase], stretches: &[Stretch]) -> Vec<Window<'a>> {
    let mut all: Vec<Window> = Vec::new();
    let mut before = 0.0;
    for phase in phases {
        let stretch = stretches.iter().find(|of| of.phase == phase.number);
        before += work(phase) + stretch.map_or(0.0, |stretch| stretch.unseen as f64);
        if let Some(stretch) = stretch.filter(|_| work(phase) > 0.0) {
            let covers = std::mem::take(&mut before);
            all.push(Window {
                phase,
                part: stretch.part,
                like: stretch.like,
                covers,
            });
        }
    }
    if let Some(last) = all.last_mut() {
        last.covers += before;
    }
    all
}

/// How far off the time of a part of the run may be, as a part of it, with 95 % confidence.
fn error(windows: &[Window]) -> Option<f64> {
    let total: f64 = windows.iter().map(|one| one.rate() * one.covers).sum();
    // What was seen whole is known.
    let seen: Vec<&Window> = windows.iter().filter(|one| one.unseen() > 0.0).collect();
    if seen.is_empty() {
        return Some(0.0);
    }
    if seen.len() < 2 {
        return None;
    }
    let differ =
        |one: &Window, other: &&Window| -> f64 { (one.rate() - other.rate()).powi(2) / 2.0 };
    let variance = |(at, window): (usize, &&Window)| {
        let (before, after) = (seen[..at].iter().rev(), seen[at + 1..].iter());
        let like = |other: &&&Window| other.like == window.like;
        let alike = [before.clone().find(like), after.clone().find(like)];
        // The only one of its kind differs from others at most.
        let near = match alike {
            [None, None] => [before.clone().next(), after.clone().next()],
            near => near,
        };
        let near: Vec<f64> = near.iter().flatten().map(|of| differ(window, of)).collect();
        let near = near.iter().sum::<f64>() / near.len() as f64;
        near * window.unseen() * window.covers
    };
    let deviation = seen.iter().enumerate().map(variance).sum::<f64>().sqrt();
    let sum = |power: i32| seen.iter().map(|one| one.covers.powi(power)).sum::<f64>();
    // Windows of equal weight that would tell as much; differences of neighbours tell two thirds of that.
    let equal = sum(1).powi(2) / sum(2);
    let mut kinds: Vec<u32> = seen.iter().map(|one| one.like).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let freedom = (2.0 * (equal - kinds.len() as f64) / 3.0).round().max(1.0);
    Some(student(freedom as usize) * deviation / total)
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

/// A phase that takes `factor` times as long, with as many times as much of everything.
fn times(all: &Phase, factor: f64) -> Phase {
    let channels = |socket: &Vec<ChannelActivity>| {
        let channels = socket.iter().map(|channel| channel_times(channel, factor));
        channels.collect()
    };
    Phase {
        number: 0,
        begin_ns: 0,
        end_ns: (all.ns() as f64 * factor).round() as u64,
        counts: all.counts.times(factor),
        stalls: all.stalls.times(factor),
        awake_ns: (all.awake_ns as f64 * factor).round() as u64,
        sockets: all.sockets.iter().map(|s| s.times(factor)).collect(),
        channels: all.channels.iter().map(channels).collect(),
        // Moves of a daemon per second scale with time as well.
        moves: all.moves.times(factor),
        owners: all.owners.iter().map(|owner| owner.times(factor)).collect(),
        // Those of some windows are not those of the run.
        latencies: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_access::random::Rng;

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

    fn stretch(phase: u64, unseen: u64, part: u64) -> Stretch {
        Stretch {
            phase,
            unseen,
            part,
            like: 0,
        }
    }

    /// Windows of 100 instructions in 50 and 150 ns, with as much before each that does not count, in a run of 4000: 1 ns an
    /// instruction.
    fn two_windows() -> Outcome {
        Outcome {
            phases: vec![
                phase(2, 0, 500, 100),
                phase(3, 500, 550, 100),
                phase(4, 550, 1000, 100),
                phase(5, 1000, 1150, 100),
            ],
            ns: 1150,
            thread_ns: vec![1150],
            ..Outcome::default()
        }
    }

    #[test]
    fn each_window_stands_for_its_stretch() {
        let mut out = two_windows();
        assert!(extend(
            &mut out,
            &[stretch(3, 1800, 0), stretch(5, 1800, 0)]
        ));
        assert_eq!(
            (out.ns, out.thread_ns[0], out.phases.len()),
            (4000, 4000, 1)
        );
        assert_eq!(out.last().counts.instructions, 4000);
        let sampled = out.sampled.unwrap();
        assert_eq!((sampled.windows, sampled.ran_ns), (2, 1150));
        assert!((sampled.share - 0.05).abs() < 1e-12);
        // 1 ns an instruction between the two: a variance of 0.5.
        let expected = 12.71 * (2.0 * 0.5 * 1900.0 * 2000.0_f64).sqrt() / 4000.0;
        assert!((sampled.errors[0].unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn a_window_may_stand_for_more_than_another() {
        let mut out = two_windows();
        assert!(extend(&mut out, &[stretch(3, 300, 0), stretch(5, 3300, 0)]));
        assert_eq!(out.ns, 500 / 2 + 3500 * 3 / 2);
    }

    #[test]
    fn parts_of_the_run_are_phases_and_what_was_seen_whole_is_sure() {
        let mut out = two_windows();
        out.phases.insert(0, phase(1, 0, 700, 1000));
        let parts = [stretch(1, 0, 0), stretch(3, 1800, 1), stretch(5, 1800, 1)];
        assert!(extend(&mut out, &parts));
        let times = out.phases.iter().map(|p| (p.number, p.begin_ns, p.end_ns));
        assert_eq!(
            times.collect::<Vec<_>>(),
            [(0, 0, 700), (1, 700, 4700)],
            "{:?}",
            out.phases
        );
        let errors = out.sampled.unwrap().errors;
        assert_eq!(errors[0], Some(0.0));
        assert!(errors[1].unwrap() > 1.0);
    }

    #[test]
    fn a_run_that_was_only_warmed_up_tells_nothing() {
        let mut out = Outcome {
            phases: vec![phase(2, 0, 500, 100)],
            ..Outcome::default()
        };
        assert!(!extend(&mut out, &[]));
    }

    #[test]
    fn windows_that_are_alike_leave_no_doubt_and_one_window_leaves_all() {
        let phases = [phase(1, 0, 50, 100), phase(3, 50, 150, 200)];
        let stretches = [stretch(1, 900, 0), stretch(3, 900, 0)];
        assert_eq!(error(&windows(&phases, &stretches)), Some(0.0));
        assert_eq!(error(&windows(&phases[..1], &stretches)), None);
    }

    /// Two phases take turns by chance. Windows lie anywhere, and stand for their phases; the time of the whole run is within the error
    /// that is told, which is a fraction of what it is if nothing is known of phases.
    #[test]
    fn phases_make_the_error_small_and_it_holds() {
        let mut random = Rng::from_state(3);
        let (mut held, mut known, mut unknown, cases) = (0, 0.0, 0.0, 400);
        for _ in 0..cases {
            let slow: Vec<bool> = (0..2000).map(|_| random.below(3) == 0).collect();
            let rate = |slow: bool, chance: u64| if slow { 900 } else { 200 } + chance;
            let run: Vec<u64> = slow.iter().map(|s| rate(*s, random.below(40))).collect();
            let chance = |n: usize| 50 * n + random.below(50) as usize;
            let places: Vec<usize> = (0..40).map(chance).collect();
            let outcome = |phases: bool| {
                let stretches = places.iter().map(|&at| {
                    let like = |&other: &usize| !phases || slow[other] == slow[at];
                    let all = (0..run.len()).filter(like).count();
                    let windows = places.iter().filter(|other| like(other)).count() as u64;
                    Stretch {
                        phase: at as u64 + 1,
                        unseen: 1000 * all as u64 / windows - 1000,
                        part: 0,
                        like: u32::from(phases && slow[at]),
                    }
                });
                let phases = places
                    .iter()
                    .map(|&at| phase(at as u64 + 1, 0, run[at], 1000));
                let mut out = Outcome {
                    phases: phases.collect(),
                    ns: 1,
                    ..Outcome::default()
                };
                assert!(extend(&mut out, &stretches.collect::<Vec<_>>()));
                let error = out.sampled.as_ref().and_then(|sampled| sampled.errors[0]);
                (out.ns as f64, error.unwrap())
            };
            let due: u64 = run.iter().sum();
            let (ns, error) = outcome(true);
            held += u32::from((ns / due as f64 - 1.0).abs() <= error);
            known += error / f64::from(cases);
            unknown += outcome(false).1 / f64::from(cases);
        }
        assert!(held * 10 >= cases * 9, "{held} of {cases}");
        assert!(known < unknown / 4.0, "{known} {unknown}");
    }

    /// Runs whose rate changes in several ways. Windows lie anywhere in stretches that grow with the run, as a recorder has them; the
    /// time of the whole run is within the error that is told in nine of ten cases and more.
    #[test]
    fn the_error_that_is_told_holds() {
        type Rate = fn(&mut Rng, usize) -> u64;
        let kinds: [(&str, Rate); 5] = [
            ("even", |random, _| 500 + random.below(40)),
            ("by chance", |random, _| 200 + random.below(1000)),
            ("ever slower", |random, at| {
                200 + at as u64 / 8 + random.below(50)
            }),
            ("two phases in turns", |random, at| {
                300 + 600 * (at as u64 / 37 % 2) + random.below(60)
            }),
            ("one half is slower", |random, at| {
                300 + 900 * u64::from(at > 5000) + random.below(60)
            }),
        ];
        for (name, rate) in kinds {
            let mut random = Rng::from_state(7);
            let (mut held, mut wide, cases) = (0, 0.0, 400);
            for _ in 0..cases {
                // Ns of 1000 instructions each.
                let run: Vec<u64> = (0..10_000).map(|at| rate(&mut random, at)).collect();
                let (mut phases, mut stretches) = (Vec::new(), Vec::new());
                let mut begin = 100;
                phases.push(phase(1, 0, run[..begin].iter().sum(), 100_000));
                stretches.push(stretch(1, 0, 0));
                while begin < run.len() {
                    let length = (begin / 20).max(5).min(run.len() - begin);
                    let at = begin + random.below(length as u64) as usize;
                    let number = phases.len() as u64 * 2 + 1;
                    phases.push(phase(number, 0, run[at], 1000));
                    stretches.push(stretch(number, 1000 * (length as u64 - 1), 0));
                    begin += length;
                }
                let mut out = Outcome {
                    phases,
                    ns: 1,
                    ..Outcome::default()
                };
                assert!(extend(&mut out, &stretches));
                let due: u64 = run.iter().sum();
                let error = out.sampled.unwrap().errors[0].unwrap();
                held += u32::from((out.ns as f64 / due as f64 - 1.0).abs() <= error);
                wide += error / f64::from(cases);
            }
            assert!(
                held * 10 >= cases * 9,
                "{name}: {held} of {cases}, error {wide}"
            );
            assert!(wide < 0.3, "{name}: an error of {wide} says nothing");
        }
    }
}
