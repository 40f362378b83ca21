//! Machines that are set up wrongly: what the doctor finds is mended, and reverted to the byte, whenever it is killed.

#[path = "common/machine_files.rs"]
mod machine_files;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use varve_live::doctor::setup::{
    Changed, Files, Measured, Record, Root, Setup, Step, change, judge, undo,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doctor");

fn names() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).unwrap().flatten();
    let name = |e: fs::DirEntry| Some(e.file_name().to_str()?.strip_suffix(".sys")?.to_string());
    let mut all: Vec<String> = entries.filter_map(name).collect();
    all.sort();
    all
}

fn machine(name: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(format!("{FOLDER}/{name}.sys")).unwrap();
    machine_files::unpack(&text, root.path());
    root
}

fn measured(name: &str) -> Option<Measured> {
    let text = fs::read_to_string(format!("{FOLDER}/measured.json")).unwrap();
    (name == "weights-measured").then(|| Measured::parse(&text).unwrap())
}

/// Every file and link below a folder.
fn all_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut ahead = vec![root.to_path_buf()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                ahead.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap().display().to_string();
                all.insert(path, format!("-> {target}"));
            } else {
                let text = fs::read_to_string(&path).unwrap();
                all.insert(path, text);
            }
        }
    }
    all
}

/// A fake kernel: its reactions to the doctor's writes, and the write at which we are killed.
struct Kernel {
    root: Root,
    writes: Cell<u32>,
    /// Killed at this write, before it or after it.
    killed: Option<(u32, bool)>,
}

