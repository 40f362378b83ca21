//! The agent's report at its machine's end, or on request.

use super::JavaError;
use crate::report::read_lines;
use serde::Deserialize;
use std::process::ExitStatus;

/// The observations.
#[derive(Debug, Default)]
pub struct SeenMachines {
    /// Machines that reported their allocations, largest first.
    pub machines: Vec<JavaSites>,
    /// How a command ended; `None` for a process that runs on.
    pub status: Option<ExitStatus>,
    /// Unreadable reports, one line each.
    pub notes: Vec<String>,
}

/// Objects, and their bytes: estimates from samples.
pub type Sum = (f64, f64);

/// A virtual machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct JavaSites {
    /// Why it has no samples, if it has none.
    pub error: Option<String>,
    /// Process number, as the process itself knows it.
    pub pid: u32,
    /// The collector.
    pub collector: String,
    /// Feature version, such as 17.
    pub java: u32,
    /// Main class or jar, and the program's arguments.
    pub command: String,
    /// Bytes that a thread allocated between two samples, on average.
    pub interval_bytes: u64,
    /// Time from the first to the last, ms.
    pub milliseconds: u64,
    /// Collections of the young generation.
    pub young: u64,
    /// Collections of everything.
    pub full: u64,
    /// Times that the machine stood still.
    pub pauses: u64,
    /// For how long in all, ms.
    pub paused_ms: u64,
    /// Collections that a young object survives without being promoted; -1 if the machine does not tell.
    pub tenuring: i64,
    /// Size of the young generation at the end, bytes; 0 if it is not known.
    pub young_bytes: u64,
    /// Of the part where objects are born.
    pub eden_bytes: u64,
    /// Of the old generation.
    pub old_bytes: u64,
    /// How it was known that an object is old: by its `address`, its `age`, or not at all.
    pub old_by: String,
    /// Whether threads have buffers of their own to allocate from.
    pub tlabs: Option<bool>,
    /// Bytes that the program allocated.
    pub allocated_bytes: u64,
    /// Samples alive at the end.
    pub live_samples: u64,
    /// How often half of the samples were given up.
    pub thinned: u32,
    /// Samples of which it is not known in which of several collections they died.
    pub late: u64,
    /// Bytes that were old and not found dead.
    pub kept_bytes: u64,
    /// Bytes that were young and alive at the end.
    pub undecided_bytes: u64,
    /// Lifetimes in bytes of allocation: the end of a class, and bytes of objects in it.
    pub lifetimes: Vec<(u64, u64)>,
    /// Frames: the class's signature, method, file, line (0 or less if it is not known).
    pub frames: Vec<(String, String, String, i64)>,
    /// Signatures of the objects' classes.
    pub classes: Vec<String>,
    /// The sites.
    pub sites: Vec<JavaSite>,
}

/// A site.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct JavaSite {
    /// Numbers of frames, innermost first.
    pub stack: Vec<usize>,
    /// Number of the class.
    pub class: usize,
    /// Objects that were samples.
    pub samples: u64,
    /// All objects.
    pub born: Sum,
    /// Those that were seen to survive their first, second, ... collection while they were young.
    pub survived: Vec<Sum>,
    /// Those that were seen to die in it.
    pub died: Vec<Sum>,
    /// Those that reached the old generation.
    pub old: Sum,
    /// Of these, those that were found dead.
    pub old_freed: Sum,
    /// All that were found dead.
    pub freed: Sum,
    /// Lifetimes of these, bytes of allocation, summed over objects.
    pub lifetime_bytes: f64,
    /// Those alive at the end.
    pub live: Sum,
    /// Looks at pages of old objects, and how many of them found the page used.
    pub looks: (u64, u64),
    /// Bytes that the objects stand for, summed over these looks.
    pub looked_bytes: Sum,
}

/// Reads reports. Machines without samples are an error if there is no other.
pub(super) fn read(text: &str, status: Option<ExitStatus>) -> Result<SeenMachines, JavaError> {
    let (all, torn): (Vec<JavaSites>, usize) = read_lines(text);
    let (mut machines, failed): (Vec<JavaSites>, Vec<JavaSites>) =
        all.into_iter().partition(|machine| machine.error.is_none());
    let mut notes: Vec<String> = Vec::new();
    if torn > 0 {
        notes.push(format!("{torn} reports of virtual machines cannot be read"));
    }
    let mut reasons = failed.into_iter().filter_map(|machine| machine.error);
    if machines.is_empty() {
        return Err(match reasons.next() {
            Some(why) => JavaError::Nothing(why),
            None => JavaError::NoReport,
        });
    }
    notes
        .extend(reasons.map(|why| format!("a virtual machine's allocations are not known: {why}")));
    machines.sort_by_key(|machine| std::cmp::Reverse(machine.allocated_bytes));
    Ok(SeenMachines {
        machines,
        status,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_allocated_most_is_first_and_one_without_samples_is_a_note() {
        let text = "{\"pid\":1,\"allocated_bytes\":5}\n{\"pid\":2,\"allocated_bytes\":9,\"sites\":[{\"stack\":[0],\"born\":[1.5,24],\"survived\":[[1.0,16]]}]}\n{\"pid\":3,\"error\":\"it is old\"}\n{\"pid\":4,";
        let seen = read(text, None).unwrap();
        let pids: Vec<u32> = seen.machines.iter().map(|m| m.pid).collect();
        assert_eq!(pids, [2, 1]);
        assert_eq!(seen.machines[0].sites[0].survived, [(1.0, 16.0)]);
        assert_eq!(seen.notes.len(), 2, "{:?}", seen.notes);
    }

    #[test]
    fn without_a_machine_it_is_said_why() {
        let error = read("{\"pid\":3,\"error\":\"it is old\"}\n", None).unwrap_err();
        assert!(error.to_string().contains("it is old"), "{error}");
        let error = read("", None).unwrap_err();
        assert!(error.to_string().contains("none has started"), "{error}");
    }
}
