//! How much memory may be taken.

/// `MemAvailable` of /proc/meminfo, bytes; less when the cgroup of the process leaves less. `None` when
/// neither can be read.
pub fn available_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = mem_available(&meminfo)?;
    Some(cgroup_left().map_or(machine, |left| machine.min(left)))
}

/// The `MemAvailable` line of the text of /proc/meminfo, in bytes.
pub fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Memory that is left under the limit of the process's own cgroup (version 2), bytes.
fn cgroup_left() -> Option<u64> {
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = cgroups.lines().find_map(|l| l.strip_prefix("0::"))?;
    let dir = format!("/sys/fs/cgroup{}", own.trim_end());
    let number = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("{dir}/{name}"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    // `memory.max` reads "max" without a limit, which is no number: nothing to respect.
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}
