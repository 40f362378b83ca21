//! How many DIMMs hot pages need, by the bandwidth that is measured: a state machine without a clock.
//!
//! ```text
//!   sample, GB/s --> DIMMs that the model gives it --> as now: stay
//!                                                 --> others, twice in a row: remap
//!   after a remap: nothing counts until its pages have moved
//!   after a remap to more DIMMs: did the bandwidth rise, or are they full again? neither --> undo it, and pause
//! ```
//!
//! The model is a table made by a sweep of MemBench: for each number of hot DIMMs, the GB/s from which on they need
//! another one (Olson et al., TACO 2018, section 7.2). The paper's section 8.2.3 asks for remaps to be undone.
//!
//! The governor sees the bandwidth of the DIMMs that are hot now, which is never more than they carry. So a limit above
//! that is never reached, however much the program asks for: limits are shares of the measured capacities.

/// The bandwidth from which on hot DIMMs are full, by their number.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthModel {
    /// GB/s of 1, 2, ... DIMMs; from there on one more DIMM is needed. Ascending.
    limits: Vec<f64>,
}

/// A table that is no model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// No entries.
    #[error(
        "a bandwidth model without limits: give the GB/s of 1, 2, ... hot DIMMs, such as 10.1/12.5/16.3"
    )]
    Empty,
    /// Not a bandwidth, or less than for fewer DIMMs.
    #[error(
        "a bandwidth model with {got} GB/s for {dimms} DIMMs: limits are numbers above 0 that do not fall"
    )]
    Limit {
        /// DIMMs.
        dimms: usize,
        /// The limit given.
        got: f64,
    },
}

impl BandwidthModel {
    /// From the GB/s from which on 1, 2, ... hot DIMMs are full.
    ///
    /// # Errors
    /// None, or one that is no number above 0, or below the one before.
    pub fn new(limits: Vec<f64>) -> Result<BandwidthModel, ModelError> {
        if limits.is_empty() {
            return Err(ModelError::Empty);
        }
        let mut least = 0.0;
        for (i, &got) in limits.iter().enumerate() {
            let dimms = i + 1;
            if !(got.is_finite() && got > 0.0 && got >= least) {
                return Err(ModelError::Limit { dimms, got });
            }
            least = got;
        }
        Ok(BandwidthModel { limits })
    }

    /// The limits, GB/s.
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// Hot DIMMs for a bandwidth: the fewest that sustain it.
    pub fn dimms(&self, gbps: f64) -> usize {
        1 + self.limits.iter().filter(|limit| gbps >= **limit).count()
    }
}

/// The share of the capacity of some DIMMs from which on they count as full: a ratio without a unit, 0 to 1.
///
/// Requests that go to DIMMs by chance do not fill all of them: of `k` DIMMs, `n` requests in flight get `n / (n + k - 1)`
/// of the capacity (a closed network of `k` equal queues; Zahorjan et al., "Balanced Job Bound Analysis", CACM 1982).
/// One request of each of the paper's twelve threads, on four DIMMs: 12 / 15. One for each is an assumption; cores that keep more
/// in flight would have a larger share. With 0.9 SciMark's lu took 1.18 of its time on all DIMMs, and 1.04 with this. With a
/// larger share a program that lacks a DIMM may not get it; with a smaller one DIMMs are awake that could sleep.
pub const SHARE: f64 = 0.8;

impl BandwidthModel {
    /// From the most GB/s that 1, 2, ... hot DIMMs carry, the last number being all of them. The limit of each is
    /// [`SHARE`] of its capacity, and below that of the next one, so that limits rise where a measurement does not.
    /// Numbers of DIMMs that carry as much as any larger one have no limit.
    ///
    /// # Errors
    /// As [`BandwidthModel::new`], where one DIMM carries as much as all.
    pub fn of_capacities(gbps: &[f64]) -> Result<BandwidthModel, ModelError> {
        let most = gbps.iter().copied().fold(0.0, f64::max);
        let few = gbps.iter().take_while(|g| RISE * **g < most);
        let mut limits: Vec<f64> = few.map(|capacity| SHARE * capacity).collect();
        for at in (1..limits.len()).rev() {
            limits[at - 1] = limits[at - 1].min(limits[at] / RISE);
        }
        BandwidthModel::new(limits)
    }
}

/// Result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Stay,
    /// This number of DIMMs is to be hot.
    Remap(usize),
    /// Back to this number: more DIMMs did not raise the bandwidth.
    Undo(usize),
}

