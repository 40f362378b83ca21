//! How many DIMMs hot pages need, by the bandwidth that is measured: a state machine without a clock.
//!
//! ```text
//!   sample, GB/s --> DIMMs that the model gives it --> as now: stay
//!                                                 --> others, twice in a row: remap
//!   after a remap to more DIMMs: did the bandwidth rise? no --> undo it, and do not try again at this bandwidth
//! ```
//!
//! The model is a table made by a sweep of MemBench: the most GB/s that so many hot DIMMs sustain without loss (Olson et al.,
//! TACO 2018, section 7.2). That a remap is undone is what the paper's section 8.2.3 asks for.

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

/// What a sample leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Stay,
    /// So many DIMMs are to be hot.
    Remap(usize),
    /// So many again: more of them did not raise the bandwidth.
    Undo(usize),
}

/// Bandwidth has risen when it is above this many times what it was: measurements vary by less than 2 % (Olson et al., section 5).
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

    /// Somebody else changed the number of hot DIMMs (overflow): decisions go on from there.
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
