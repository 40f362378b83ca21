//! What policies with daemons share: sampling, the thresholds of heat, and how much may be moved in a period.
//! `dynamic` and `hotset` have the same (Johnny Cache, section 4.3: a fair comparison).

use varve_machine::Daemons;

use crate::heat::Thresholds;
use crate::params::{Error, Param, Unit, Values};

/// The parameters, each with its source.
pub const PARAMS: &[Param] = &[
    Param {
        key: "sample-period",
        unit: Unit::Count {
            min: 0,
            max: u64::MAX,
        },
        default: "10k",
        scaled: true,
        about: "one access in this many is sampled, 0 for none; HeMem's default according to Johnny Cache, section 5.4.2",
    },
    Param {
        key: "period",
        unit: Unit::Time,
        default: "10ms",
        scaled: true,
        about: "time between two wake-ups of the migration daemon, 0s for none; HeMem (SOSP 2021), its artifact's PEBS_KSWAPD_INTERVAL",
    },
    Param {
        key: "threads",
        unit: Unit::Count { min: 1, max: 2 },
        default: "2",
        scaled: false,
        about: "daemon threads: one samples, one migrates; Johnny Cache, section 5.2",
    },
    Param {
        key: "hot-loads",
        unit: Unit::Count { min: 1, max: 255 },
        default: "8",
        scaled: false,
        about: "a page is hot from this many sampled loads on; HeMem's artifact, HOT_READ_THRESHOLD",
    },
    Param {
        key: "hot-stores",
        unit: Unit::Count { min: 1, max: 255 },
        default: "4",
        scaled: false,
        about: "or from this many sampled stores on; HeMem's artifact, HOT_WRITE_THRESHOLD",
    },
    Param {
        key: "cool",
        unit: Unit::Count { min: 2, max: 255 },
        default: "16",
        scaled: false,
        about: "all heat is halved when the loads or the stores of a page reach this: double the hot threshold, Johnny Cache, section 4.3 (HeMem's artifact has 18)",
    },
    Param {
        key: "rate",
        unit: Unit::Rate,
        default: "10GB/s",
        scaled: false,
        about: "most that is moved; HeMem's artifact, PEBS_KSWAPD_MIGRATE_RATE",
    },
];

/// The settings of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What runs beside the program.
    pub daemons: Daemons,
    /// When pages are hot and cooled.
    pub thresholds: Thresholds,
    /// Pages that may be moved at one wake-up.
    pub moves: usize,
}

impl Settings {
    /// From the parameters [`PARAMS`], for pages of `page_bytes`.
    ///
    /// # Errors
    /// A cooling threshold that no hot page could reach.
    pub fn of(values: &Values, page_bytes: u64) -> Result<Settings, Error> {
        let thresholds = Thresholds {
            loads: values.number("hot-loads") as u32,
            stores: values.number("hot-stores") as u32,
            cool: values.number("cool") as u32,
        };
        let highest = thresholds.loads.max(thresholds.stores);
        if thresholds.cool <= highest {
            let want =
                format!("more than hot-loads and hot-stores ({highest}), or no page stays hot");
            return Err(values.refuse("cool", want));
        }
        let daemons = Daemons {
            threads: values.number("threads") as u32,
            period: values.number("period"),
            sample_period: values.number("sample-period"),
        };
        // Time and pages shrink together with the machine, so that the pages moved per wake-up do not depend on it.
        let bytes = u128::from(values.number("rate")) * u128::from(daemons.period) / 1_000_000_000;
        let moves = (bytes / u128::from(page_bytes.max(1))).clamp(1, 1 << 32) as usize;
        Ok(Settings {
            daemons,
            thresholds,
            moves,
        })
    }
}
