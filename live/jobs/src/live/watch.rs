//! The resource use of a running program, from /proc.

use std::collections::BTreeMap;
use std::fs;
use varve_live::nodes;
use varve_live::probe::bytes_of;

/// Memory that a process has now and shares with no file, bytes: what can be placed. 0 if it is gone.
pub fn own_memory(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    own(&text)
}

fn own(status: &str) -> u64 {
    bytes_of(status, "RssAnon") + bytes_of(status, "RssShmem")
}

/// Bytes of a process's own memory by node. Empty if it is gone, or the kernel does not tell.
pub fn by_node(pid: u32) -> BTreeMap<u32, u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap_or_default();
    nodes::by_node(&text, is_own)
}

/// By its words there, a mapping is of no file, whose pages are shared with others.
fn is_own(words: &[&str]) -> bool {
    !words.iter().any(|word| word.starts_with("file="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_pages_are_counted_by_node_and_size() {
        let text = "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    7f10 prefer:1 file=/usr/lib/libc.so.6 mapped=9 N0=9 kernelpagesize_kB=4\n\
                    7f20 default anon=1 N1=1 kernelpagesize_kB=2048\n\
                    7f30 default\n";
        assert_eq!(
            nodes::by_node(text, is_own),
            [(0, 4096), (1, 8192 + (2 << 20))].into()
        );
    }

    #[test]
    fn pages_of_files_are_not_a_programs_own() {
        let text = "VmHWM:\t  9000 kB\nVmRSS:\t  8000 kB\nRssAnon:\t     100 kB\nRssFile:\t    7870 kB\nRssShmem:\t      30 kB\n";
        assert_eq!(own(text), 130 << 10);
    }

    #[test]
    fn this_process_uses_memory_and_one_that_is_gone_does_not() {
        assert!(own_memory(std::process::id()) > 1 << 16);
        assert_eq!(own_memory(u32::MAX), 0);
        assert!(by_node(u32::MAX).is_empty());
    }
}
