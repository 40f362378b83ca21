//! Performance impact-guided memory allocation (Akram, TACO 2021, section 6): which memory old objects are to be in,
//! found out by trying both.
//!
//! ```text
//!           intervals of the warm-up     all instances are ready
//!   +---------+             +---------+                      +--------+
//!   | default |------------>| prepare |--------------------->| sample |  N intervals in the memory of now,
//!   +---------+             +---------+                      +--------+  N in the other one
//!                                ^                               |
//!                   time is over |                               | T slow / T fast > alpha ? fast : slow
//!                           +----------+     objects are     +---------+
//!                           | hold off |<--------------------| cleanup |
//!                           +----------+     in their memory +---------+
//! ```
//!
//! A state machine without a clock: time comes with what the program reports.

use std::fmt;
use std::time::Duration;

use crate::{Interval, ReportError, Tier};

/// The settings that the paper calls alpha, N_i and hold-off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PimaSettings {
    /// Fast memory is chosen if the program is slower by more than this factor in slow memory. At least 1.
    pub alpha: f64,
    /// Intervals per memory in a sample. At least 1.
    pub intervals: u32,
    /// Time from a decision to the next sample.
    pub hold_off: Duration,
    /// Intervals before the first sample: what a program does at first may be unlike all that comes. At least 1, which shows that it
    /// reports them.
    pub warm_up: u32,
    /// Sampling begins when [`Pima::start`] is called, because other instances are to sample at the same time.
    pub coordinated: bool,
}

impl Default for PimaSettings {
    /// Those of section 6.4: highest accuracy at 1.5, two intervals, 50 seconds.
    fn default() -> PimaSettings {
        PimaSettings {
            alpha: 1.5,
            intervals: 2,
            hold_off: Duration::from_secs(50),
            warm_up: 1,
            coordinated: false,
        }
    }
}

/// Invalid settings.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PimaError {
    /// A threshold that would choose fast memory where it is slower.
    #[error("pima: alpha is {0}: it is a slowdown, and must be at least 1")]
    Alpha(f64),
    /// Nothing to compare.
    #[error("pima: a sample needs at least 1 interval")]
    NoIntervals,
}

/// The five phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The program warms up, or has not reported anything yet: old objects are in slow memory.
    Default,
    /// Ready to sample.
    Prepare,
    /// Measuring with old objects in this memory.
    Sample(Tier),
    /// The memory is chosen, and objects move there.
    Cleanup(Tier),
    /// The choice holds.
    HoldOff(Tier),
}

/// A phase that began, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When, by the program's clock.
    pub at: Duration,
    /// The phase.
    pub phase: Phase,
    /// A note on it.
    pub note: Note,
}

/// The reason for a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note {
    /// The one before ended.
    Nothing,
    /// Objects were moved.
    Moved {
        /// Their bytes.
        bytes: u64,
        /// For how long the program stood still.
        took: Duration,
    },
    /// A decision by what was sampled.
    Measured {
        /// Mean time of an interval in slow memory.
        slow: Duration,
        /// The same in fast memory.
        fast: Duration,
        /// The setting that the ratio was compared with.
        alpha: f64,
        /// Fast memory that was lacking, whatever the ratio.
        lacking: Option<Room>,
    },
    /// Fast memory was not even tried.
    NoRoom(Room),
}

/// The fast memory that a choice would take, and the memory that is available. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Objects that would move there, at most.
    pub need: u64,
    /// Fast memory that is free for them.
    pub left: u64,
}

impl Room {
    /// Fast memory without a limit.
    pub const PLENTY: Room = Room {
        need: 0,
        left: u64::MAX,
    };

    fn lacking(self) -> Option<Room> {
        (self.need > self.left).then_some(self)
    }
}

/// The decision core. See the file's top.
#[derive(Clone, Debug)]
pub struct Pima {
    settings: PimaSettings,
    phase: Phase,
    /// Where survivors go and old objects are to be.
    memory: Tier,
    /// Objects are on their way to `memory` since then.
    moving: Option<Duration>,
    /// Sums of the sample: intervals and time, for slow and fast memory.
    slow: Sum,
    fast: Sum,
    hold_until: Duration,
    /// Intervals that were reported.
    reported: u64,
    last: Option<(u64, Duration)>,
    log: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    intervals: u32,
    time: Duration,
}

