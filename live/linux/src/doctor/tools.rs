//! Programs that Varve can use, and control groups. Each program is started once, to print its version.

use super::{Check, Found, check, no, partly, yes};
use crate::arch;
use std::process::{Command, Stdio};

pub fn checks() -> Vec<Check> {
    vec![
        check(
            "qemu-user",
            "running unmodified programs on the model",
            "install qemu-user (Debian: apt install qemu-user)",
            version(&[arch::QEMU]),
        ),
        check(
            "valgrind",
            "cross-checks of recorded accesses",
            "install valgrind; nothing else needs it",
            version(&["valgrind"]),
        ),
        check(
            "C compiler",
            "`varve cc`, the fast path onto the model",
            "install gcc or clang",
            version(&["gcc", "clang"]),
        ),
        check(
            "cgroup cpusets",
            "keeping programs on chosen nodes and processors",
            "root, and a mounted cpuset controller; taskset and mbind are used instead",
            cpuset(),
        ),
    ]
}

/// First lines of `--version` of those that can be started.
fn version(programs: &[&str]) -> Found {
    let mut found = Vec::new();
    for program in programs {
        let output = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        if let Some(text) = output.ok().filter(|o| o.status.success()) {
            let text = String::from_utf8_lossy(&text.stdout).into_owned();
            found.push(text.lines().next().unwrap_or(program).trim().to_owned());
        }
    }
    if found.is_empty() {
        no(format!("{} cannot be started", programs.join(" or ")))
    } else {
        yes(found.join("; "))
    }
}

/// Makes a control group and removes it again.
fn cpuset() -> Found {
    let name = format!("varve-doctor-{}", std::process::id());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut seen = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, place, kind, options, ..] = fields.as_slice() else {
            continue;
        };
        let usable = match *kind {
            "cgroup2" => std::fs::read_to_string(format!("{place}/cgroup.controllers"))
                .is_ok_and(|c| c.split_ascii_whitespace().any(|c| c == "cpuset")),
            "cgroup" => options.split(',').any(|o| o == "cpuset"),
            _ => continue,
        };
        if !usable {
            continue;
        }
        let group = format!("{place}/{name}");
        match std::fs::create_dir(&group) {
            Ok(()) => {
                let _ = std::fs::remove_dir(&group);
                return yes(format!("a group could be made below {place}"));
            }
            Err(e) => seen.push(format!("{place}: {e}")),
        }
    }
    if seen.is_empty() {
        no("no cpuset controller is mounted")
    } else {
        partly(seen.join("; "))
    }
}
