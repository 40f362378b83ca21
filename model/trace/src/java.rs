//! Java virtual machines of a recording: the state of each at its end, so that it can be had without reading the whole
//! trace.

use crate::format::{Collector, Event, Use};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A Java virtual machine that ran in a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaMachine {
    /// Its process, as in [`Event::Process`].
    pub process: u32,
    /// Its collector.
    pub collector: Collector,
    /// Its feature version, such as 17.
    pub version: u32,
    /// Uses of its memory, in the order of the reports. Addresses are those of the trace.
    pub ranges: Vec<HeapRange>,
    /// Collections of the young generation.
    pub minor: u64,
    /// Collections of everything.
    pub full: u64,
    /// Times that it stood still.
    pub pauses: u64,
}

/// A range of memory of a Java virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapRange {
    /// Its use.
    pub what: Use,
    /// Virtual address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Records an event of a process.
pub(crate) fn note(machines: &mut Vec<JavaMachine>, process: u32, event: &Event) {
    if let Event::Machine { collector, version } = *event {
        machines.push(JavaMachine {
            process,
            collector,
            version,
            ranges: Vec::new(),
            minor: 0,
            full: 0,
            pauses: 0,
        });
    }
    let own = machines.iter_mut().rev().find(|m| m.process == process);
    let Some(machine) = own else { return };
    match *event {
        Event::Range { what, addr, bytes } => {
            machine.ranges.push(HeapRange { what, addr, bytes });
        }
        Event::Resume { minor, full } => {
            machine.minor += u64::from(minor);
            machine.full += u64::from(full);
            machine.pauses += 1;
        }
        _ => {}
    }
}

/// In JSON they are their names.
macro_rules! by_name {
    ($($of:ty)*) => {$(
        impl Serialize for $of {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'a> Deserialize<'a> for $of {
            fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                let name = String::deserialize(from)?;
                let found = Self::ALL.into_iter().find(|one| one.name() == name);
                found.ok_or_else(|| D::Error::custom(format!("{name} is not known")))
            }
        }
    )*};
}

by_name!(Collector Use);
