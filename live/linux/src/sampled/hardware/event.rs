//! Events that sample memory accesses, from what the kernel tells in /sys.

use crate::perf::{number, set, word};
use std::path::Path;

/// Loads that take fewer cycles than this are not sampled: as `perf mem` has it (`--ldlat`).
const LEAST_CYCLES: u64 = 30;

/// An event to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// As perf writes it.
    pub name: String,
    /// PEBS or IBS.
    pub mechanism: &'static str,
    /// `type`, `config`, `config1`, `config2` of `struct perf_event_attr`.
    pub(super) kind: u32,
    pub(super) config: [u64; 3],
    /// The event without which this one counts nothing, opened before it (`mem-loads-aux`).
    pub(super) leader: Option<[u64; 3]>,
    /// `precise_ip`.
    pub(super) precise: u64,
    /// The kernel's own accesses can be left out by the event itself.
    pub(super) user_only: bool,
    /// Processors that have it, as the kernel lists them; empty for all.
    pub(super) processors: String,
    /// One in this many events is a sample; `None`: the kernel adjusts the period to a rate per second.
    pub(super) period: Option<u64>,
}

impl Event {
    /// First touches of pages, which every machine has: not what a profile needs, and good to try the rest with.
    pub fn page_faults() -> Event {
        Event {
            name: "page-faults".into(),
            mechanism: "page faults",
            kind: 1,           // PERF_TYPE_SOFTWARE
            config: [2, 0, 0], // PERF_COUNT_SW_PAGE_FAULTS
            leader: None,
            precise: 0,
            user_only: true,
            processors: String::new(),
            // They come in bursts, which the kernel would follow too late. More often than that, it would leave some out.
            period: Some(16),
        }
    }
}

/// The offered events, in the order in which they are opened: all others depend on the first.
pub fn offered(devices: &Path) -> Vec<Event> {
    let mut events = Vec::new();
    for name in ["cpu", "cpu_core"] {
        let folder = devices.join(name);
        let loads = event(&folder, name, "mem-loads", &[("ldlat", LEAST_CYCLES)]);
        let stores = event(&folder, name, "mem-stores", &[]);
        if let Some(mut loads) = loads {
            let leader = event(&folder, name, "mem-loads-aux", &[]);
            loads.leader = leader.map(|leader| leader.config);
            events.push(loads);
            events.extend(stores);
        }
    }
    if events.is_empty() {
        events.extend(ibs(&devices.join("ibs_op")));
    }
    events
}

fn event(folder: &Path, device: &str, name: &str, terms: &[(&str, u64)]) -> Option<Event> {
    let mut config = [0; 3];
    let listed = word(&folder.join("events").join(name))?;
    for term in listed.split(',') {
        let (term, value) = term.split_once('=').unwrap_or((term, "1"));
        if terms.iter().all(|(other, _)| *other != term) {
            set(folder, &mut config, term, number(value)?)?;
        }
    }
    for (term, value) in terms {
        set(folder, &mut config, term, *value)?;
    }
    let shown: String = terms.iter().map(|(t, v)| format!(",{t}={v}")).collect();
    Some(Event {
        name: format!("{device}/{name}{shown}/"),
        mechanism: "PEBS",
        kind: word(&folder.join("type"))?.parse().ok()?,
        config,
        leader: None,
        precise: 2,
        user_only: true,
        processors: word(&folder.join("cpus")).unwrap_or_default(),
        period: None,
    })
}

/// IBS: one operation per period is followed, of any kind; of these, those that miss the last cache, if the processor can filter them.
fn ibs(folder: &Path) -> Option<Event> {
    let kind = word(&folder.join("type"))?.parse().ok()?;
    let mut config = [0; 3];
    let mut name = String::from("ibs_op/");
    for term in ["cnt_ctl", "l3missonly"] {
        if set(folder, &mut config, term, 1).is_some() {
            name += &format!("{term}=1,");
        }
    }
    Some(Event {
        name: name.trim_end_matches(',').to_owned() + "/",
        mechanism: "IBS",
        kind,
        config,
        leader: None,
        precise: 0,
        user_only: false,
        processors: String::new(),
        period: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs;

    fn put(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            sysfs::put(folder, name, &format!("{text}\n"));
        }
    }

    /// As a Sapphire Rapids has it, and a processor without the auxiliary event.
    #[test]
    fn loads_and_stores_of_intel() {
        let devices = tempfile::tempdir().unwrap();
        assert_eq!(offered(devices.path()), []);
        put(
            devices.path(),
            &[
                ("cpu/type", "4"),
                ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
                ("cpu/events/mem-stores", "event=0xcd,umask=0x2"),
                ("cpu/format/event", "config:0-7"),
                ("cpu/format/umask", "config:8-15"),
                ("cpu/format/ldlat", "config1:0-15"),
            ],
        );
        let events = offered(devices.path());
        assert_eq!(events[0].name, "cpu/mem-loads,ldlat=30/");
        assert_eq!(events[0].config, [0x1cd, 30, 0]);
        assert_eq!((events[0].kind, events[0].leader), (4, None));
        assert_eq!(events[1].config, [0x2cd, 0, 0]);
        put(
            devices.path(),
            &[("cpu/events/mem-loads-aux", "event=0x03,umask=0x82")],
        );
        assert_eq!(offered(devices.path())[0].leader, Some([0x8203, 0, 0]));
        // A term without a format.
        put(
            devices.path(),
            &[("cpu/events/mem-loads", "event=0xcd,other=7")],
        );
        assert_eq!(offered(devices.path()), []);
    }

    #[test]
    fn operations_of_amd() {
        let devices = tempfile::tempdir().unwrap();
        put(
            devices.path(),
            &[
                ("ibs_op/type", "11"),
                ("ibs_op/format/cnt_ctl", "config:19"),
            ],
        );
        let events = offered(devices.path());
        assert_eq!(events[0].name, "ibs_op/cnt_ctl=1/");
        assert_eq!((events[0].kind, events[0].config[0]), (11, 1 << 19));
        put(devices.path(), &[("ibs_op/format/l3missonly", "config:16")]);
        let events = offered(devices.path());
        assert_eq!(events[0].name, "ibs_op/cnt_ctl=1,l3missonly=1/");
        assert_eq!(events[0].config[0], 1 << 19 | 1 << 16);
    }
}
