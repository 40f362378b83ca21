//! Frames of programs that run already, exchanged. Most stories are of a machine with several nodes, and say elsewhere that they are
//! skipped: `.ci/run` tells them in a guest.

use crate::common::{command, is_root, typed, varve};
use crate::tier::{begun, compiled, turn};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two hot pages in each of 64 bins of a cache of 4 MiB.
const CONFLICTS: [&str; 3] = ["total=32", "cache=4", "pairs=64"];

/// Settings under which a slow guest is done soon.
const QUICK: [&str; 8] = [
    "tier",
    "--policy=dynamic:period=300ms",
    "--cache=4MiB",
    "--reserve=2MiB",
    "--core=100%",
    "--hold=1s",
    "--observe=writes",
    "--page=4KiB",
];

/// Tells a story of the program on a machine on which frames can be exchanged.
fn where_frames_can_be_exchanged(tell: impl FnOnce(&str)) {
    let folder = tempfile::tempdir().expect("a folder");
    let _turn = turn();
    if !Path::new("/sys/devices/system/node/node1/meminfo").exists() || !is_root() {
        return varve_skip::skip!("it needs a second node, and root");
    }
    if let Some(program) = compiled("conflicts", folder.path()) {
        tell(program.to_str().expect("a path of ours"));
    }
}

/// The kernel's lists of each processor are as short as can be, for a while.
struct ShortLists(String);

impl ShortLists {
    const PATH: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";

    fn begin() -> ShortLists {
        let before = std::fs::read_to_string(Self::PATH).expect("its value");
        std::fs::write(Self::PATH, "100000").expect("root may");
        ShortLists(before)
    }
}

impl Drop for ShortLists {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::PATH, &self.0);
    }
}

#[test]
fn what_does_not_go_together_is_refused_in_a_line() {
    let dynamic = ["tier", "--policy=dynamic", "--cache=64MiB"];
    let with = |more: &[&str]| varve(&[&dynamic[..], more, &["--", "true"]].concat());
    with(&["--fast=1GiB"]).refuses(2, &["--fast", "leave it out"]);
    with(&["--nodes=fast=0,slow=0"]).refuses(2, &["--nodes", "leave it out"]);
    with(&["--page=64KiB"]).refuses(2, &["4KiB or 2MiB"]);
    with(&["--dimm-map=x.toml"]).refuses(2, &["--dimm-map", "no DIMMs"]);
    with(&["--hot=[heap]"]).refuses(2, &["--hot", "no DIMMs"]);
    let words = ["tier", "--policy=dynamic", "--cache=5000", "--", "true"];
    varve(&words).refuses(2, &["--cache: 5000 bytes"]);
    if !Path::new("/sys/devices/system/node/node0/memory_side_cache").exists() {
        varve(&["tier", "--policy=dynamic", "--", "true"]).refuses(2, &["--cache 48GiB"]);
    }
    let hotset = ["tier", "--cache=4MiB", "--", "true"];
    varve(&hotset).refuses(2, &["--cache", "chooses nodes"]);
    let trays =
        |more: &[&str]| varve(&[&["tier", "--policy=trays"], more, &["--", "true"]].concat());
    trays(&["--cache=4MiB"]).refuses(2, &["--cache", "no bins"]);
    trays(&["--dimm-map=/no/such.toml"]).refuses(2, &["/no/such.toml"]);
    let words = ["tier", "--policy=trays:hot=0+4KiB", "--", "true"];
    varve(&words).refuses(2, &["for the model", "--hot"]);
}

/// A map of DIMMs in a file, from and to in MiB.
fn map(folder: &Path, dimms: &[(&str, u64, u64)]) -> String {
    let of = |(name, from, to): &(&str, u64, u64)| {
        format!(
            "[[dimm]]\nname = \"{name}\"\nranges = [\"{from}MiB+{}MiB\"]\n",
            to - from
        )
    };
    let file = folder.join("dimms.toml");
    let text: String = dimms.iter().map(of).collect();
    std::fs::write(&file, text).expect("it is written");
    format!("--dimm-map={}", file.display())
}

/// The governor goes by bandwidth, which this machine shows or not.
#[test]
fn a_governor_without_bandwidth_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let dimms = map(folder.path(), &[("A1", 0, 32), ("A2", 32, 64)]);
    let policy = "--policy=trays:model=10/20";
    let said = varve(&["tier", policy, "--hot=[heap]", &dimms, "--", "true"]);
    if is_counted() {
        return varve_skip::skip!("bandwidth is counted here");
    }
    let parts = [
        "model=",
        "resctrl",
        "uncore_imc or amd_umc",
        "leave model= out",
    ];
    said.refuses(2, &parts);
}