impl Sum {
    fn mean(self) -> Duration {
        self.time / self.intervals.max(1)
    }
}

impl Pima {
    /// In the default phase, with all old objects in slow memory.
    ///
    /// # Errors
    /// If alpha is below 1 or a sample has no intervals.
    pub fn new(settings: PimaSettings) -> Result<Pima, PimaError> {
        // Written so that NaN is refused too.
        if !matches!(settings.alpha.partial_cmp(&1.0), Some(o) if o.is_ge()) {
            return Err(PimaError::Alpha(settings.alpha));
        }
        if settings.intervals == 0 {
            return Err(PimaError::NoIntervals);
        }
        let mut pima = Pima {
            settings,
            phase: Phase::Default,
            memory: Tier::SLOW,
            moving: None,
            slow: Sum::default(),
            fast: Sum::default(),
            hold_until: Duration::ZERO,
            reported: 0,
            last: None,
            log: Vec::new(),
        };
        pima.enter(Phase::Default, Duration::ZERO, Note::Nothing);
        Ok(pima)
    }

    /// The memory that old objects are to be in, and survivors go to.
    pub fn memory(&self) -> Tier {
        self.memory
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it begins its samples together with others.
    pub fn is_coordinated(&self) -> bool {
        self.settings.coordinated
    }

    /// Every phase that began, in order.
    pub fn log(&self) -> &[Entry] {
        &self.log
    }

    /// The program finished an interval. `Some` is a memory that old objects are to move to now;
    /// [`Pima::moved`] says that they did. Without `room` fast memory is neither tried nor chosen.
    ///
    /// # Errors
    /// If the report is out of order. Nothing changes then.
    pub fn interval(
        &mut self,
        interval: Interval,
        room: Room,
    ) -> Result<Option<Tier>, ReportError> {
        let Interval { id, now, .. } = interval;
        if let Some((last, at)) = self.last {
            if id <= last {
                return Err(ReportError::Order { id, last });
            }
            if now < at {
                return Err(ReportError::Clock { id, now, last: at });
            }
        }
        self.last = Some((id, now));
        self.reported += 1;
        match self.phase {
            // The program's side of the handshake: it reports intervals, so it can be sampled.
            Phase::Default if self.reported >= u64::from(self.settings.warm_up) => {
                self.prepare(now);
            }
            Phase::HoldOff(_) if now >= self.hold_until => self.prepare(now),
            // An interval during which objects moved belongs to neither memory.
            Phase::Sample(memory) if self.moving.is_none() => {
                return Ok(self.count(memory, &interval, room));
            }
            _ => {}
        }
        Ok(None)
    }

    /// All instances are ready: this one begins to sample. Without effect in another phase than [`Phase::Prepare`].
    pub fn start(&mut self, now: Duration) {
        if self.phase == Phase::Prepare {
            (self.slow, self.fast) = (Sum::default(), Sum::default());
            // The memory of now comes first: nothing has to move for it.
            self.enter(Phase::Sample(self.memory), now, Note::Nothing);
        }
    }

    /// Earlier measurements of this sample were taken under other conditions than later ones: the sample
    /// begins again, in the memory of now.
    pub fn forget(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Sample(_)) && self.moving.is_none() {
            (self.slow, self.fast) = (Sum::default(), Sum::default());
            self.enter(Phase::Sample(self.memory), now, Note::Nothing);
        }
    }

    /// At `now`, `bytes` of old objects had migrated to [`Pima::memory`].
    pub fn moved(&mut self, now: Duration, bytes: u64) {
        let Some(since) = self.moving.take() else {
            return;
        };
        let took = now.saturating_sub(since);
        let note = Note::Moved { bytes, took };
        match self.phase {
            Phase::Sample(_) => self.enter(Phase::Sample(self.memory), now, note),
            Phase::Cleanup(choice) => self.hold_off(choice, now, note),
            _ => {}
        }
    }

