//! Counters of the memory controllers: each counts the lines that it read from its DRAM and wrote to it, for whomever.
//!
//! A processor's counters are a device for each controller or channel in `/sys/bus/event_source/devices`, with its events in files:
//!
//! ```text
//! uncore_imc_0/type                         kind of device for perf_event_open
//!              cpumask                      processors on which it is opened: one of each socket
//!              format/event, umask          where a term's bits are
//!              events/cas_count_read        event=0x04,umask=0x03
//!                     cas_count_read.scale  6.103515625e-5: one count in ...
//!                     cas_count_read.unit   MiB
//! ```
//!
//! Not tried on a processor that has them: none of our machines has.

use super::moved::TrafficBytes;
use crate::perf::{self, Attributes, DEVICES};
use crate::probe::sysfs::{numbered, parse_list, text};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The traffic that a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferDirection {
    /// Lines read from memory.
    Reads,
    /// Lines written to memory.
    Writes,
}

/// A counter to be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// As perf writes it.
    pub name: String,
    /// The traffic that it counts.
    pub counts: TransferDirection,
    /// `type` of `struct perf_event_attr`.
    pub kind: u32,
    /// `config`, `config1`, `config2`.
    pub config: [u64; 3],
    /// The processor on which it is opened.
    pub processor: u32,
    /// Bytes of one count.
    pub bytes: f64,
}

/// How a family of devices describes its events.
enum Events {
    /// In files of these names, the reads and the writes.
    Listed(&'static [&'static str], &'static [&'static str]),
    /// As its manual says: terms, and the bytes of one count.
    Known(&'static str, &'static str, f64),
}

struct Family {
    /// Devices are called so, with a number behind it.
    name: &'static str,
    events: Events,
}

/// Devices that are known, in the order in which they are tried: the first family that is present counts all traffic.
///
/// Names are those of Linux's drivers (arch/x86/events/intel/uncore_snbep.c, uncore_snb.c; arch/x86/events/amd/uncore.c). AMD's event is
/// `UmcCasCmd` of the Processor Programming Reference for family 19h model 11h: a command moves 64 bytes.
const FAMILIES: [Family; 6] = [
    Family {
        name: "uncore_imc_",
        events: Events::Listed(&["cas_count_read"], &["cas_count_write"]),
    },
    Family {
        name: "uncore_imc_",
        events: Events::Listed(
            &["cas_count_read_sch0", "cas_count_read_sch1"],
            &["cas_count_write_sch0", "cas_count_write_sch1"],
        ),
    },
    Family {
        name: "uncore_imc_free_running_",
        events: Events::Listed(&["data_read"], &["data_write"]),
    },
    Family {
        name: "uncore_imc_free_running",
        events: Events::Listed(&["data_read"], &["data_write"]),
    },
    Family {
        name: "uncore_imc",
        events: Events::Listed(&["data_reads"], &["data_writes"]),
    },
    Family {
        name: "amd_umc_",
        events: Events::Known("event=0x0a,rdwrmask=1", "event=0x0a,rdwrmask=2", 64.0),
    },
];

/// The counters that the devices in this folder offer: for each controller one or more of either kind. Empty where there are none.
pub fn offered(devices: &Path) -> Vec<Counter> {
    let of_all = |family: &Family| {
        let mut folders = numbered(devices, family.name);
        if folders.is_empty() && devices.join(family.name).is_dir() {
            folders.push((0, devices.join(family.name)));
        }
        // A controller without counts would be missing from the sum, so the family is useless then.
        let each: Option<Vec<Vec<Counter>>> = folders
            .iter()
            .map(|(_, folder)| of_device(folder, &family.events))
            .collect();
        each.map(|all| all.concat()).filter(|all| !all.is_empty())
    };
    FAMILIES.iter().find_map(of_all).unwrap_or_default()
}

