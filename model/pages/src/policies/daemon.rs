//! Shared by policies with daemons: sampling, the thresholds of heat, and the limit of moves in a period. `dynamic` and
//! `hotset` have the same (Johnny Cache, section 4.3: a fair comparison).

use varve_access::Daemons;

use varve_spec::{Error, Param, Values, Want};

use crate::heat::Thresholds;

/// The parameter for the number of accesses per sample.
pub const SAMPLE_PERIOD: &str = "sample-period";
/// The parameter for the period of a daemon.
pub const PERIOD: &str = "period";

/// The parameter for the wake-ups after which heat is halved.
pub const DECAY: &str = "decay";

/// The parameters, each with its source.
pub const PARAMS: &[Param] = &[
    Param::scaled(
        SAMPLE_PERIOD,
        Want::COUNT,
        "10k",
        "one access in this many is sampled, 0 for none; HeMem's default according to Johnny Cache, section 5.4.2",
    ),
    Param::scaled(
        PERIOD,
        Want::Time,
        "10ms",
        "time between two wake-ups of the migration daemon, 0s for none; HeMem (SOSP 2021), its artifact's PEBS_KSWAPD_INTERVAL",
    ),
    Param::new(
        "threads",
        Want::Count { min: 1, max: 2 },
        "2",
        "daemon threads: one samples, one migrates; Johnny Cache, section 5.2",
    ),
    Param::new(
        "hot-loads",
        Want::Count { min: 1, max: 255 },
        "8",
        "a page is hot from this many sampled loads on; HeMem's HOT_READ_THRESHOLD in April 2021 (616395e) and at artifact evaluation (5e7c68f); 4 from October 2021",
    ),
    Param::new(
        "hot-stores",
        Want::Count { min: 1, max: 255 },
        "4",
        "or from this many sampled stores on; HeMem's HOT_WRITE_THRESHOLD in April 2021 (616395e) and from October 2021; 8 at artifact evaluation (5e7c68f)",
    ),
    Param::new(
        "cool",
        Want::Count { min: 2, max: 255 },
        "16",
        "all heat is halved when the loads or the stores of a page reach this: double the hot threshold, Johnny Cache, section 4.3 (HeMem: above 18, and above 10 from October 2021)",
    ),
    Param::new(
        DECAY,
        Want::Count {
            min: 0,
            max: 1_000_000,
        },
        "0",
        "all heat is halved after this many wake-ups without a halving, 0 for never: HeMem and Johnny Cache never do; `varve tier` takes 60",
    ),
    Param::new(
        "rate",
        Want::Rate,
        "10GB/s",
        "most that is moved; HeMem's artifact, PEBS_KSWAPD_MIGRATE_RATE",
    ),
];

/// The settings of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Work beside the program.
    pub daemons: Daemons,
    /// When pages are hot and cooled.
    pub thresholds: Thresholds,
    /// Pages that may be moved at one wake-up.
    pub moves: usize,
    /// When heat is halved that nothing halves.
    pub decay: Decay,
}

/// Halves heat with time. Where uses are few no page reaches the cooling threshold, and what was hot once would stay hot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decay {
    /// Wake-ups without a halving after which all heat is halved; 0 for never.
    after: u64,
    since: u64,
}

impl Decay {
    /// Counts a wake-up; `true` if all heat is to be halved now.
    pub fn is_due(&mut self) -> bool {
        self.since += 1;
        self.after > 0 && self.since > self.after
    }

    /// All heat was halved.
    pub fn cooled(&mut self) {
        self.since = 0;
    }
}

impl Settings {
    /// From the parameters [`PARAMS`], for pages of `page_bytes`.
    ///
    /// # Errors
    /// A cooling threshold that no hot page could reach.
    pub fn of(values: &Values, page_bytes: u64) -> Result<Settings, Error> {
        let thresholds = Thresholds {
            loads: values.count("hot-loads") as u32,
            stores: values.count("hot-stores") as u32,
            cool: values.count("cool") as u32,
        };
        let highest = thresholds.loads.max(thresholds.stores);
        if thresholds.cool <= highest {
            let want = format!(
                "must be more than hot-loads and hot-stores ({highest}), or no page stays hot"
            );
            return Err(values.refuse("cool", want));
        }
        let daemons = Daemons {
            threads: values.count("threads") as u32,
            period: values.count(PERIOD),
            sample_period: values.count(SAMPLE_PERIOD),
        };
        // Time and pages shrink together with the machine, so that the pages moved per wake-up do not depend on it.
        let bytes = u128::from(values.count("rate")) * u128::from(daemons.period) / 1_000_000_000;
        let moves = (bytes / u128::from(page_bytes.max(1))).clamp(1, 1 << 32) as usize;
        Ok(Settings {
            daemons,
            thresholds,
            moves,
            decay: Decay {
                after: values.count(DECAY),
                since: 0,
            },
        })
    }
}
