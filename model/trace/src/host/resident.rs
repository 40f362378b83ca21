//! Resident pages of a program: those that it touched while it was not recorded.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Pages of a stretch that is kept together.
const STRETCH: u64 = 512;
/// Pages that one read covers.
const AT_ONCE: u64 = 1 << 15;
/// An entry of `pagemap` has these bits where its page is in memory, or in swap (Documentation/admin-guide/mm/pagemap.rst).
const THERE: u64 = 3 << 62;

/// Reported pages, by process.
#[derive(Default)]
pub struct Resident {
    /// The kernel did not say which pages of a process are there.
    pub hidden: bool,
    told: HashMap<(u32, u64), [u64; STRETCH as usize / 64]>,
}

impl Resident {
    /// Resident pages of a process that were not reported before, as ranges of addresses. `below`: addresses from there
    /// on are not the program's.
    pub fn news(&mut self, process: u32, pid: u32, below: u64) -> Vec<(u64, u64)> {
        let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else {
            // It has ended.
            return Vec::new();
        };
        let Ok(pagemap) = File::open(format!("/proc/{pid}/pagemap")) else {
            self.hidden = true;
            return Vec::new();
        };
        let mut news = Vec::new();
        for (start, end) in maps.lines().filter_map(data).filter(|r| r.0 < below) {
            let mut at = start;
            while at < end {
                let pages = ((end - at) / PAGE).min(AT_ONCE);
                let mut bytes = vec![0; 8 * pages as usize];
                let got = pagemap.read_at(&mut bytes, at / PAGE * 8).unwrap_or(0);
                for (i, entry) in bytes[..got].chunks_exact(8).enumerate() {
                    let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
                    if entry & THERE != 0 && self.tell(process, at / PAGE + i as u64) {
                        push(&mut news, at + i as u64 * PAGE);
                    }
                }
                if got == 0 {
                    break;
                }
                at += pages * PAGE;
            }
        }
        news
    }

    /// Was this page not reported before? It is now.
    fn tell(&mut self, process: u32, page: u64) -> bool {
        let stretch = self.told.entry((process, page / STRETCH)).or_default();
        let (word, bit) = ((page % STRETCH / 64) as usize, 1 << (page % 64));
        let news = stretch[word] & bit == 0;
        stretch[word] |= bit;
        news
    }

    /// The program gave these pages back.
    pub fn forget(&mut self, process: u32, start: u64, bytes: u64) {
        let (first, last) = (start / PAGE, start.saturating_add(bytes).div_ceil(PAGE));
        if last - first > self.told.len() as u64 * STRETCH {
            // Of the first and the last stretch too much is forgotten: it is reported once more.
            let gone = first / STRETCH..last.div_ceil(STRETCH);
            self.told
                .retain(|(owner, stretch), _| *owner != process || !gone.contains(stretch));
            return;
        }
        for page in first..last {
            if let Some(stretch) = self.told.get_mut(&(process, page / STRETCH)) {
                stretch[(page % STRETCH / 64) as usize] &= !(1 << (page % 64));
            }
        }
    }
}

/// The range of a line of `maps` if it may hold data of the program: not code, and not memory of the recorder and the
/// kernel.
fn data(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let name = words.nth(3).unwrap_or("");
    let ours = name.contains("varve-") || matches!(name, "[vvar]" | "[vdso]" | "[vsyscall]");
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = (number(start)?, number(end)?);
    (rights.starts_with("rw") && !ours).then_some(range)
}

/// Appends a page to ranges.
fn push(ranges: &mut Vec<(u64, u64)>, page: u64) {
    match ranges.last_mut() {
        Some((start, bytes)) if *start + *bytes == page => *bytes += PAGE,
        _ => ranges.push((page, PAGE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of our own memory: only those that were touched, each once, and again after they were unmapped.
    #[test]
    fn a_page_is_news_once() {
        let bytes = 64 * PAGE as usize;
        // SAFETY: a fresh mapping of our own, which is only used here.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0)
        } as u64;
        let touch = |page: u64| {
            // SAFETY: inside of the mapping.
            unsafe { ((start + page * PAGE) as *mut u8).write_volatile(1) }
        };
        let mine = |ranges: Vec<(u64, u64)>| -> Vec<(u64, u64)> {
            let inside = |r: &&(u64, u64)| r.0 >= start && r.0 < start + bytes as u64;
            let pages = |r: &(u64, u64)| ((r.0 - start) / PAGE, r.1 / PAGE);
            ranges.iter().filter(inside).map(pages).collect()
        };
        let mut resident = Resident::default();
        let pid = std::process::id();
        touch(3);
        touch(4);
        touch(9);
        assert_eq!(mine(resident.news(0, pid, u64::MAX)), [(3, 2), (9, 1)]);
        touch(5);
        assert_eq!(mine(resident.news(0, pid, u64::MAX)), [(5, 1)]);
        resident.forget(0, start + 4 * PAGE, PAGE);
        assert_eq!(mine(resident.news(0, pid, u64::MAX)), [(4, 1)]);
        resident.forget(0, 0, 1 << 47);
        assert_eq!(mine(resident.news(0, pid, u64::MAX)), [(3, 3), (9, 1)]);
        assert_eq!(mine(resident.news(0, pid, start)), []);
    }

    #[test]
    fn code_and_the_recorders_memory_are_no_data() {
        assert_eq!(
            data("1000-3000 rw-p 00000000 00:00 0 "),
            Some((0x1000, 0x3000))
        );
        assert_eq!(
            data("1000-3000 rw-p 00000000 00:00 0  [heap]"),
            Some((0x1000, 0x3000))
        );
        assert_eq!(data("1000-3000 r-xp 00000000 08:01 7 /bin/sort"), None);
        assert_eq!(
            data("1000-3000 rw-s 00000000 00:01 7 /memfd:varve-ring (deleted)"),
            None
        );
        assert_eq!(data("words"), None);
    }
}