/// Bandwidth has risen when it is above this many times the old one: measurements vary by less than 2 % (Olson et al.,
/// section 5).
pub const RISE: f64 = 1.05;
/// Samples that have to agree (the same, section 7.2).
pub const AGREE: u32 = 2;
/// Samples until a remap after which nothing rose counts as useless. An assumption: a rise of [`AGREE`] samples is seen at
/// once, but pages that moved help only when the threads no longer ask for the same ones at the same time.
pub const TRIAL: u32 = 10;
/// Samples without another try after the first undo; twice as many after each further one. An assumption: at the
/// paper's sample a second these are seconds, and a load that has changed unseen is not kept on few DIMMs for ever.
pub const PAUSE: u32 = 8;
/// The longest pause, in samples: an hour of the paper's.
const LONGEST_PAUSE: u32 = 3600;

/// The state machine.
#[derive(Clone, Debug)]
pub struct Governor {
    model: BandwidthModel,
    undoes: bool,
    most: usize,
    hot: usize,
    /// Pages of the last remap moved in the period of the next sample.
    moved: bool,
    /// Another number of DIMMs than now, and how many samples in a row asked for it; their sum in GB/s.
    asked: Option<(usize, u32, f64)>,
    /// The remap that is being judged.
    trial: Option<Trial>,
    /// More DIMMs did not help lately.
    refused: Option<Refusal>,
    /// Samples of the next refusal.
    pause: u32,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// DIMMs before.
    from: usize,
    /// GB/s before.
    was: f64,
    /// Samples since.
    samples: u32,
    /// Samples in a row, up to now, with more bandwidth or with DIMMs that are full again.
    rose: u32,
}

/// More DIMMs are not tried at this bandwidth for some time.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// GB/s.
    at: f64,
    /// Samples that ask in vain.
    left: u32,
}

impl Governor {
    /// With `hot` DIMMs now, of `most`.
    pub fn new(model: BandwidthModel, hot: usize, most: usize, undoes: bool) -> Governor {
        Governor {
            model,
            undoes,
            most: most.max(1),
            hot: hot.clamp(1, most.max(1)),
            moved: false,
            asked: None,
            trial: None,
            refused: None,
            pause: PAUSE,
        }
    }

    /// Hot DIMMs now.
    pub fn hot(&self) -> usize {
        self.hot
    }

    /// The caller changed the number of hot DIMMs (overflow): decisions go on from there.
    pub fn changed(&mut self, hot: usize) {
        if hot != self.hot {
            self.hot = hot.clamp(1, self.most);
            (self.asked, self.trial, self.refused) = (None, None, None);
            self.pause = PAUSE;
        }
    }

    /// Instead of a sample: pages of the last remap were still on their way at the end of the period. Its bandwidth says
    /// little about the program, which was slowed down, and nor does that of the next period. The paper's program
    /// waits for its remap, so that no sample falls into one.
    pub fn moving(&mut self) {
        self.moved = true;
    }

    /// The bandwidth of the last period.
    pub fn sample(&mut self, gbps: f64) -> Decision {
        if std::mem::take(&mut self.moved) {
            return Decision::Stay;
        }
        if let Some(decision) = self.judge(gbps) {
            return decision;
        }
        let wanted = self.model.dimms(gbps).min(self.most);
        if wanted == self.hot || self.refuses(wanted, gbps) {
            self.asked = None;
            return Decision::Stay;
        }
        let (count, sum) = match self.asked {
            Some((same, count, sum)) if same == wanted => (count + 1, sum + gbps),
            _ => (1, gbps),
        };
        if count < AGREE {
            self.asked = Some((wanted, count, sum));
            return Decision::Stay;
        }
        self.trial = (self.undoes && wanted > self.hot).then_some(Trial {
            from: self.hot,
            was: sum / f64::from(count),
            samples: 0,
            rose: 0,
        });
        self.refused = None;
        self.go_to(wanted);
        Decision::Remap(wanted)
    }

    fn go_to(&mut self, hot: usize) {
        self.hot = hot;
        self.asked = None;
        self.moved = true;
    }

    /// Whether this number of DIMMs did not help at this bandwidth, a short while ago.
    fn refuses(&mut self, wanted: usize, gbps: f64) -> bool {
        let Some(refusal) = &mut self.refused else {
            return false;
        };
        if wanted < self.hot || gbps > RISE * refusal.at || refusal.left == 0 {
            return false;
        }
        refusal.left -= 1;
        true
    }

