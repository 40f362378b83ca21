//! Which memory of a process was used in a short while: the kernel forgets which pages were used, and tells
//! afterwards how much of each mapping was (`clear_refs` and `Referenced` of `smaps`, see proc(5)). The agent inside Java virtual machines
//! has this file too.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};

/// A mapping of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    /// The permissions, as the kernel writes them: `rw-p`.
    pub rights: String,
    /// Where it begins in its file.
    pub offset: u64,
    /// The device that its file is on, as the kernel writes it: `fe:00`.
    pub device: String,
    /// The file's number there; 0 for memory without a file.
    pub inode: u64,
    /// Its file or kind; empty for memory without either.
    pub path: String,
    /// Bytes in memory.
    pub resident: u64,
    /// Of these, bytes of pages that were used.
    pub used: u64,
    /// Bytes in large pages.
    pub huge: u64,
}

impl Mapping {
    /// It is the process's own, and may be written.
    pub fn is_private(&self) -> bool {
        self.rights.starts_with("rw") && self.rights.ends_with('p')
    }
}

/// Forgets which pages were used.
pub fn forget(process: u32) -> io::Result<()> {
    let path = format!("/proc/{process}/clear_refs");
    OpenOptions::new().write(true).open(path)?.write_all(b"1")
}

/// All mappings of a process, by address, and how much of each was used.
pub fn look(process: u32) -> io::Result<Vec<Mapping>> {
    read(BufReader::new(File::open(format!(
        "/proc/{process}/smaps"
    ))?))
}

/// All mappings of a process without what was used of each, which is quick. What is in memory of them is as it was `before`.
pub fn mappings(process: u32, before: &[Mapping]) -> io::Result<Vec<Mapping>> {
    let mut all = read(BufReader::new(File::open(format!("/proc/{process}/maps"))?))?;
    for mapping in &mut all {
        let known = holding(before, mapping.start).filter(|m| m.start == mapping.start);
        mapping.resident = known.map_or(0, |m| m.resident);
    }
    Ok(all)
}

/// The text of `maps` or `smaps`.
pub fn read(mut text: impl BufRead) -> io::Result<Vec<Mapping>> {
    let mut all: Vec<Mapping> = Vec::new();
    let mut line = String::new();
    while text.read_line(&mut line)? > 0 {
        if let Some(mapping) = first_line(line.trim_end()) {
            all.push(mapping);
        } else if let Some(last) = all.last_mut() {
            let bytes = |name: &str| {
                let number = line.strip_prefix(name)?.trim().strip_suffix(" kB")?;
                Some(number.parse::<u64>().ok()? * 1024)
            };
            if let Some(resident) = bytes("Rss:") {
                last.resident = resident;
            } else if let Some(used) = bytes("Referenced:") {
                last.used = used;
            } else if let Some(huge) = bytes("AnonHugePages:") {
                last.huge = huge;
            }
        }
        line.clear();
    }
    Ok(all)
}

/// `7f5c00000000-7f5c00021000 rw-p 00000000 00:00 0   [heap]`
fn first_line(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let rights = words.next()?.to_owned();
    let offset = hex(words.next()?)?;
    let device = words.next()?.to_owned();
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim().to_owned();
    Some(Mapping {
        start,
        end,
        rights,
        offset,
        device,
        inode,
        path,
        ..Mapping::default()
    })
}

/// The mapping in which an address is.
pub fn holding(all: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = all.partition_point(|m| m.start <= address);
    all[..after].last().filter(|m| address < m.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        let text = "\
55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
Rss:                  12 kB
Referenced:            8 kB
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000001000 r-xp 00002000 fe:00 1234                       /lib/a b.so
Rss:                   4 kB
Referenced:            0 kB
";
        let all = read(text.as_bytes()).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].resident, all[0].used), (12 << 10, 8 << 10));
        assert_eq!((all[0].huge, all[1].huge), (2 << 20, 0));
        assert_eq!((&*all[1].path, all[1].offset), ("/lib/a b.so", 0x2000));
        assert_eq!((&*all[1].device, all[1].inode), ("fe:00", 1234));
        assert_eq!(holding(&all, 0x55d0c0a20fff), Some(&all[0]));
        assert_eq!(holding(&all, 0x55d0c0a21000), None);
        assert_eq!(holding(&all, 0), None);
    }

    /// Of two pages that are mappings of their own, the one that was read since is used, and the other one is not.
    #[test]
    fn a_page_that_was_read_is_used() {
        let own = std::process::id();
        let memory = vec![1u8; 64 << 12];
        let first = memory.as_ptr() as usize;
        let page = |number: usize| (first.next_multiple_of(4096) + number * 4096) as u64;
        for number in [10, 20] {
            // SAFETY: within the vector; the advice does not change what it holds.
            unsafe { libc::madvise(page(number) as *mut _, 4096, libc::MADV_DONTDUMP) };
        }
        let at = |number: usize| page(number) as usize - first;
        let used = |all: &[Mapping], number| holding(all, page(number)).map(|m| m.used);
        let mut seen = 0;
        for _ in 0..20 {
            forget(own).unwrap();
            // A TLB entry of a page hides its use. Unmapping this much at once flushes the TLB.
            drop(std::hint::black_box(vec![1u8; 40 << 20]));
            std::hint::black_box(memory[std::hint::black_box(at(10))]);
            let all = look(own).unwrap();
            assert_eq!(used(&all, 20), Some(0));
            seen += used(&all, 10).unwrap() / 4096;
        }
        // Now and then it learns of the page again before that is read.
        assert!(seen > 0);
    }
}
