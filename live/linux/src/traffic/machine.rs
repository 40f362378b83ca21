//! Bytes between memory and the whole machine, added up over readings.

use super::controllers::{ControllerReadings, Controllers};
use super::resctrl::{MOUNT, totals};
use std::path::{Path, PathBuf};

/// Adds up what goes to memory and back.
#[derive(Debug)]
pub struct MachineTraffic {
    source: Source,
    bytes: f64,
}

#[derive(Debug)]
enum Source {
    /// Counters, and their last reading.
    Controllers(Controllers, ControllerReadings),
    /// The folder of resctrl, and its last sum.
    Resctrl(PathBuf, u64),
}

impl MachineTraffic {
    /// On the machine below `root`, `/` for this one: by the memory controllers, else by resctrl.
    ///
    /// # Errors
    /// A line: why there are no counters, and how to get them.
    pub fn at(root: &Path) -> Result<MachineTraffic, String> {
        match Controllers::at(root) {
            Ok(controllers) => Ok(MachineTraffic::of(controllers)),
            Err(why) => MachineTraffic::of_resctrl(root).ok_or(format!(
                "it takes {why}; or resctrl on a processor with memory bandwidth monitoring (mount -t resctrl resctrl /sys/fs/resctrl)"
            )),
        }
    }

    /// By these counters.
    pub fn of(controllers: Controllers) -> MachineTraffic {
        let now = controllers.look();
        MachineTraffic {
            source: Source::Controllers(controllers, now),
            bytes: 0.0,
        }
    }

    fn of_resctrl(root: &Path) -> Option<MachineTraffic> {
        let folder = root.join(MOUNT);
        let parts = totals(&folder);
        (!parts.is_empty()).then(|| MachineTraffic {
            source: Source::Resctrl(folder, parts.values().sum()),
            bytes: 0.0,
        })
    }

    /// How it is counted, and what that does not see.
    pub fn words(&self) -> String {
        match &self.source {
            Source::Controllers(counters, _) => format!(
                "counted by the memory controllers ({}), for all that the machine does; CXL and Optane memory is not counted",
                counters.name()
            ),
            Source::Resctrl(..) => {
                "counted by resctrl, without what is in other control groups of it".into()
            }
        }
    }

    /// Bytes since it was made; `None` if that could not be seen now. What was missed is in a later sum.
    pub fn so_far(&mut self) -> Option<u64> {
        match &mut self.source {
            Source::Controllers(counters, last) => {
                let now = counters.look();
                self.bytes += counters.between(last, &now)?.sum();
                *last = now;
            }
            Source::Resctrl(folder, last) => {
                let parts = totals(folder);
                let now: u64 = parts.values().sum();
                if parts.is_empty() {
                    return None;
                }
                // A part that once reports nothing lowers the sum.
                self.bytes += now.saturating_sub(*last) as f64;
                *last = now.max(*last);
            }
        }
        Some(self.bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs::put;

    #[test]
    fn resctrl_counts_where_the_controllers_do_not() {
        let root = tempfile::tempdir().unwrap();
        let why = MachineTraffic::at(root.path()).unwrap_err();
        assert!(
            why.contains("amd_umc") && why.contains("mount -t resctrl") && !why.contains('\n'),
            "{why}"
        );
        let folder = root.path().join(MOUNT).join("mon_data/mon_L3_00");
        let write = |text: &str| put(&folder, "mbm_total_bytes", text);
        write("5000\n");
        let mut traffic = MachineTraffic::at(root.path()).unwrap();
        assert!(traffic.words().contains("resctrl"));
        write("7000\n");
        assert_eq!(traffic.so_far(), Some(2000));
        write("Unavailable\n");
        assert_eq!(traffic.so_far(), None);
        write("7500\n");
        assert_eq!(traffic.so_far(), Some(2500));
    }
}