fn of_device(folder: &Path, events: &Events) -> Option<Vec<Counter>> {
    let device = folder.file_name()?.to_str()?;
    let kind = text(&folder.join("type"))?.parse().ok()?;
    let processors = parse_list(&text(&folder.join("cpumask"))?);
    let mut counters = Vec::new();
    let mut add = |counts, name: &str, terms: &str, bytes| {
        let config = perf::config(folder, terms)?;
        counters.extend(processors.iter().map(|&processor| Counter {
            name: format!("{device}/{name}/"),
            counts,
            kind,
            config,
            processor,
            bytes,
        }));
        Some(())
    };
    match events {
        Events::Known(reads, writes, bytes) => {
            add(TransferDirection::Reads, reads, reads, *bytes)?;
            add(TransferDirection::Writes, writes, writes, *bytes)?;
        }
        Events::Listed(reads, writes) => {
            let reads = reads.iter().map(|name| (TransferDirection::Reads, name));
            let writes = writes.iter().map(|name| (TransferDirection::Writes, name));
            for (counts, name) in reads.chain(writes) {
                let terms = text(&folder.join("events").join(name))?;
                add(counts, name, &terms, bytes_of_one(folder, name)?)?;
            }
        }
    }
    (!counters.is_empty()).then_some(counters)
}

/// Bytes of one count, by an event's scale and unit.
fn bytes_of_one(folder: &Path, name: &str) -> Option<f64> {
    let file = |what: &str| text(&folder.join("events").join(format!("{name}.{what}")));
    let scale: f64 = file("scale")?.parse().ok()?;
    let unit = match &*file("unit")? {
        "B" | "Bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    Some(scale * unit).filter(|bytes| bytes.is_finite() && *bytes > 0.0)
}

/// A counter at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its count while it ran.
    pub count: u64,
    /// How long it was to count, ns.
    pub enabled: u64,
    /// How long it did: less, where more events than the device has counters take turns.
    pub running: u64,
}

/// Reads an open counter.
pub type Reader = Box<dyn Fn() -> io::Result<Reading> + Send + Sync>;

/// All counters at an instant; `None` for one that could not be read.
#[derive(Clone, Debug)]
pub struct ControllerReadings(Vec<Option<Reading>>);

/// Counters of the memory controllers that are open.
pub struct Controllers {
    open: Vec<(Counter, Reader)>,
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.open.iter().map(|one| &one.0))
            .finish()
    }
}

/// Up to this level of `kernel.perf_event_paranoid` an ordinary user may count what the whole machine does.
const PARANOID: i32 = 0;

impl Controllers {
    /// Those of the machine below `root`, which is to be this one.
    ///
    /// # Errors
    /// A line: there are none, or they may not be opened.
    pub fn at(root: &Path) -> Result<Controllers, String> {
        Controllers::with(root, &open)
    }

    /// The same, opened by `open`.
    ///
    /// # Errors
    /// A line: there are none, or that of `open`.
    pub fn with(
        root: &Path,
        open: &dyn Fn(&Counter) -> Result<Reader, String>,
    ) -> Result<Controllers, String> {
        let offered = offered(&PathBuf::from(root).join(DEVICES));
        if offered.is_empty() {
            return Err(
                "counters of the memory controllers, and there are none here (uncore_imc or amd_umc in /sys/bus/event_source/devices: virtual machines have none; modprobe intel_uncore or amd_uncore)"
                    .into(),
            );
        }
        let open = |counter: Counter| {
            let opened = open(&counter);
            let reader = opened.map_err(|why| {
                format!(
                    "counters of the memory controllers: {}: {why}",
                    counter.name
                )
            })?;
            Ok((counter, reader))
        };
        let open: Result<Vec<_>, String> = offered.into_iter().map(open).collect();
        Ok(Controllers { open: open? })
    }

    /// The first of them, as perf writes it.
    pub fn name(&self) -> &str {
        self.open
            .first()
            .map_or("none", |(counter, _)| &counter.name)
    }

    /// Reads all.
    pub fn look(&self) -> ControllerReadings {
        ControllerReadings(self.open.iter().map(|(_, read)| read().ok()).collect())
    }

    /// The traffic to and from memory between two readings; `None` if a counter was not read, or did not run between them: a sum without
    /// it would be too little.
    pub fn between(
        &self,
        before: &ControllerReadings,
        now: &ControllerReadings,
    ) -> Option<TrafficBytes> {
        let (mut read, mut written) = (0.0, 0.0);
        for ((counter, _), (before, now)) in self.open.iter().zip(before.0.iter().zip(&now.0)) {
            let bytes = counter.bytes * counted((*before)?, (*now)?)?;
            match counter.counts {
                TransferDirection::Reads => read += bytes,
                TransferDirection::Writes => written += bytes,
            }
        }
        Some(TrafficBytes::Apart { read, written })
    }
}