    fn prepare(&mut self, now: Duration) {
        self.enter(Phase::Prepare, now, Note::Nothing);
        if !self.settings.coordinated {
            self.start(now);
        }
    }

    fn count(&mut self, memory: Tier, interval: &Interval, room: Room) -> Option<Tier> {
        let sum = match memory {
            Tier::FAST => &mut self.fast,
            _ => &mut self.slow,
        };
        sum.intervals += 1;
        sum.time += interval.load + interval.update;
        if sum.intervals < self.settings.intervals {
            return None;
        }
        let other = match memory {
            Tier::FAST => (Tier::SLOW, self.slow),
            _ => (Tier::FAST, self.fast),
        };
        let now = interval.now;
        if other.1.intervals > 0 {
            return self.decide(memory, now, room);
        }
        if let (Tier::FAST, Some(room)) = (other.0, room.lacking()) {
            self.enter(Phase::Cleanup(memory), now, Note::NoRoom(room));
            self.hold_off(memory, now, Note::Nothing);
            return None;
        }
        self.memory = other.0;
        self.moving = Some(now);
        Some(other.0)
    }

    fn decide(&mut self, current: Tier, now: Duration, room: Room) -> Option<Tier> {
        let (slow, fast) = (self.slow.mean(), self.fast.mean());
        let alpha = self.settings.alpha;
        let pays = slow.as_secs_f64() > alpha * fast.as_secs_f64();
        let lacking = room.lacking().filter(|_| pays);
        let choice = match pays && lacking.is_none() {
            true => Tier::FAST,
            false => Tier::SLOW,
        };
        let note = Note::Measured {
            slow,
            fast,
            alpha,
            lacking,
        };
        self.enter(Phase::Cleanup(choice), now, note);
        self.memory = choice;
        if choice == current {
            self.hold_off(choice, now, Note::Nothing);
            return None;
        }
        self.moving = Some(now);
        Some(choice)
    }

    fn hold_off(&mut self, choice: Tier, now: Duration, note: Note) {
        self.hold_until = now.saturating_add(self.settings.hold_off);
        self.enter(Phase::HoldOff(choice), now, note);
    }

    fn enter(&mut self, phase: Phase, at: Duration, note: Note) {
        self.phase = phase;
        self.log.push(Entry { at, phase, note });
    }
}

impl fmt::Display for Entry {
    /// One line for a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |tier| if tier == Tier::FAST { "fast" } else { "slow" };
        write!(f, "pima at {:.3} s: ", self.at.as_secs_f64())?;
        match self.phase {
            Phase::Default => write!(f, "default, old objects in slow memory"),
            Phase::Prepare => write!(f, "prepare"),
            Phase::Sample(tier) => write!(f, "sample {} memory", name(tier)),
            Phase::Cleanup(tier) => write!(f, "cleanup, choose {} memory", name(tier)),
            Phase::HoldOff(tier) => write!(f, "hold off in {} memory", name(tier)),
        }?;
        let millis = |time: Duration| 1e3 * time.as_secs_f64();
        match self.note {
            Note::Nothing => Ok(()),
            Note::Moved { bytes, took } => {
                let (mib, took) = (mib(bytes), millis(took));
                write!(f, ": {mib:.1} MiB moved in {took:.3} ms")
            }
            Note::Measured {
                slow,
                fast,
                alpha,
                lacking,
            } => {
                let (slow, fast) = (millis(slow), millis(fast));
                // Intervals without any time say nothing.
                let ratio = if fast > 0.0 { slow / fast } else { 1.0 };
                let than = if ratio > alpha {
                    "more than"
                } else {
                    "at most"
                };
                write!(
                    f,
                    ": {slow:.3} ms in slow, {fast:.3} ms in fast, {ratio:.2} times, {than} alpha {alpha}"
                )?;
                lacking.map_or(Ok(()), |room| write!(f, ", but {room}"))
            }
            Note::NoRoom(room) => write!(f, ": {room}"),
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (need, left) = (mib(self.need), mib(self.left));
        write!(
            f,
            "{need:.1} MiB do not fit into {left:.1} MiB of fast memory"
        )
    }
}

