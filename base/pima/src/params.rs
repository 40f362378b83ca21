//! The parameters of the state machine.

use crate::{Pima, PimaError, PimaSettings};
use varve_spec::{Param, Values, Want};

/// The parameters of the state machine.
pub const PARAMS: &[Param] = &[ALPHA, INTERVALS, HOLD_OFF, WARM_UP, TOGETHER];

/// A slowdown.
pub const ALPHA: Param = Param::new(
    "alpha",
    Want::Number,
    "1.5",
    "fast memory is chosen if the program is slower by more than this factor in slow memory, at least 1 (section 6.4)",
);
/// Intervals per memory.
pub const INTERVALS: Param = Param::new(
    "intervals",
    Want::Count {
        min: 1,
        max: u64::MAX,
    },
    "2",
    "intervals per memory in a sample, N_i (section 6.4)",
);
/// Time between samples.
pub const HOLD_OFF: Param = Param::new(
    "hold-off",
    Want::Time,
    "50s",
    "time from a decision to the next sample (section 6.4)",
);
/// Intervals before the first sample.
pub const WARM_UP: Param = Param::new(
    "warm-up",
    Want::Count {
        min: 1,
        max: u64::MAX,
    },
    "1",
    "intervals before the first sample: those of the first iteration may be unlike all others",
);
/// Instances that sample at the same time.
pub const TOGETHER: Param = Param::new(
    "together",
    Want::Flag,
    "yes",
    "whether the samples of several instances begin when all of them are ready (section 6.2)",
);

/// The state machine with the settings that were given.
pub fn settled(v: &Values) -> Result<Pima, PimaError> {
    let most = u64::from(u32::MAX);
    Pima::new(PimaSettings {
        warm_up: v.count(WARM_UP.key).min(most) as u32,
        coordinated: v.flag(TOGETHER.key),
        ..settings(v)
    })
}

/// Settings by [`ALPHA`], [`INTERVALS`] and [`HOLD_OFF`], for one instance that samples by itself.
pub fn settings(v: &Values) -> PimaSettings {
    PimaSettings {
        alpha: v.number(ALPHA.key),
        intervals: v.count(INTERVALS.key).min(u64::from(u32::MAX)) as u32,
        hold_off: v.time(HOLD_OFF.key),
        ..PimaSettings::default()
    }
}
