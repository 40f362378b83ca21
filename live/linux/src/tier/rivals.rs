//! Other mechanisms on this machine that migrate pages between fast and slow memory, and how `tier` reacts.

use std::fs;
use std::path::Path;

/// Another mechanism that migrates pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Its name, its effect, and the reaction.
    pub line: String,
    /// It goes after the same aim, so that pages would be moved to and fro: nothing is tiered beside it unless the user says so.
    pub fights: bool,
}

/// Those that are on, as files below `root` tell.
pub fn rivals(root: &Path) -> Vec<Rival> {
    let word = |path: &str| {
        let text = fs::read_to_string(root.join(path)).unwrap_or_default();
        text.trim().to_string()
    };
    let mut all = Vec::new();
    let mut found = |line: String, fights| all.push(Rival { line, fights });
    // Bits: 1, between nodes by the processors that use pages; 2, between kinds of memory by use
    // (Documentation/admin-guide/sysctl/kernel.rst).
    let balancing = word("proc/sys/kernel/numa_balancing")
        .parse::<u32>()
        .unwrap_or(0);
    if balancing & 2 != 0 {
        found(
            format!(
                "NUMA balancing moves hot pages to fast memory, too (kernel.numa_balancing = {balancing}): turn it off with `sysctl kernel.numa_balancing=0`"
            ),
            true,
        );
    } else if balancing & 1 != 0 {
        found(
            "NUMA balancing is on (kernel.numa_balancing = 1) and moves pages to the processors that use them, to fast memory beyond --fast, too; it stays on, and its migrations are counted and reverted (sysctl kernel.numa_balancing=0 turns it off)"
                .into(),
            false,
        );
    }
    if matches!(&*word("sys/kernel/mm/numa/demotion_enabled"), "true" | "1") {
        found(
            "when fast memory is short, the kernel moves cold pages to slow memory (demotion_enabled); it stays on, and its migrations are counted"
                .into(),
            false,
        );
    }
    for (name, does) in [
        ("damon_reclaim", "pages out cold memory"),
        ("damon_lru_sort", "sorts pages by use"),
    ] {
        if word(&format!("sys/module/{name}/parameters/enabled")) == "Y" {
            found(
                format!("the kernel's {name} is on and {does}; it stays on"),
                false,
            );
        }
    }
    for action in schemes(&root.join("sys/kernel/mm/damon/admin/kdamonds")) {
        let fights = matches!(&*action, "migrate_hot" | "migrate_cold" | "demote");
        let line = match fights {
            true => format!(
                "a DAMON scheme migrates pages between memories, too ({action}): stop it with the tool that started it, such as `damo stop`"
            ),
            false => format!("a DAMON scheme is on ({action}); it stays on"),
        };
        found(line, fights);
    }
    all
}

/// The actions of the active schemes of all monitors.
fn schemes(folder: &Path) -> Vec<String> {
    let folders = |path: &Path| -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
        all.sort();
        all
    };
    let mut actions = Vec::new();
    for monitor in folders(folder) {
        let state = fs::read_to_string(monitor.join("state"));
        if state.is_ok_and(|state| state.trim() != "on") {
            continue;
        }
        for context in folders(&monitor.join("contexts")) {
            for scheme in folders(&context.join("schemes")) {
                if let Ok(action) = fs::read_to_string(scheme.join("action")) {
                    actions.push(action.trim().to_string());
                }
            }
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sysfs::put;

    fn with(files: &[(&str, &str)]) -> Vec<Rival> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            put(root.path(), path, text);
        }
        rivals(root.path())
    }

    #[test]
    fn whoever_moves_pages_by_use_fights() {
        assert!(with(&[]).is_empty());
        assert!(with(&[("proc/sys/kernel/numa_balancing", "0\n")]).is_empty());
        let plain = with(&[("proc/sys/kernel/numa_balancing", "1\n")]);
        assert!(!plain[0].fights && plain[0].line.contains("stays on"));
        let tiering = with(&[("proc/sys/kernel/numa_balancing", "2\n")]);
        assert!(tiering[0].fights && tiering[0].line.contains("sysctl"));
        let demotion = with(&[("sys/kernel/mm/numa/demotion_enabled", "true\n")]);
        assert!(!demotion[0].fights);
    }

    #[test]
    fn schemes_of_monitors_that_are_on_are_found() {
        let scheme = "sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/action";
        let state = "sys/kernel/mm/damon/admin/kdamonds/0/state";
        let on = |action| with(&[(scheme, action), (state, "on\n")]);
        assert!(on("migrate_hot\n")[0].fights);
        assert!(!on("stat\n")[0].fights);
        assert!(with(&[(scheme, "migrate_hot\n"), (state, "off\n")]).is_empty());
        let lru = with(&[("sys/module/damon_lru_sort/parameters/enabled", "Y\n")]);
        assert!(lru[0].line.contains("sorts"));
    }
}