impl Kernel {
    fn of(root: &Path) -> Kernel {
        Kernel {
            root: Root(root.into()),
            writes: Cell::new(0),
            killed: None,
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn block(&self, number: u64) -> String {
        format!("sys/devices/system/memory/memory{number}")
    }

    /// The driver of a device comes or goes, and with kmem its four blocks of memory.
    fn drive(&self, device: &str, driver: Option<&str>) -> io::Result<()> {
        let folder = fs::canonicalize(self.root.0.join("sys/bus/dax/devices").join(device))?;
        let link = folder.join("driver");
        let had = fs::read_link(&link).ok();
        let blocks = 32..36;
        if had.is_some_and(|had| had.ends_with("kmem")) {
            for n in blocks.clone() {
                if self.root.read(&format!("{}/state", self.block(n)))? != "offline" {
                    return Err(io::Error::from_raw_os_error(libc::EBUSY));
                }
            }
            for n in blocks.clone() {
                fs::remove_dir_all(self.root.0.join(self.block(n)))?;
            }
            fs::remove_dir_all(self.root.0.join("sys/devices/system/node/node1"))?;
        }
        let _ = fs::remove_file(&link);
        let Some(driver) = driver else { return Ok(()) };
        let depth = folder
            .strip_prefix(fs::canonicalize(&self.root.0)?)
            .unwrap();
        let up = "../".repeat(depth.components().count() - 1);
        std::os::unix::fs::symlink(format!("{up}bus/dax/drivers/{driver}"), &link)?;
        if driver == "kmem" {
            let node = "sys/devices/system/node/node1";
            self.put(&format!("{node}/cpulist"), "");
            self.put(&format!("{node}/meminfo"), "Node 1 MemTotal: 524288 kB");
            for n in blocks {
                self.put(&format!("{}/state", self.block(n)), "online");
                self.put(&format!("{}/valid_zones", self.block(n)), "Movable");
                self.put(&format!("{}/node1/cpulist", self.block(n)), "");
            }
        }
        Ok(())
    }
}

impl Files for Kernel {
    fn read(&self, path: &str) -> io::Result<String> {
        self.root.read(path)
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        self.writes.set(self.writes.get() + 1);
        let is_now = |after| self.killed == Some((self.writes.get(), after));
        assert!(!is_now(false), "killed");
        fs::metadata(self.root.0.join(path))?;
        if let Some(block) = path.strip_suffix("/state") {
            let zones = format!("{block}/valid_zones");
            let was = self.root.read(path)?;
            match value {
                "offline" => self.put(&zones, "Normal Movable"),
                _ if was == "online" => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
                "online_movable" => self.put(&zones, "Movable"),
                "online_kernel" | "online" => self.put(&zones, "Normal"),
                _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
            }
            self.put(path, value.split('_').next().unwrap());
        } else if let Some(rest) = path.strip_prefix("sys/bus/dax/drivers/") {
            match rest.split_once('/').unwrap() {
                (_, "unbind") => self.drive(value, None)?,
                (_, "remove_id") => {}
                (driver, "bind" | "new_id") => self.drive(value, Some(driver))?,
                other => panic!("{other:?}"),
            }
        } else {
            if let Some(folder) = path.strip_suffix("/auto").filter(|_| value == "true") {
                // Nothing is known of bandwidths here.
                self.put(&format!("{folder}/node0"), "1");
                self.put(&format!("{folder}/node1"), "1");
            }
            self.root.write(path, value)?;
        }
        assert!(!is_now(true), "killed");
        Ok(())
    }
}

fn steps(root: &Path, name: &str) -> Vec<Step> {
    let findings = judge(&Setup::read(root), measured(name).as_ref());
    findings.into_iter().flat_map(|f| f.steps).collect()
}

fn mend(root: &Path, name: &str, kernel: &Kernel) {
    let mut record = Record::open(root).unwrap();
    for step in steps(root, name) {
        let changed = change(kernel, &mut record, &step);
        assert_eq!(changed, Ok(Changed::Done), "{name}: {step:?}");
    }
}

fn take_back(root: &Path, kernel: &Kernel) -> Vec<(Step, Result<Changed, String>)> {
    let mut all = Vec::new();
    let mut record = Record::open(root).unwrap();
    undo(kernel, &mut record, &mut |step, became| {
        all.push((step.clone(), became))
    })
    .unwrap();
    all
}

#[test]
fn what_is_found_is_mended_and_taken_back_to_the_byte() {
    let (mut mended, mut by_hand) = (0, 0);
    for name in names() {
        let root = machine(&name);
        let before = all_of(root.path());
        let findings = judge(&Setup::read(root.path()), measured(&name).as_ref());
        assert_eq!(findings.is_empty(), name == "right", "{name}: {findings:?}");
        for finding in &findings {
            assert_eq!(
                finding.steps.is_empty(),
                !finding.by_hand.is_empty(),
                "{finding:?}"
            );
        }
        by_hand += findings.iter().filter(|f| f.steps.is_empty()).count();
        let kernel = Kernel::of(root.path());
        mend(root.path(), &name, &kernel);
        let wrong: Vec<&str> = findings
            .iter()
            .filter(|f| !f.steps.is_empty())
            .map(|f| f.name)
            .collect();
        mended += wrong.len();
        let after = judge(&Setup::read(root.path()), measured(&name).as_ref());
        for finding in after.iter().filter(|f| !f.steps.is_empty()) {
            assert!(
                !wrong.contains(&finding.name),
                "{name} is not mended: {finding:?}"
            );
        }
        for (step, became) in take_back(root.path(), &kernel) {
            assert_eq!(became, Ok(Changed::Done), "{name}: {step:?}");
        }
        assert_eq!(all_of(root.path()), before, "{name}");
        assert!(!root.path().join("run/varve").exists());
    }
    assert!(mended >= 10 && by_hand >= 5, "{mended} {by_hand}");
}

/// Whenever the first one is killed, another one reverts all that was changed.
#[test]
fn killed_at_any_write_it_is_taken_back_by_the_next() {
    for name in names() {
        let root = machine(&name);
        let kernel = Kernel::of(root.path());
        mend(root.path(), &name, &kernel);
        let mending = kernel.writes.get();
        take_back(root.path(), &kernel);
        let both = kernel.writes.get();
        for at in 1..=both {
            for after in [false, true] {
                let root = machine(&name);
                let before = all_of(root.path());
                let kernel = Kernel {
                    killed: Some((at, after)),
                    ..Kernel::of(root.path())
                };
                let died = catch_unwind(AssertUnwindSafe(|| {
                    mend(root.path(), &name, &kernel);
                    take_back(root.path(), &kernel);
                }));
                assert!(died.is_err(), "{name} {at}");
                for (step, became) in take_back(root.path(), &Kernel::of(root.path())) {
                    assert!(
                        matches!(became, Ok(Changed::Done | Changed::Already)),
                        "{step:?} {became:?}"
                    );
                }
                assert_eq!(
                    all_of(root.path()),
                    before,
                    "{name}, killed at {at} of {mending}"
                );
            }
        }
    }
}

#[test]
fn what_others_changed_since_stays() {
    let root = machine("demotion-off");
    let kernel = Kernel::of(root.path());
    mend(root.path(), "demotion-off", &kernel);
    let file = "sys/kernel/mm/numa/demotion_enabled";
    kernel.put(file, "perhaps");
    let all = take_back(root.path(), &kernel);
    assert_eq!(all[0].1, Ok(Changed::Others("perhaps".into())));
    assert_eq!(kernel.read(file).unwrap(), "perhaps");
    assert!(
        take_back(root.path(), &kernel).is_empty(),
        "it is reported once"
    );
}

/// Blocks that do not go offline keep their part of the record, and the rest is reverted.
#[test]
fn what_is_refused_is_said_in_a_line_and_can_be_tried_again() {
    struct Busy(Kernel, &'static str, i32);
    impl Files for Busy {
        fn read(&self, path: &str) -> io::Result<String> {
            self.0.read(path)
        }
        fn write(&self, path: &str, value: &str) -> io::Result<()> {
            match path.contains(self.1) {
                true => Err(io::Error::from_raw_os_error(self.2)),
                false => self.0.write(path, value),
            }
        }
    }
    let name = "kernel-in-slow-memory";
    let root = machine(name);
    let before = all_of(root.path());
    mend(root.path(), name, &Kernel::of(root.path()));
    let busy = Busy(Kernel::of(root.path()), "memory33", libc::EBUSY);
    let mut record = Record::open(root.path()).unwrap();
    let mut refused = Vec::new();
    undo(&busy, &mut record, &mut |_, became| {
        refused.extend(became.err())
    })
    .unwrap();
    drop(record);
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].contains("memory33") && refused[0].contains("in use"),
        "{refused:?}"
    );
    take_back(root.path(), &Kernel::of(root.path()));
    assert_eq!(all_of(root.path()), before);

    for (error, word) in [
        (libc::EROFS, "read-only"),
        (libc::EACCES, "be root"),
        (libc::EINVAL, "Invalid argument"),
    ] {
        let root = machine("demotion-off");
        let before = all_of(root.path());
        let step = &steps(root.path(), "demotion-off")[0];
        let mut record = Record::open(root.path()).unwrap();
        let said = change(&Busy(Kernel::of(root.path()), "", error), &mut record, step);
        let said = said.unwrap_err();
        assert!(said.contains(word) && !said.contains('\n'), "{said}");
        assert_eq!(
            all_of(root.path()),
            before,
            "nothing is noted that was not done"
        );
    }
    // A file that is gone.
    let root = machine("demotion-off");
    let step = &steps(root.path(), "demotion-off")[0];
    fs::remove_file(root.path().join(&step.file)).unwrap();
    let said = change(
        &Root(root.path().into()),
        &mut Record::open(root.path()).unwrap(),
        step,
    );
    assert!(said.unwrap_err().contains("this kernel does not have it"));
}

#[test]
fn one_at_a_time_changes_a_machine() {
    let root = machine("demotion-off");
    let first = Record::open(root.path()).unwrap();
    let why = Record::open(root.path()).unwrap_err();
    assert!(why.contains("another") && !why.contains('\n'), "{why}");
    drop(first);
    assert!(Record::open(root.path()).unwrap().steps().is_empty());
    fs::create_dir_all(root.path().join("run/varve")).unwrap();
    fs::write(root.path().join("run/varve/doctor.json"), "nonsense").unwrap();
    assert!(
        Record::open(root.path())
            .unwrap_err()
            .contains("doctor.json")
    );
}