/// Whether there are counters of memory controllers, or resctrl.
fn is_counted() -> bool {
    let devices = std::fs::read_dir("/sys/bus/event_source/devices");
    let is_one = |name: &str| name.starts_with("uncore_imc") || name.starts_with("amd_umc");
    let names = devices.into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name());
    names.any(|name| is_one(&name.to_string_lossy()))
        || Path::new("/sys/fs/resctrl/mon_data").exists()
}

#[test]
fn maps_that_cannot_be_are_refused_and_so_is_a_machine_of_one_node() {
    let folder = tempfile::tempdir().unwrap();
    let overlap = map(folder.path(), &[("A1", 0, 64), ("A2", 32, 96)]);
    let words = format!("tier --policy=trays --hot=[heap] {overlap} -- true");
    let said = varve(&words);
    if Path::new("/sys/devices/system/node/node1/meminfo").exists() && is_root() {
        said.refuses(1, &["A1 and A2 overlap"]);
    } else if is_root() {
        said.refuses(1, &["this machine has one", "numa=fake=2"]);
        let words = typed("tier --policy=dynamic --cache=64MiB --observe=bits -- true");
        varve(&words).refuses(1, &["this machine has one"]);
    }
}

#[test]
fn hot_pages_of_a_bin_are_parted_whatever_the_program_does_meanwhile() {
    where_frames_can_be_exchanged(|program| {
        // It fails if conflicts stay for 60 s, or if any word is ever not what it must be.
        for more in [&[][..], &["do=share"], &["do=exec"]] {
            let words = [
                &QUICK[..],
                &["--json", "--", program],
                &CONFLICTS,
                &["seconds=240"],
                more,
            ];
            let said = varve(&words.concat()).well();
            assert!(said.err.contains("intact"), "{more:?}: {}", said.err);
            let json = said.json();
            let frames = &json["frames"];
            assert!(
                json["exchanged_bytes"].as_u64().unwrap() >= 32 << 12,
                "{json}"
            );
            assert_eq!(frames["away_bytes"], 0, "{json}");
            if more == ["do=share"] {
                let kinds = frames["in_account"].to_string();
                assert!(kinds.contains("shared memory"), "{json}");
            }
        }
        // Children are started all the time, and pages are copied for them.
        let words = [
            &QUICK[..],
            &["--", program],
            &CONFLICTS,
            &["seconds=6", "allow=-1", "do=fork"],
        ];
        let said = varve(&words.concat()).well();
        assert!(said.out.contains("intact"), "{}", said.out);
    });
}

#[test]
fn huge_pages_are_exchanged_whole_and_pinned_ones_are_left() {
    where_frames_can_be_exchanged(|program| {
        let huge = format!(
            "tier --policy=dynamic:period=300ms --cache=64MiB --reserve=24MiB --core=100% \
             --hold=1s --observe=writes --page=2MiB -- {program} total=160 cache=64 pairs=4 \
             seconds=240 do=huge"
        );
        let said = varve(&huge).well();
        assert!(said.out.contains("intact"), "{}", said.out);
        // The kernel's lists of frames that were freed lately are short, and soon full: whatever is freed may go to anybody, and to anywhere.
        let short = ShortLists::begin();
        let said = varve(&huge).well();
        assert!(said.out.contains("intact"), "{}", said.out);
        drop(short);
        // A pipe holds one page of each pair: the other one goes, of half of the pairs at least.
        let words = [&QUICK[..], &["--json", "--", program], &CONFLICTS];
        let said = varve(
            &[
                &words.concat()[..],
                &["pairs=16", "allow=16", "seconds=240", "do=pin"],
            ]
            .concat(),
        )
        .well();
        assert!(said.err.contains("intact"), "{}", said.err);
        let json = said.json();
        assert!(
            json["exchanged_bytes"].as_u64().unwrap() >= 8 << 12,
            "{json}"
        );
        // Memory of small pages alone, where pages are large.
        let words = typed("--policy=dynamic:period=300ms --cache=64MiB --page=2MiB --core=100%");
        let words = [
            &["tier"],
            &words[..],
            &["--observe=writes", "--json", "--", program],
        ]
        .concat();
        let said = varve(
            &[
                &words[..],
                &["total=8", "seconds=2", "allow=-1", "pairs=1", "cache=1"],
            ]
            .concat(),
        )
        .well();
        let left = said.json()["frames"]["in_no_account"].to_string();
        assert!(left.contains("smaller than --page"), "{left}");
    });
}

