//! Bytes to and from memory, by the counters that this machine has.
//!
//! ```text
//! resctrl.rs       of a group of tasks: memory bandwidth monitoring. Reads and writes are one sum
//! controllers.rs   of the whole machine: counters of the memory controllers. Reads and writes apart
//! machine.rs       of the whole machine, by whichever there is, added up
//! ```

mod controllers;
mod machine;
mod moved;
pub mod resctrl;

pub use controllers::{
    ControllerReadings, Controllers, Counter, Reader, Reading, TransferDirection,
};
pub use machine::MachineTraffic;
pub use moved::TrafficBytes;

use resctrl::{MonitoringGroup, Resctrl};
use std::fs::File;
use std::path::Path;

/// The counters in use.
#[derive(Debug)]
pub enum TrafficMeter {
    /// The processor, for groups of tasks.
    Groups(Resctrl),
    /// The memory controllers, for the whole machine.
    Machine(Controllers),
}

impl TrafficMeter {
    /// The counters of the machine below `root`, `/` for this one: those for groups of tasks if there is a choice.
    ///
    /// # Errors
    /// A line: why neither does, and what it takes.
    pub fn at(root: &Path) -> Result<TrafficMeter, String> {
        let groups = match Resctrl::at(root) {
            Ok(groups) => return Ok(TrafficMeter::Groups(groups)),
            Err(why) => why,
        };
        match Controllers::at(root) {
            Ok(machine) => Ok(TrafficMeter::Machine(machine)),
            Err(why) => Err(format!("{groups}; or {why}")),
        }
    }

    /// How it is counted, and what that does not see.
    pub fn words(&self) -> String {
        match self {
            TrafficMeter::Groups(_) => {
                "counted by resctrl for the program alone; reads and writes are one sum".into()
            }
            TrafficMeter::Machine(counters) => format!(
                "counted by the memory controllers ({}), which do not know who asks: what other programs and the kernel move meanwhile is in it, and what goes to CXL or Optane memory is not",
                counters.name()
            ),
        }
    }

    /// Begins to count. A task that writes into the file is counted from then on, with all that it starts; without a file all are.
    ///
    /// # Errors
    /// As [`Resctrl::group`].
    pub fn begin(&self) -> Result<(Meter<'_>, Option<File>), String> {
        match self {
            TrafficMeter::Groups(groups) => {
                let (group, tasks) = groups.group()?;
                // A counter that begins with the group says nothing before the first access.
                let before = group.bytes().unwrap_or(0);
                Ok((Meter::Group(group, before), Some(tasks)))
            }
            TrafficMeter::Machine(counters) => {
                Ok((Meter::Machine(counters, counters.look()), None))
            }
        }
    }
}

/// Counts from its beginning on.
#[derive(Debug)]
pub enum Meter<'a> {
    /// Of a group, and its bytes at the beginning.
    Group(MonitoringGroup, u64),
    /// Of the machine, and its counters at the beginning.
    Machine(&'a Controllers, ControllerReadings),
}

impl Meter<'_> {
    /// Bytes since the beginning; `None` while the counters give no value.
    pub fn moved(&self) -> Option<TrafficBytes> {
        match self {
            Meter::Group(group, before) => {
                let bytes = group.bytes()?.checked_sub(*before)?;
                Some(TrafficBytes::Sum(bytes as f64))
            }
            Meter::Machine(counters, before) => counters.between(before, &counters.look()),
        }
    }
}
