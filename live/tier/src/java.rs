//! PIMA for a virtual machine of this machine: the decision is that of our own heap (`varve_pima::Pima`), the pages are moved by
//! `varve_live`.

use serde::Serialize;
use std::time::Duration;
use varve_live::java::{GenerationMove, GenerationPolicy, Interval, Placing};
use varve_pima::{Pima, PimaSettings, Room, Tier};
use varve_run::Phase;
use varve_run::jvm::{By, Sampled};

/// Where a plan has the memory of a virtual machine in the beginning; `None` if a page policy decides, which `varve tier`
/// follows on this machine.
pub fn placing(plan: &By) -> Option<Placing> {
    let generations = |young, old, outside| Placing::Generations {
        young,
        old,
        outside,
    };
    match *plan {
        By::Fast => Some(generations(true, true, true)),
        By::Ranges {
            young,
            old,
            outside,
        } => Some(generations(young, old, outside)),
        // The default phase: as kg-n.
        By::Sampled(_) => Some(generations(true, false, true)),
        By::Pages(ref policy) if policy == "interleave" => Some(Placing::Interleaved),
        By::Pages(_) => None,
    }
}

/// Decides for one virtual machine.
#[derive(Debug)]
pub struct Sampler {
    pima: Pima,
    moves: Vec<LiveMove>,
}

/// A move of an old generation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LiveMove {
    /// When it was done, s after the command was started.
    pub at_s: f64,
    /// Whether to fast memory.
    pub fast: bool,
    /// Bytes that were moved.
    pub bytes: u64,
    /// How long the moving took, s; the program ran on.
    pub took_s: f64,
    /// Bytes that were somewhere else nevertheless when it was done.
    pub elsewhere_bytes: u64,
}

impl Sampler {
    /// In the default phase. Settings come from [`varve_run::jvm::PLANS`], which has checked them; others are the paper's.
    pub fn new(sampled: &Sampled) -> Sampler {
        let pima = Pima::new(sampled.settings).or_else(|_| Pima::new(PimaSettings::default()));
        Sampler {
            pima: pima.expect("the paper's settings are sound"),
            moves: Vec::new(),
        }
    }

    /// Every phase that began, in order.
    pub fn phases(&self) -> Vec<Phase> {
        self.pima.log().iter().map(Phase::of).collect()
    }

    /// Every move, in order.
    pub fn moves(&self) -> &[LiveMove] {
        &self.moves
    }
}

impl GenerationPolicy for Sampler {
    fn interval(&mut self, interval: &Interval) -> Option<bool> {
        // An old generation in fast memory needs no more of it.
        let need = match self.pima.memory() {
            Tier::FAST => 0,
            _ => interval.old_bytes,
        };
        let room = Room {
            need,
            left: interval.free_bytes,
        };
        let interval = varve_pima::Interval {
            id: interval.id,
            load: Duration::ZERO,
            update: interval.took,
            now: interval.now,
        };
        // Numbers count up and the clock is one: nothing can be out of order.
        let to = self.pima.interval(interval, room).ok().flatten();
        to.map(|tier| tier == Tier::FAST)
    }

    fn forget(&mut self, now: Duration) {
        self.pima.forget(now);
    }

    fn moved(&mut self, moved: &GenerationMove) {
        self.pima.moved(moved.now, moved.bytes);
        self.moves.push(LiveMove {
            at_s: moved.now.as_secs_f64(),
            fast: moved.fast,
            bytes: moved.bytes,
            took_s: moved.took.as_secs_f64(),
            elsewhere_bytes: moved.elsewhere_bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_run::jvm::{By, PLANS};

    /// A program whose intervals take 30 ms in slow and 10 ms in fast memory, with room for its old objects or without.
    fn run(alpha: &str, free_bytes: u64) -> Sampler {
        let plan = PLANS.find(&format!("pima:alpha={alpha}")).unwrap();
        let By::Sampled(sampled) = plan.by else {
            panic!("pima samples")
        };
        let mut sampler = Sampler::new(&sampled);
        let (mut fast, mut now) = (false, Duration::ZERO);
        for id in 1..12 {
            let took = Duration::from_millis(if fast { 10 } else { 30 });
            now += took;
            let interval = Interval {
                id,
                took,
                now,
                old_bytes: 4 << 20,
                free_bytes,
            };
            if let Some(to) = sampler.interval(&interval) {
                fast = to;
                let (bytes, took) = (4 << 20, Duration::from_millis(2));
                sampler.moved(&GenerationMove {
                    now,
                    fast,
                    bytes,
                    took,
                    elsewhere_bytes: 0,
                });
            }
        }
        sampler
    }

    fn choice(sampler: &Sampler) -> Option<bool> {
        sampler.phases().iter().find_map(|phase| phase.fast)
    }

    #[test]
    fn the_old_generation_goes_where_the_program_runs_well() {
        let pays = run("1.5", 1 << 30);
        assert_eq!(choice(&pays), Some(true));
        assert_eq!(
            pays.moves().iter().map(|to| to.fast).collect::<Vec<_>>(),
            [true]
        );
        let slowdown = pays.phases().iter().find_map(|phase| phase.slowdown);
        assert!(slowdown.is_some_and(|times| (times - 3.0).abs() < 1e-9));

        let does_not = run("4", 1 << 30);
        assert_eq!(choice(&does_not), Some(false));
        assert_eq!(
            does_not
                .moves()
                .iter()
                .map(|to| to.fast)
                .collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn fast_memory_without_room_is_not_tried() {
        let full = run("1.5", 1 << 20);
        assert_eq!(full.moves(), []);
        let said: Vec<String> = full.phases().into_iter().map(|phase| phase.line).collect();
        assert!(
            said.iter()
                .any(|line| line.contains("4.0 MiB do not fit into 1.0 MiB")),
            "{said:?}"
        );
    }
}
