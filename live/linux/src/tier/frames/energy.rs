//! Energy of the DRAM, as the processor counts it (RAPL's domain `dram`, by powercap).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const FOLDER: &str = "sys/class/powercap";

/// Counters of all sockets' DRAM.
pub struct Energy {
    /// Counter, its largest value, its last one, in microjoules.
    counters: Vec<(PathBuf, u64, u64)>,
    joules: f64,
    begun: Instant,
}

impl Energy {
    /// Those below `root`; `None` where there are none, or they may not be read (by root alone).
    pub fn open(root: &Path) -> Option<Energy> {
        let mut counters = Vec::new();
        for entry in fs::read_dir(root.join(FOLDER)).ok()?.flatten() {
            let folder = entry.path();
            let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
            // The package's own counter has its DRAM not in it; those are domains below: intel-rapl:0:1.
            if name.trim() != "dram"
                || !entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("intel-rapl:")
            {
                continue;
            }
            let most = number(&folder.join("max_energy_range_uj")).unwrap_or(u64::MAX);
            let at = folder.join("energy_uj");
            if let Some(now) = number(&at) {
                counters.push((at, most, now));
            }
        }
        (!counters.is_empty()).then(|| Energy {
            counters,
            joules: 0.0,
            begun: Instant::now(),
        })
    }

    /// Joules since it was opened, and the seconds. To be asked more often than the counters go round, which takes minutes.
    pub fn so_far(&mut self) -> (f64, f64) {
        for (at, most, last) in &mut self.counters {
            if let Some(now) = number(at) {
                let more = match now >= *last {
                    true => now - *last,
                    false => most.saturating_sub(*last) + now,
                };
                self.joules += more as f64 / 1e6;
                *last = now;
            }
        }
        (self.joules, self.begun.elapsed().as_secs_f64())
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Power of the DRAM before the first exchange and after the last one.
pub struct Power {
    energy: Option<Energy>,
    /// Joules and seconds when the first exchange was made, and after the last one.
    first: Option<(f64, f64)>,
    last: (f64, f64),
    exchanged: u64,
}

impl Power {
    /// Nothing was exchanged yet.
    pub fn of(energy: Option<Energy>) -> Power {
        Power {
            energy,
            first: None,
            last: (0.0, 0.0),
            exchanged: 0,
        }
    }

    /// `exchanged` bytes have been exchanged by now.
    pub fn note(&mut self, exchanged: u64) {
        let Some(energy) = &mut self.energy else {
            return;
        };
        let now = energy.so_far();
        if exchanged > self.exchanged {
            self.exchanged = exchanged;
            self.first.get_or_insert(self.last);
            self.last = now;
        } else if self.first.is_none() {
            self.last = now;
        }
    }

    /// Both, if there was time enough to tell them.
    pub fn watts(&mut self) -> Option<(f64, f64)> {
        let (joules, seconds) = self.energy.as_mut()?.so_far();
        let (first, last) = (self.first?, self.last);
        let long = first.1 > 0.5 && seconds - last.1 > 0.5;
        long.then(|| (first.0 / first.1, (joules - last.0) / (seconds - last.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs::put;

    #[test]
    fn the_dram_of_all_sockets_counts_and_counters_go_round() {
        let root = tempfile::tempdir().unwrap();
        assert!(Energy::open(root.path()).is_none());
        let write = |folder: &str, name: &str, energy: u64| {
            let folder = root.path().join(FOLDER).join(folder);
            put(&folder, "name", &format!("{name}\n"));
            put(&folder, "max_energy_range_uj", "10000000\n");
            put(&folder, "energy_uj", &format!("{energy}\n"));
        };
        write("intel-rapl:0", "package-0", 5);
        assert!(Energy::open(root.path()).is_none(), "a package is no DRAM");
        write("intel-rapl:0:0", "dram", 9_000_000);
        write("intel-rapl:1:0", "dram", 1_000_000);
        write("intel-rapl-mmio:0:0", "dram", 0);
        let mut energy = Energy::open(root.path()).unwrap();
        write("intel-rapl:0:0", "dram", 500_000);
        write("intel-rapl:1:0", "dram", 1_250_000);
        let (joules, _) = energy.so_far();
        assert!((joules - 1.75).abs() < 1e-9, "{joules}");
        assert!((energy.so_far().0 - 1.75).abs() < 1e-9);
    }
}