    /// Did the last remap help? `None` once that is settled.
    fn judge(&mut self, gbps: f64) -> Option<Decision> {
        let full = self.model.dimms(gbps).min(self.most) > self.hot;
        let trial = self.trial.as_mut()?;
        trial.samples += 1;
        trial.rose = match full || gbps > RISE * trial.was {
            true => trial.rose + 1,
            false => 0,
        };
        if trial.rose < AGREE && trial.samples < TRIAL {
            return Some(Decision::Stay);
        }
        let trial = self.trial.take()?;
        if trial.rose >= AGREE {
            self.pause = PAUSE;
            return Some(Decision::Stay);
        }
        self.go_to(trial.from);
        self.refused = Some(Refusal {
            at: trial.was,
            left: self.pause,
        });
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        Some(Decision::Undo(trial.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn governor(undoes: bool) -> Governor {
        let model = BandwidthModel::new(vec![10.0, 20.0, 30.0]).unwrap();
        Governor::new(model, 1, 4, undoes)
    }

    fn run(g: &mut Governor, samples: &[f64]) -> Vec<Decision> {
        samples.iter().map(|s| g.sample(*s)).collect()
    }

    use Decision::*;

    #[test]
    fn one_sample_alone_changes_nothing() {
        let mut g = governor(true);
        assert_eq!(run(&mut g, &[5.0, 15.0, 5.0, 25.0, 15.0]), [Stay; 5]);
        assert_eq!(run(&mut g, &[15.0]), [Remap(2)], "two in a row agree");
    }

    #[test]
    fn a_remap_that_helps_stays_and_is_given_back_when_the_load_falls() {
        let mut g = governor(true);
        assert_eq!(run(&mut g, &[11.0, 11.0]), [Stay, Remap(2)]);
        assert_eq!(run(&mut g, &[12.0, 18.0, 18.0]), [Stay; 3]);
        assert_eq!(
            run(&mut g, &[18.0, 18.0, 4.0, 4.0]),
            [Stay, Stay, Stay, Remap(1)]
        );
    }

    #[test]
    fn a_remap_that_does_not_raise_the_bandwidth_is_undone_until_there_is_more_of_it() {
        let mut g = governor(true);
        assert_eq!(
            run(&mut g, &[11.0; 3 + TRIAL as usize])[..2],
            [Stay, Remap(2)]
        );
        assert_eq!(g.hot(), 1, "undone");
        assert_eq!(
            run(&mut g, &[11.0, 11.0, 11.2, 11.1]),
            [Stay; 4],
            "not again at this bandwidth"
        );
        assert_eq!(run(&mut g, &[13.0, 13.0]), [Stay, Remap(2)]);
        let late = [[13.0; TRIAL as usize - 1].as_slice(), &[18.0; 20]].concat();
        assert!(
            run(&mut g, &late).iter().all(|d| *d == Stay),
            "it rises late"
        );
        let mut paper = governor(false);
        assert_eq!(
            run(&mut paper, &[11.0; 6])[1..],
            [Remap(2), Stay, Stay, Stay, Stay]
        );
    }

    #[test]
    fn dimms_that_are_full_again_are_not_taken_back_though_the_bandwidth_did_not_rise() {
        let model = BandwidthModel::new(vec![10.0, 10.4, 30.0]).unwrap();
        let mut g = Governor::new(model, 1, 4, true);
        assert_eq!(run(&mut g, &[10.2, 10.2]), [Stay, Remap(2)]);
        let on = run(&mut g, &[10.5, 10.5, 10.5, 10.5, 10.5]);
        assert_eq!(on, [Stay, Stay, Stay, Stay, Remap(3)]);
    }

    #[test]
    fn what_was_undone_is_tried_again_after_ever_longer_pauses() {
        let mut g = governor(true);
        let all = run(&mut g, &[11.0; 400]);
        let at = |what| (0..400).filter(|&i| all[i] == what).collect::<Vec<usize>>();
        // Two samples that agree, one with pages that moved, those of the trial; one after the undo.
        let tries = at(Remap(2));
        let pauses: Vec<usize> = tries
            .windows(2)
            .map(|w| w[1] - w[0] - 4 - TRIAL as usize)
            .collect();
        assert_eq!(pauses, [8, 16, 32, 64, 128]);
    }

    #[test]
    fn nothing_counts_while_pages_move_nor_does_the_period_in_which_the_last_one_did() {
        let mut g = governor(true);
        run(&mut g, &[11.0, 11.0]);
        for _ in 0..20 {
            g.moving();
        }
        assert_eq!(run(&mut g, &[1.0, 18.0, 18.0]), [Stay; 3]);
        assert_eq!((g.hot(), run(&mut g, &[18.0; 9])), (2, vec![Stay; 9]));
    }

    #[test]
    fn overflow_is_a_new_beginning() {
        let mut g = governor(true);
        run(&mut g, &[15.0]);
        g.changed(2);
        assert_eq!((g.hot(), run(&mut g, &[15.0, 15.0])), (2, vec![Stay, Stay]));
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let says = |limits: &[f64]| BandwidthModel::new(limits.into()).unwrap_err().to_string();
        assert!(says(&[]).contains("without limits"));
        assert!(says(&[0.0]).contains("above 0"));
        assert!(says(&[f64::NAN]).contains("1 DIMMs"));
        assert!(says(&[3.0, 2.0]).contains("2 GB/s for 2 DIMMs"));
        let model = BandwidthModel::new(vec![10.0, 10.0]).unwrap();
        assert_eq!([9.9, 10.0, 11.0].map(|g| model.dimms(g)), [1, 3, 3]);
    }

    #[test]
    fn limits_are_shares_of_what_few_dimms_carry() {
        let limits = |gbps: &[f64]| BandwidthModel::of_capacities(gbps).map(|m| m.limits);
        assert_eq!(limits(&[10.0, 20.0, 30.0]), Ok(vec![8.0, 16.0]));
        assert_eq!(
            limits(&[10.0, 30.0, 30.5, 29.0]),
            Ok(vec![8.0]),
            "two carry as much as any number"
        );
        assert_eq!(
            limits(&[10.0, 9.0, 40.0]),
            Ok(vec![9.0 * SHARE / RISE, 9.0 * SHARE]),
            "a second one is no use: three at once"
        );
        assert_eq!(limits(&[10.0, 10.2]), Err(ModelError::Empty));
        assert_eq!(limits(&[]), Err(ModelError::Empty));
    }

    /// Lets the governor work for a program: the bandwidth of each sample is that which `gives` says for the hot DIMMs.
    fn play(g: &mut Governor, samples: usize, gives: impl Fn(usize) -> f64) -> Vec<Decision> {
        let all = (0..samples).map(|_| {
            let gbps = gives(g.hot());
            g.sample(gbps)
        });
        all.filter(|d| *d != Stay).collect()
    }

    /// Capacities, each by its ratio to the one before.
    fn growing(first: f64, ratios: &[f64]) -> Vec<f64> {
        let next = |sum: &mut f64, ratio: &f64| {
            *sum *= ratio;
            Some(*sum)
        };
        let rest = ratios.iter().scan(first, next);
        std::iter::once(first).chain(rest).collect()
    }

    /// The remap of a run of agreeing samples, without trials: the last [`AGREE`] counted since the last decision.
    fn slow(model: &BandwidthModel, history: &[f64]) -> Vec<Decision> {
        let (mut all, mut hot, mut begin) = (Vec::new(), 1, 0);
        for now in 0..history.len() {
            let first = (now + 1).saturating_sub(AGREE as usize);
            let wants = |at: usize| model.dimms(history[at]).min(4);
            let same = first >= begin && (first..=now).all(|at| wants(at) == wants(now));
            if now + 1 >= AGREE as usize && same && wants(now) != hot {
                hot = wants(now);
                // The next sample is not counted.
                begin = now + 2;
                all.push(Remap(hot));
            } else {
                all.push(Stay);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn it_decides_as_the_whole_history_says(
            // Long runs of alike samples, as programs have them, and noise.
            runs in prop::collection::vec((0u32..45, 1usize..6, 0u32..3), 0..14)
        ) {
            let mut history = Vec::new();
            for (gbps, n, noise) in runs {
                history.extend((0..n).map(|i| f64::from(gbps) + 0.3 * f64::from(noise * (i as u32 % 2))));
            }
            let mut g = governor(false);
            let fast = run(&mut g, &history);
            let model = BandwidthModel::new(vec![10.0, 20.0, 30.0]).unwrap();
            prop_assert_eq!(fast, slow(&model, &history));
        }

        /// Limits rise, and none is above its share of what is carried: a governor that watches full DIMMs sees more.
        #[test]
        fn limits_rise_and_are_never_above_the_capacity(
            gbps in prop::collection::vec(0.1f64..100.0, 1..9)
        ) {
            let most = gbps.iter().copied().fold(0.0, f64::max);
            match BandwidthModel::of_capacities(&gbps) {
                Ok(model) => {
                    let limits = model.limits();
                    prop_assert!(limits.windows(2).all(|w| w[0] < w[1]));
                    prop_assert!(limits.iter().zip(&gbps).all(|(l, c)| *l <= SHARE * c && *l > 0.0));
                    prop_assert!(RISE * gbps[limits.len()] >= most, "enough for everything");
                }
                Err(_) => prop_assert!(RISE * gbps[0] >= most),
            }
        }

        /// A program that fills whatever it gets, give or take the 2 % of the paper's measurements: one DIMM after the
        /// other becomes hot, and no step is reverted.
        #[test]
        fn a_load_that_fills_all_dimms_gets_them_one_by_one_and_keeps_them(
            first in 0.5f64..50.0,
            // A DIMM that adds less than limits leave free is skipped, as the next property allows.
            ratios in prop::collection::vec(1.04 / SHARE..4.0, 1..8),
            noise in prop::collection::vec(0.98f64..1.02, 1..9),
            undoes in any::<bool>(),
        ) {
            let carries = growing(first, &ratios);
            let model = BandwidthModel::of_capacities(&carries).unwrap();
            let mut g = Governor::new(model, 1, carries.len(), undoes);
            let turn = std::cell::Cell::new(0);
            let done = play(&mut g, 300, |hot| {
                turn.set(turn.get() + 1);
                carries[hot - 1] * noise[turn.get() % noise.len()]
            });
            let steps: Vec<Decision> = (2..=carries.len()).map(Remap).collect();
            prop_assert_eq!(done, steps);
        }

        /// Whatever DIMMs carry, such a program gets as many as carry most, and never fewer than before.
        #[test]
        fn a_load_that_fills_all_dimms_ends_on_the_best_number(
            carries in prop::collection::vec(0.5f64..50.0, 1..9)
        ) {
            let most = carries.iter().copied().fold(0.0, f64::max);
            let Ok(model) = BandwidthModel::of_capacities(&carries) else {
                return Ok(());
            };
            let mut g = Governor::new(model, 1, carries.len(), false);
            let mut last = 1;
            for decision in play(&mut g, 100, |hot| carries[hot - 1]) {
                let Remap(hot) = decision else { unreachable!("it undoes nothing") };
                prop_assert!(hot > last);
                last = hot;
            }
            prop_assert!(RISE * carries[g.hot() - 1] >= most);
        }

        /// A program that asks for less and less: the fewest DIMMs that are not full with it, and no more remaps then.
        #[test]
        fn when_the_load_falls_dimms_are_given_back(
            ratios in prop::collection::vec(1.04 / SHARE..4.0, 1..8),
            loads in prop::collection::vec(0.0f64..1.0, 1..5),
            undoes in any::<bool>(),
        ) {
            let carries = growing(10.0, &ratios);
            let model = BandwidthModel::of_capacities(&carries).unwrap();
            let mut g = Governor::new(model.clone(), 1, carries.len(), undoes);
            play(&mut g, 300, |hot| carries[hot - 1]);
            prop_assert_eq!(g.hot(), carries.len());
            let mut loads = loads;
            loads.sort_by(|a, b| b.total_cmp(a));
            for load in loads {
                let load = load * carries[carries.len() - 1];
                let done = play(&mut g, 100, |hot| load.min(carries[hot - 1]));
                prop_assert!(done.len() <= 1, "{:?}", done);
                prop_assert_eq!(g.hot(), model.dimms(load));
            }
        }

        /// For all measurements, there are never two remaps within two samples, and DIMMs stay within their number.
        #[test]
        fn it_never_flutters(history in prop::collection::vec(0.0f64..60.0, 0..60)) {
            let mut g = governor(true);
            let mut last = None;
            for (i, &gbps) in history.iter().enumerate() {
                if g.sample(gbps) != Stay {
                    prop_assert!(last.is_none_or(|l| i - l >= 2));
                    last = Some(i);
                }
                prop_assert!((1..=4).contains(&g.hot()));
            }
        }
    }
}