/// Killed at any time, the tool leaves a program that goes on, and another one may begin. Two at a time may not.
#[test]
fn a_killed_tier_does_no_harm() {
    where_frames_can_be_exchanged(|program| {
        let running = begun(
            program,
            &[&CONFLICTS[..], &["seconds=14", "allow=-1"]].concat(),
        );
        let pid = format!("--pid={}", running.pid());
        for round in 0..5u64 {
            let mut words = QUICK.to_vec();
            words.push(&pid);
            // Pages that are moved all the time.
            words[1] = "--policy=dynamic:period=50ms,hot-stores=1,hot-loads=1,cool=2";
            words[5] = "--hold=1ms";
            let mut tier = command(&words).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(900 + 137 * round));
            if round == 2 {
                varve(&words).refuses(2, &["another `varve tier`"]);
            }
            tier.kill().unwrap();
            tier.wait().unwrap();
        }
        let text = running.ends_well();
        assert!(text.contains("intact"), "{text}");
    });
}

/// The processes of a control group share the account.
#[test]
fn pages_of_several_processes_that_conflict_are_parted() {
    let group = Path::new("/sys/fs/cgroup/varve-test");
    where_frames_can_be_exchanged(|program| {
        if !Path::new("/sys/fs/cgroup/cgroup.procs").exists() {
            let mount = ["-t", "cgroup2", "none", "/sys/fs/cgroup"];
            let done = Command::new("mount").args(mount).status();
            if !done.is_ok_and(|status| status.success()) {
                return varve_skip::skip!("there are no control groups");
            }
        }
        std::fs::create_dir_all(group).unwrap();
        let memory = [&CONFLICTS[..], &["pairs=100", "seconds=15", "allow=-1"]].concat();
        let both = [begun(program, &memory), begun(program, &memory)];
        for one in &both {
            std::fs::write(group.join("cgroup.procs"), one.pid()).unwrap();
        }
        let words = [&QUICK[..], &["--json", "--for=10s", "--cgroup=varve-test"]].concat();
        let said = varve(&words).well();
        let json = said.json();
        assert_eq!(json["processes"].as_array().unwrap().len(), 2, "{json}");
        let frames = &json["frames"];
        let number = |key: &str| frames[key].as_u64().unwrap();
        assert!(number("most_misplaced_hot_pages") >= 100, "{json}");
        assert!(number("misplaced_hot_pages") <= 20, "{json}");
        both.into_iter().for_each(|one| drop(one.ends_well()));
        std::fs::remove_dir(group).unwrap();
    });
}

/// Accessed pages go to the first DIMM, and leave the one on which all of them are.
#[test]
fn hot_pages_come_to_the_first_dimm() {
    where_frames_can_be_exchanged(|program| {
        let folder = tempfile::tempdir().unwrap();
        let memory = ["total=16", "pairs=32", "seconds=240", "do=leave"];
        let running = begun(program, &memory);
        let line = running
            .first
            .trim()
            .strip_prefix("leave ")
            .expect("it says where it is");
        let (from, to) = line.split_once(" to ").expect("two numbers");
        let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
        let mut text = String::from("[[dimm]]\nname = \"A1\"\nranges = [");
        if from > 0 {
            text += &format!("\"0+{from}MiB\", ");
        }
        text += &format!("\"{to}MiB+{}MiB\"]\n", 1024 - to);
        text += &format!("[[dimm]]\nname = \"A2\"\nranges = [\"{from}MiB+64MiB\"]\n");
        let file = folder.path().join("dimms.toml");
        std::fs::write(&file, text).unwrap();
        let dimms = format!("--dimm-map={}", file.display());
        let pid = format!("--pid={}", running.pid());
        let words = format!(
            "tier --policy=trays:tick=300ms {dimms} --reserve=16MiB --core=100% --hold=1s \
             --observe=writes --page=4KiB --json {pid}"
        );
        let said = varve(&words).well();
        assert!(said.err.contains("power of the DRAM"), "{}", said.err);
        let json = said.json();
        let dimms = json["frames"]["dimms"].as_array().unwrap();
        assert_eq!(dimms.len(), 2, "{json}");
        assert!(
            json["exchanged_bytes"].as_u64().unwrap() >= 32 << 12,
            "{json}"
        );
        let text = running.ends_well();
        assert!(text.contains("intact"), "{text}");
    });
}
