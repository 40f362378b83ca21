//! How many DIMMs hot pages need, by the bandwidth that is measured: a state machine without a clock.
//!
//! ```text
//!   sample, GB/s --> DIMMs that the model gives it --> as now: stay
//!                                                 --> others, twice in a row: remap
//!   after a remap to more DIMMs: did the bandwidth rise? no --> undo it, and do not try again at this bandwidth
//! ```
//!
//! The model is a table made by a sweep of MemBench: for each number of hot DIMMs, the most GB/s that they sustain
//! without loss (Olson et al., TACO 2018, section 7.2). The paper's section 8.2.3 asks for remaps to be undone.

/// The most bandwidth that hot DIMMs sustain, by their number.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthModel {
    /// GB/s of 1, 2, ... DIMMs; beyond the last one more DIMM is needed. Ascending.
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
    /// From the GB/s that 1, 2, ... hot DIMMs sustain.
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

/// One load of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// Bandwidth with all DIMMs, GB/s.
    pub gbps: f64,
    /// How long the load takes on 1, 2, ... hot DIMMs, over its time on all.
    pub slowdown: Vec<f64>,
}

/// Slower than this is a loss: the paper's variation between runs (section 5: less than 2 %), and a little more.
pub const LOSS: f64 = 1.03;

impl BandwidthModel {
    /// From a sweep over loads. A number of DIMMs sustains the load of all DIMMs up to the first load at which it is
    /// slower; the limit is half-way to that. Numbers of DIMMs that lose at no load have none.
    ///
    /// # Errors
    /// As [`BandwidthModel::new`], where not even one DIMM loses, or one loses at every load.
    pub fn of_sweep(points: &[SweepPoint]) -> Result<BandwidthModel, ModelError> {
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.gbps.total_cmp(&b.gbps));
        let most = points.iter().map(|p| p.slowdown.len()).max().unwrap_or(0);
        let mut limits: Vec<f64> = Vec::new();
        for dimms in 0..most {
            let loses = |p: &SweepPoint| p.slowdown.get(dimms).is_some_and(|s| *s > LOSS);
            let Some(first) = points.iter().position(loses) else {
                break;
            };
            let below = first.checked_sub(1).map_or(0.0, |i| points[i].gbps);
            let limit = (below + points[first].gbps) / 2.0;
            // More DIMMs never sustain less: a sweep in which they do is noisy.
            limits.push(limits.last().map_or(limit, |last| limit.max(*last)));
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

/// The state machine.
#[derive(Clone, Debug)]
pub struct Governor {
    model: BandwidthModel,
    undoes: bool,
    most: usize,
    hot: usize,
    /// Another number of DIMMs than now, and how many samples in a row asked for it; their sum in GB/s.
    asked: Option<(usize, u32, f64)>,
    /// The remap that is being judged.
    trial: Option<Trial>,
    /// More DIMMs did not help at this bandwidth.
    refused: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// DIMMs before.
    from: usize,
    /// GB/s before.
    was: f64,
    /// Samples since, the first of which is not counted: pages still moved.
    samples: u32,
    /// Their sum, GB/s.
    sum: f64,
}

impl Governor {
    /// With `hot` DIMMs now, of `most`.
    pub fn new(model: BandwidthModel, hot: usize, most: usize, undoes: bool) -> Governor {
        Governor {
            model,
            undoes,
            most: most.max(1),
            hot: hot.clamp(1, most.max(1)),
            asked: None,
            trial: None,
            refused: None,
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
        }
    }

    /// The bandwidth of the last period.
    pub fn sample(&mut self, gbps: f64) -> Decision {
        if let Some(decision) = self.judge(gbps) {
            return decision;
        }
        let wanted = self.model.dimms(gbps).min(self.most);
        let useless = |at: f64| wanted > self.hot && gbps <= RISE * at;
        if wanted == self.hot || self.refused.is_some_and(useless) {
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
        self.asked = None;
        self.refused = None;
        self.trial = (self.undoes && wanted > self.hot).then_some(Trial {
            from: self.hot,
            was: sum / f64::from(count),
            samples: 0,
            sum: 0.0,
        });
        self.hot = wanted;
        Decision::Remap(wanted)
    }

    /// Did the last remap help? `None` once that is settled.
    fn judge(&mut self, gbps: f64) -> Option<Decision> {
        let trial = self.trial.as_mut()?;
        trial.samples += 1;
        if trial.samples > 1 {
            trial.sum += gbps;
        }
        if trial.samples <= AGREE {
            return Some(Decision::Stay);
        }
        let trial = self.trial.take()?;
        if trial.sum / f64::from(AGREE) > RISE * trial.was {
            return Some(Decision::Stay);
        }
        self.hot = trial.from;
        self.refused = Some(trial.was);
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
            run(&mut g, &[11.0, 11.0, 11.0, 11.0, 11.0]),
            [Stay, Remap(2), Stay, Stay, Undo(1)]
        );
        assert_eq!(
            run(&mut g, &[11.0, 11.0, 11.2, 11.1]),
            [Stay; 4],
            "not again at this bandwidth"
        );
        assert_eq!(run(&mut g, &[13.0, 13.0]), [Stay, Remap(2)]);
        let mut paper = governor(false);
        assert_eq!(
            run(&mut paper, &[11.0; 6])[1..],
            [Remap(2), Stay, Stay, Stay, Stay]
        );
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
    fn a_sweep_says_up_to_where_few_dimms_are_enough() {
        let point = |gbps, slowdown: [f64; 3]| SweepPoint {
            gbps,
            slowdown: slowdown.into(),
        };
        let sweep = [
            point(40.0, [3.0, 1.5, 1.0]),
            point(4.0, [1.0, 1.0, 1.0]),
            point(12.0, [1.2, 1.02, 1.0]),
            point(8.0, [1.01, 1.0, 1.0]),
        ];
        let model = BandwidthModel::of_sweep(&sweep).unwrap();
        assert_eq!(model.limits(), [10.0, 26.0], "three lose nowhere");
        assert_eq!(
            BandwidthModel::of_sweep(&sweep[1..2]),
            Err(ModelError::Empty)
        );
    }

    /// The same, computed from the whole history each time: the last decision, and the samples since.
    fn slow(model: &BandwidthModel, history: &[f64]) -> Vec<Decision> {
        let (mut all, mut hot, mut refused, mut i) = (Vec::new(), 1, None::<f64>, 0);
        while i < history.len() {
            // From here on nothing is pending: look for two neighbours that agree.
            let wants = |j: usize| {
                let wanted = model.dimms(history[j]).min(4);
                let useless = wanted > hot && refused.is_some_and(|r| history[j] <= RISE * r);
                (wanted != hot && !useless).then_some(wanted)
            };
            let found =
                (i + 1..history.len()).find(|&j| wants(j).is_some() && wants(j) == wants(j - 1));
            let Some(j) = found else {
                all.resize(history.len(), Stay);
                break;
            };
            all.resize(j, Stay);
            let (to, was) = (wants(j).unwrap(), (history[j - 1] + history[j]) / 2.0);
            all.push(Remap(to));
            refused = None;
            let from = std::mem::replace(&mut hot, to);
            i = j + 1;
            if to > from {
                let judged = (i + 3).min(history.len());
                all.resize(judged, Stay);
                if judged == i + 3 && (history[i + 1] + history[i + 2]) / 2.0 <= RISE * was {
                    *all.last_mut().unwrap() = Undo(from);
                    (hot, refused) = (from, Some(was));
                }
                i = judged;
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
            let mut g = governor(true);
            let fast = run(&mut g, &history);
            let model = BandwidthModel::new(vec![10.0, 20.0, 30.0]).unwrap();
            prop_assert_eq!(fast, slow(&model, &history));
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