/// Has several instances begin their samples together (section 6.2, prepare): what one measures depends on what the
/// others do to the memories.
#[derive(Clone, Debug, Default)]
pub struct Coordinator {
    /// Instances that run, and whether each is ready.
    instances: std::collections::BTreeMap<u32, bool>,
}

impl Coordinator {
    /// An instance begins to run.
    pub fn join(&mut self, instance: u32) {
        self.instances.insert(instance, false);
    }

    /// An instance is in [`Phase::Prepare`]. Gives the instances that are to [start](Pima::start): all, or none yet.
    pub fn ready(&mut self, instance: u32) -> Vec<u32> {
        self.instances.insert(instance, true);
        self.whoever_may_start()
    }

    /// An instance ended: no other one waits for it any more. Returns the instances that are to start.
    pub fn leave(&mut self, instance: u32) -> Vec<u32> {
        self.instances.remove(&instance);
        self.whoever_may_start()
    }

    fn whoever_may_start(&mut self) -> Vec<u32> {
        if !self.instances.values().all(|&ready| ready) {
            return Vec::new();
        }
        self.instances.values_mut().for_each(|ready| *ready = false);
        self.instances.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// A program whose intervals take `slow` and `fast` milliseconds, and how much of it the core decides on.
    struct Program {
        pima: Pima,
        now: Duration,
        id: u64,
        /// Memory of each interval, and whether the core held off.
        ran: Vec<(Tier, Phase)>,
        moves: u32,
        room: Room,
    }

    impl Program {
        fn new(settings: PimaSettings) -> Program {
            Program {
                pima: Pima::new(settings).unwrap(),
                now: Duration::ZERO,
                id: 0,
                ran: Vec::new(),
                moves: 0,
                room: Room::PLENTY,
            }
        }

        fn run(&mut self, intervals: u32, mut takes: impl FnMut(Tier, Duration) -> Duration) {
            for _ in 0..intervals {
                let time = takes(self.pima.memory(), self.now);
                self.ran.push((self.pima.memory(), self.pima.phase()));
                self.now += time;
                self.id += 1;
                let interval = Interval {
                    id: self.id,
                    load: time / 3,
                    update: time - time / 3,
                    now: self.now,
                };
                if let Some(to) = self.pima.interval(interval, self.room).unwrap() {
                    assert_eq!(to, self.pima.memory());
                    self.moves += 1;
                    self.now += 100 * MS;
                    self.pima.moved(self.now, 3 << 20);
                }
            }
        }

        fn choices(&self) -> Vec<Tier> {
            let chosen = |entry: &Entry| match entry.phase {
                Phase::Cleanup(tier) => Some(tier),
                _ => None,
            };
            self.pima.log().iter().filter_map(chosen).collect()
        }
    }

    fn of(slow: u32, fast: u32) -> impl FnMut(Tier, Duration) -> Duration {
        move |memory, _| MS * if memory == Tier::FAST { fast } else { slow }
    }

    #[test]
    fn the_five_phases_in_order() {
        let mut program = Program::new(PimaSettings {
            hold_off: 10 * MS,
            ..PimaSettings::default()
        });
        program.run(6, of(20, 10));
        let lines: Vec<String> = program.pima.log().iter().map(Entry::to_string).collect();
        assert_eq!(
            lines,
            [
                "pima at 0.000 s: default, old objects in slow memory",
                "pima at 0.020 s: prepare",
                "pima at 0.020 s: sample slow memory",
                "pima at 0.160 s: sample fast memory: 3.0 MiB moved in 100.000 ms",
                "pima at 0.180 s: cleanup, choose fast memory: 20.000 ms in slow, 10.000 ms in fast, 2.00 times, more than alpha 1.5",
                "pima at 0.180 s: hold off in fast memory",
                "pima at 0.190 s: prepare",
                "pima at 0.190 s: sample fast memory",
            ]
        );
        assert_eq!(program.moves, 1, "the chosen memory is the sampled one");
    }

    /// A program whose first intervals are alike in both memories, and later ones are not.
    #[test]
    fn what_a_program_does_at_first_is_not_sampled() {
        let chosen = |warm_up| {
            let mut program = Program::new(PimaSettings {
                warm_up,
                ..PimaSettings::default()
            });
            let mut begun = 0;
            program.run(40, |memory, _| {
                begun += 1;
                MS * match memory {
                    Tier::SLOW if begun > 8 => 20,
                    _ => 10,
                }
            });
            program.choices()
        };
        assert_eq!(
            chosen(1),
            [Tier::SLOW],
            "by intervals that never come again"
        );
        assert_eq!(chosen(8), [Tier::FAST]);
    }

    #[test]
    fn without_room_fast_memory_is_neither_tried_nor_chosen() {
        let mut program = Program::new(PimaSettings {
            hold_off: 10 * MS,
            ..PimaSettings::default()
        });
        program.room = Room {
            need: 5 << 20,
            left: 4 << 20,
        };
        program.run(3, of(20, 10));
        let last = |program: &Program| {
            let log = program.pima.log();
            log.iter().rev().map(Entry::to_string).take(2).next_back()
        };
        assert_eq!(
            last(&program).as_deref(),
            Some(
                "pima at 0.060 s: cleanup, choose slow memory: 5.0 MiB do not fit into 4.0 MiB of fast memory"
            )
        );
        assert_eq!(program.moves, 0);
        // There is room, and it is chosen; then the program grows.
        program.room = Room::PLENTY;
        program.run(5, of(20, 10));
        assert_eq!(program.pima.phase(), Phase::HoldOff(Tier::FAST));
        program.room.left = 0;
        program.room.need = 1 << 20;
        program.run(5, of(20, 10));
        assert_eq!(program.pima.phase(), Phase::HoldOff(Tier::SLOW));
        let says = last(&program).unwrap();
        assert!(
            says.ends_with("2.00 times, more than alpha 1.5, but 1.0 MiB do not fit into 0.0 MiB of fast memory"),
            "{says}"
        );
    }

    #[test]
    fn reports_out_of_order_change_nothing() {
        let mut pima = Pima::new(PimaSettings::default()).unwrap();
        let report = |id, now| Interval {
            id,
            load: MS,
            update: MS,
            now: MS * now,
        };
        pima.interval(report(5, 10), Room::PLENTY).unwrap();
        pima.interval(report(6, 20), Room::PLENTY).unwrap();
        let before = pima.log().len();
        for (interval, says) in [
            (report(6, 30), "interval 6 was reported after interval 6"),
            (report(1, 30), "interval 1 was reported after interval 6"),
            (report(7, 19), "interval 7 ended at 19ms, before"),
        ] {
            let error = pima
                .interval(interval, Room::PLENTY)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(pima.log().len(), before);
        assert_eq!(
            pima.interval(report(7, 20), Room::PLENTY),
            Ok(Some(Tier::FAST))
        );
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let new = |alpha, intervals| {
            Pima::new(PimaSettings {
                alpha,
                intervals,
                ..PimaSettings::default()
            })
        };
        for alpha in [0.99, 0.0, -1.0, f64::NAN] {
            let error = new(alpha, 2).unwrap_err().to_string();
            assert!(error.contains("must be at least 1"), "{error}");
        }
        assert_eq!(new(1.0, 0).unwrap_err(), PimaError::NoIntervals);
        assert!(new(1.0, 1).is_ok());
    }

    #[test]
    fn instances_begin_together_and_nobody_waits_for_the_dead() {
        let settings = PimaSettings {
            coordinated: true,
            ..PimaSettings::default()
        };
        let mut all: Vec<Program> = (0..3).map(|_| Program::new(settings)).collect();
        let mut coordinator = Coordinator::default();
        (0..3).for_each(|instance| coordinator.join(instance));
        for (instance, intervals) in [(0, 7), (1, 1)] {
            all[instance as usize].run(intervals, of(2, 1));
            assert_eq!(all[instance as usize].pima.phase(), Phase::Prepare);
            assert!(coordinator.ready(instance).is_empty());
        }
        assert_eq!(coordinator.leave(2), [0, 1]);
        for program in &mut all[..2] {
            program.pima.start(program.now);
            assert_eq!(program.pima.phase(), Phase::Sample(Tier::SLOW));
        }
        assert!(coordinator.ready(1).is_empty(), "the next time begins anew");
        assert_eq!(coordinator.ready(0), [0, 1]);
    }

    #[test]
    fn what_was_measured_otherwise_is_not_compared() {
        let mut program = Program::new(PimaSettings::default());
        // The first report begins the sample; then one interval of another measure.
        program.run(2, of(900, 900));
        program.pima.forget(program.now);
        program.run(5, of(3, 1));
        let measured = program
            .pima
            .log()
            .iter()
            .find_map(|entry| match entry.note {
                Note::Measured { slow, fast, .. } => Some((slow, fast)),
                _ => None,
            });
        assert_eq!(measured, Some((MS * 3, MS)));
    }

    proptest! {
        /// A program that does not change is placed once, in the better memory, and every later sample says the same.
        #[test]
        fn constant_programs_are_decided_once(
            slow in 1u32..200, fast in 1u32..100, alpha in 1.0f64..4.0, intervals in 1u32..6, hold_off in 0u32..3000
        ) {
            let hold_off = MS * hold_off;
            let mut program = Program::new(PimaSettings { alpha, intervals, hold_off, ..PimaSettings::default() });
            program.run(400, of(slow, fast));
            let better = if f64::from(slow) > alpha * f64::from(fast) { Tier::FAST } else { Tier::SLOW };
            let choices = program.choices();
            prop_assert!(!choices.is_empty());
            prop_assert!(choices.iter().all(|&tier| tier == better), "{choices:?}");
            // Two moves for each sample but the first at most: there and back.
            prop_assert!(program.moves as usize <= 2 * choices.len() + 2);
            // All phases but samples run in the better memory once it is known.
            let first = program.ran.iter().position(|(_, phase)| matches!(phase, Phase::HoldOff(_)));
            for (memory, phase) in program.ran.iter().skip(first.unwrap_or(usize::MAX)) {
                prop_assert!(*memory == better || matches!(phase, Phase::Sample(_)));
            }
        }

        /// From a decision to the next sample at least the hold-off passes, and both memories are sampled equally.
        #[test]
        fn hold_off_is_respected(
            times in prop::collection::vec((1u32..100, 1u32..100), 1..400), intervals in 1u32..4, hold_off in 0u32..1000
        ) {
            let hold_off = MS * hold_off;
            let mut program = Program::new(PimaSettings { intervals, hold_off, ..PimaSettings::default() });
            let mut next = times.iter();
            program.run(times.len() as u32, |memory, _| {
                let (slow, fast) = next.next().unwrap();
                MS * *if memory == Tier::FAST { fast } else { slow }
            });
            let log = program.pima.log();
            for pair in log.windows(2) {
                prop_assert!(pair[0].at <= pair[1].at);
                if matches!(pair[0].phase, Phase::HoldOff(_)) {
                    prop_assert_eq!(pair[1].phase, Phase::Prepare);
                    prop_assert!(pair[1].at - pair[0].at >= hold_off);
                }
            }
            let sampled = |tier| program.ran.iter().filter(|(_, phase)| *phase == Phase::Sample(tier)).count() as i64;
            prop_assert!((sampled(Tier::SLOW) - sampled(Tier::FAST)).abs() <= i64::from(intervals));
        }

        /// A program that comes to need the other memory is moved there after the next sample.
        #[test]
        fn it_follows_a_program_that_changes(first in 1u32..50, ratio in 2u32..8, hold_off in 1u32..500) {
            let mut program = Program::new(PimaSettings { hold_off: MS * hold_off, ..PimaSettings::default() });
            program.run(200, of(first, first));
            prop_assert_eq!(*program.choices().last().unwrap(), Tier::SLOW);
            program.run(1200, of(first * ratio, first));
            prop_assert_eq!(*program.choices().last().unwrap(), Tier::FAST);
        }
    }
}