/// Counts between two readings, as if the counter had run all the time.
fn counted(before: Reading, now: Reading) -> Option<f64> {
    let count = now.count.checked_sub(before.count)?;
    let running = now.running.checked_sub(before.running)?;
    let enabled = now.enabled.checked_sub(before.enabled)?;
    match (running, enabled) {
        (0, 0) => Some(count as f64),
        (0, _) => None,
        _ => Some(count as f64 * (enabled as f64 / running as f64)),
    }
}

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`: three words are read.
const WITH_TIMES: u64 = 1 | 2;

/// Opens a counter for all that runs.
fn open(counter: &Counter) -> Result<Reader, String> {
    let attributes = Attributes {
        read_format: WITH_TIMES,
        ..Attributes::of(counter.kind, counter.config)
    };
    let opened = perf::open(attributes, -1, counter.processor as i32, -1);
    let file = File::from(opened.map_err(|e| perf::refused(&e, PARANOID))?);
    Ok(Box::new(move || {
        let mut words = [0; 24];
        (&file).read_exact(&mut words)?;
        let word = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|i| words[8 * at + i]);
            u64::from_ne_bytes(bytes)
        };
        Ok(Reading {
            count: word(0),
            enabled: word(1),
            running: word(2),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs;
    use crate::traffic::{MachineTraffic, TrafficMeter};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    fn put(root: &Path, device: &str, files: &[(&str, &str)]) {
        let device = root.join(DEVICES).join(device);
        for (name, text) in files {
            sysfs::put(&device, name, &format!("{text}\n"));
        }
    }

    /// As a server with two sockets has it (Skylake).
    const SERVER: [(&str, &str); 10] = [
        ("type", "14"),
        ("cpumask", "0,28"),
        ("format/event", "config:0-7"),
        ("format/umask", "config:8-15"),
        ("events/cas_count_read", "event=0x04,umask=0x03"),
        ("events/cas_count_read.scale", "6.103515625e-5"),
        ("events/cas_count_read.unit", "MiB"),
        ("events/cas_count_write", "event=0x04,umask=0x0c"),
        ("events/cas_count_write.scale", "6.103515625e-5"),
        ("events/cas_count_write.unit", "MiB"),
    ];

    fn offered_at(root: &Path) -> Vec<Counter> {
        offered(&root.join(DEVICES))
    }

    #[test]
    fn each_controller_of_each_socket_of_an_intel_server_counts_lines_of_64_bytes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(offered_at(root), []);
        put(root, "uncore_imc_1", &SERVER);
        put(root, "uncore_imc_0", &SERVER);
        // The same bytes again, by other counters: not to be counted twice.
        put(root, "uncore_imc_free_running_0", &SERVER);
        let all = offered_at(root);
        let names: Vec<(&str, u32)> = all.iter().map(|c| (&*c.name, c.processor)).collect();
        assert_eq!(
            names[..4],
            [
                ("uncore_imc_0/cas_count_read/", 0),
                ("uncore_imc_0/cas_count_read/", 28),
                ("uncore_imc_0/cas_count_write/", 0),
                ("uncore_imc_0/cas_count_write/", 28),
            ]
        );
        assert_eq!(all.len(), 8);
        assert_eq!((all[0].kind, all[0].config), (14, [0x304, 0, 0]));
        assert_eq!(
            (all[2].config, all[2].counts),
            ([0xc04, 0, 0], TransferDirection::Writes)
        );
        assert!(all.iter().all(|c| (c.bytes - 64.0).abs() < 1e-9));
        // A controller of which nothing is known would be missing from the sum.
        put(root, "uncore_imc_2", &[("type", "15")]);
        assert_eq!(offered_at(root), []);
    }

    #[test]
    fn a_controller_of_two_channels_counts_each_by_an_event_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "uncore_imc_0", &SERVER[..4]);
        for event in ["read_sch0", "read_sch1", "write_sch0", "write_sch1"] {
            for (file, text) in [
                ("", "event=0x05,umask=0xcf"),
                (".scale", "6.103515625e-5"),
                (".unit", "MiB"),
            ] {
                let name = format!("events/cas_count_{event}{file}");
                put(root, "uncore_imc_0", &[(&name, text)]);
            }
        }
        let all = offered_at(root);
        assert_eq!(all.len(), 8, "of each socket four");
        assert!(all[0].name.contains("read_sch0") && all[2].name.contains("read_sch1"));
    }

    #[test]
    fn clients_and_amd_have_other_names() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let client = |reads: &str, writes: &str| {
            let event = |name: &str, at: &str| {
                [
                    (format!("events/{name}"), at.to_string()),
                    (format!("events/{name}.scale"), "0.5".into()),
                    (format!("events/{name}.unit"), "KiB".into()),
                ]
            };
            let mut files: Vec<_> = event(reads, "event=0x1").into();
            files.extend(event(writes, "event=0x2"));
            files.extend(
                [
                    ("type", "9"),
                    ("cpumask", "0"),
                    ("format/event", "config:0-7"),
                ]
                .map(|(a, b)| (a.into(), b.into())),
            );
            files
        };
        let put_all = |device: &str, files: &[(String, String)]| {
            let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
            put(root, device, &files);
        };
        put(
            root,
            "amd_umc_0",
            &[
                ("type", "30"),
                ("cpumask", "0"),
                ("format/event", "config:0-7"),
                ("format/rdwrmask", "config:8-9"),
            ],
        );
        let amd = offered_at(root);
        assert_eq!(amd[0].name, "amd_umc_0/event=0x0a,rdwrmask=1/");
        assert_eq!([amd[0].config[0], amd[1].config[0]], [0x10a, 0x20a]);
        assert_eq!(amd[1].bytes, 64.0);
        put_all("uncore_imc", &client("data_reads", "data_writes"));
        let old = offered_at(root);
        assert_eq!(
            (old.len(), &*old[0].name, old[0].bytes),
            (2, "uncore_imc/data_reads/", 512.0)
        );
        put_all(
            "uncore_imc_free_running_0",
            &client("data_read", "data_write"),
        );
        // Newer clients have devices for each controller too, without events for bytes.
        put(root, "uncore_imc_0", &SERVER[..4]);
        assert_eq!(
            offered_at(root)[0].name,
            "uncore_imc_free_running_0/data_read/"
        );
    }

    #[test]
    fn an_event_without_a_scale_or_in_an_unknown_unit_is_not_guessed_at() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "uncore_imc_0", &SERVER);
        for (file, wrong) in [
            ("unit", "MB"),
            ("unit", ""),
            ("scale", "-1"),
            ("scale", "x"),
            ("scale", "0"),
        ] {
            put(root, "uncore_imc_0", &SERVER);
            assert_eq!(offered_at(root).len(), 4);
            put(
                root,
                "uncore_imc_0",
                &[(&format!("events/cas_count_write.{file}"), wrong)],
            );
            assert_eq!(offered_at(root), [], "{file} {wrong}");
        }
    }

    /// Counters with given values, in place of the kernel's.
    fn pretended(root: &Path, step: [u64; 3]) -> (Controllers, Arc<Mutex<Vec<String>>>) {
        put(root, "uncore_imc_0", &SERVER);
        let opened = Arc::new(Mutex::new(Vec::new()));
        let noted = opened.clone();
        let controllers = Controllers::with(root, &move |counter: &Counter| {
            noted.lock().unwrap().push(counter.name.clone());
            let times = AtomicU64::new(0);
            let factor = if counter.counts == TransferDirection::Reads {
                3
            } else {
                1
            };
            Ok(Box::new(move || {
                let n = times.fetch_add(1, Ordering::Relaxed);
                Ok(Reading {
                    count: n * step[0] * factor,
                    enabled: n * step[1],
                    running: n * step[2],
                })
            }))
        });
        (controllers.unwrap(), opened)
    }

    #[test]
    fn reads_and_writes_of_both_sockets_add_up_apart() {
        let root = tempfile::tempdir().unwrap();
        let (controllers, opened) = pretended(root.path(), [1000, 50, 50]);
        assert_eq!(opened.lock().unwrap().len(), 4);
        let traffic = TrafficMeter::Machine(controllers);
        assert!(
            traffic.words().contains("uncore_imc_0/cas_count_read/"),
            "{}",
            traffic.words()
        );
        let (meter, tasks) = traffic.begin().unwrap();
        assert!(tasks.is_none(), "no task is to join");
        let Some(TrafficBytes::Apart { read, written }) = meter.moved() else {
            panic!("{meter:?}")
        };
        assert!((read - 2.0 * 3000.0 * 64.0).abs() < 1e-6, "{read}");
        assert!((written - 2.0 * 1000.0 * 64.0).abs() < 1e-6, "{written}");
        assert_eq!(TrafficBytes::Apart { read, written }.sum(), read + written);
    }

    #[test]
    fn counters_that_take_turns_count_for_the_time_in_which_they_wait() {
        let root = tempfile::tempdir().unwrap();
        let (controllers, _) = pretended(root.path(), [1000, 80, 20]);
        let (before, now) = (controllers.look(), controllers.look());
        let moved = controllers.between(&before, &now).unwrap();
        assert!((moved.sum() - 2.0 * 4000.0 * 64.0 * 4.0).abs() < 1e-6);
        assert_eq!(controllers.between(&now, &before), None, "backwards");
        // Counts that one reading missed are in the next sum.
        let (controllers, _) = pretended(root.path(), [1000, 80, 80]);
        let mut machine = MachineTraffic::of(controllers);
        assert_eq!(machine.so_far(), Some(2 * 4000 * 64));
        assert_eq!(machine.so_far(), Some(4 * 4000 * 64));
        let (idle, _) = pretended(root.path(), [0, 80, 0]);
        let (before, now) = (idle.look(), idle.look());
        assert_eq!(idle.between(&before, &now), None, "none ran");
    }

    #[test]
    fn what_is_missing_is_said_in_a_line() {
        let root = tempfile::tempdir().unwrap();
        let why = TrafficMeter::at(root.path()).unwrap_err();
        assert!(
            why.contains("mount -t resctrl") && why.contains("modprobe intel_uncore"),
            "{why}"
        );
        assert!(!why.contains('\n'));
        put(root.path(), "uncore_imc_0", &SERVER);
        let why = Controllers::with(root.path(), &|_| Err("not allowed".into())).unwrap_err();
        assert_eq!(
            why,
            "counters of the memory controllers: uncore_imc_0/cas_count_read/: not allowed"
        );
    }

    /// The kernel's own count of page faults is opened and read as a controller's counter is.
    #[test]
    fn a_counter_is_opened_for_all_that_a_processor_does() {
        let faults = Counter {
            name: "page-faults".into(),
            counts: TransferDirection::Reads,
            kind: 1,           // PERF_TYPE_SOFTWARE
            config: [2, 0, 0], // PERF_COUNT_SW_PAGE_FAULTS
            processor: 0,
            bytes: 1.0,
        };
        let read = match open(&faults) {
            Ok(read) => read,
            Err(why) => return varve_skip::skip!("{why}"),
        };
        let before = read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let now = read().unwrap();
        assert!(now.enabled > before.enabled, "{before:?} {now:?}");
        assert!(now.running <= now.enabled && counted(before, now).is_some());
        let none = Counter {
            kind: 4_000_000,
            ..faults
        };
        let why = open(&none).err().unwrap();
        assert!(!why.contains('\n'), "{why}");
    }

    /// The real ones, where there are any: two readings that do not go backwards.
    #[test]
    fn the_counters_of_this_machine_count_if_it_has_them() {
        match Controllers::at(Path::new("/")) {
            Err(why) => varve_skip::skip!("it takes {why}"),
            Ok(controllers) => {
                let before = controllers.look();
                let block = vec![1u8; 64 << 20];
                std::hint::black_box(block.iter().map(|b| u64::from(*b)).sum::<u64>());
                let moved = controllers.between(&before, &controllers.look());
                assert!(moved.is_some_and(|moved| moved.sum() > 0.0), "{moved:?}");
            }
        }
    }
}
