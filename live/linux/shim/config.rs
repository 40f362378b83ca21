//! Settings from the environment. Set by `varve run --live`; also usable by hand with `LD_PRELOAD`.

use crate::place::bins::Bins;
use crate::place::engine::PlacementLimits;
use crate::place::reserve::Unit;
use std::path::PathBuf;

/// The settings of one process.
pub struct Config {
    /// `VARVE_LIVE_BINS` (bytes of the DRAM cache) and `VARVE_LIVE_WAYS` (1 when not set).
    pub bins: Bins,
    /// `VARVE_LIVE_PAGES`: `4k` or `2m`.
    pub unit: Unit,
    /// `VARVE_LIVE_THRESHOLD`: smallest mapping or block that is placed, bytes.
    pub threshold: usize,
    /// `VARVE_LIVE_LAZY`: smallest mapping that is placed at first touch instead of at once, bytes.
    pub lazy: usize,
    /// `VARVE_LIVE_EXTRA` (a factor), `VARVE_LIVE_ROUNDS`, `VARVE_LIVE_MEMORY_PERCENT`.
    pub limits: PlacementLimits,
    /// `VARVE_LIVE_HEAP`: follow the growth of the heap, 1 or 0.
    pub heap: bool,
    /// `VARVE_LIVE_REPORT`: file to which the report is appended, one JSON object per line.
    pub report: Option<PathBuf>,
    /// `VARVE_LIVE_TABLE`: directory that holds the shared load tables, `/dev/shm` when not set.
    pub table: PathBuf,
    /// `VARVE_LIVE_RUN`: the run that watches this process, 0 for none. A watched process that ends with
    /// placed pages waits up to a second for the run to read its counts.
    pub run: u64,
}

impl Config {
    /// Reads the environment. `Ok(None)` when nothing is asked for.
    ///
    /// # Errors
    /// A line that names the variable.
    pub fn from_environment() -> Result<Option<Config>, String> {
        let Some(cache_bytes) = number("VARVE_LIVE_BINS")? else {
            return Ok(None);
        };
        let ways = number("VARVE_LIVE_WAYS")?.unwrap_or(1);
        let bins = Bins::of_cache(cache_bytes, ways as u32)
            .map_err(|e| format!("VARVE_LIVE_BINS: {e}"))?;
        let unit = match text("VARVE_LIVE_PAGES").as_deref() {
            None | Some("4k") => Unit::Base,
            Some("2m") => Unit::Huge,
            Some(other) => return Err(format!("VARVE_LIVE_PAGES is {other:?}: 4k or 2m is meant")),
        };
        let usual = PlacementLimits::default();
        Ok(Some(Config {
            bins,
            unit,
            threshold: number("VARVE_LIVE_THRESHOLD")?.unwrap_or(1 << 20) as usize,
            lazy: number("VARVE_LIVE_LAZY")?.unwrap_or(64 << 20),
            limits: PlacementLimits {
                extra_factor: number("VARVE_LIVE_EXTRA")?.unwrap_or(usual.extra_factor),
                rounds: number("VARVE_LIVE_ROUNDS")?.unwrap_or(usual.rounds),
                memory_percent: number("VARVE_LIVE_MEMORY_PERCENT")?
                    .unwrap_or(usual.memory_percent),
            },
            heap: number::<u8>("VARVE_LIVE_HEAP")?.unwrap_or(1) != 0,
            report: text("VARVE_LIVE_REPORT").map(PathBuf::from),
            table: text("VARVE_LIVE_TABLE")
                .map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from),
            run: number("VARVE_LIVE_RUN")?.unwrap_or(0),
        }))
    }
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number<T: std::str::FromStr>(name: &str) -> Result<Option<T>, String> {
    match text(name) {
        None => Ok(None),
        Some(value) => match value.parse() {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(format!("{name} is {value:?}: a number is meant")),
        },
    }
}
