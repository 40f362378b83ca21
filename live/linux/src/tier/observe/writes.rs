//! Soft-dirty bits (Documentation/admin-guide/mm/soft-dirty.rst): the kernel protects all pages against writes, and notes which of
//! them were written since.

use super::{Observer, Use};
use crate::place::pagemap::Pagemap;
use crate::tier::memory::of_place;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

const BASE: u64 = 4096;
/// Of an entry of a page map.
const SOFT_DIRTY: u64 = 1 << 55;

/// The written pages of one process.
pub struct Written {
    process: u32,
    page_bytes: u64,
    begun: bool,
}

impl Written {
    pub fn of(process: u32, page_bytes: u64) -> Written {
        Written {
            process,
            page_bytes,
            begun: false,
        }
    }
}

fn forget(process: u32) -> io::Result<()> {
    let path = format!("/proc/{process}/clear_refs");
    OpenOptions::new().write(true).open(path)?.write_all(b"4")
}

/// Of our own bits, one asks at a time: clearing the bits hides the writes from other threads.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the kernel notes what is written: tried on memory of our own.
pub fn works() -> bool {
    let _turn = turn();
    let own = std::process::id();
    let mut held = vec![1u8; 3 * BASE as usize];
    let page = held.as_ptr() as u64 / BASE + 1;
    let mut dirty = |touch: bool| {
        if forget(own).is_err() {
            return false;
        }
        if touch {
            let at = (page * BASE) as usize - held.as_ptr() as usize;
            // SAFETY: within the vector, to which there is no other reference.
            unsafe { held.as_mut_ptr().add(at).write_volatile(2) };
        }
        let mut found = Vec::new();
        written(own, BASE, &[page], &mut found).is_ok() && !found.is_empty()
    };
    dirty(true) && !dirty(false)
}

/// Appends which of these pages were written since all was forgotten.
fn written(process: u32, page_bytes: u64, pages: &[u64], found: &mut Vec<Use>) -> io::Result<()> {
    let map = Pagemap::of(process).map_err(of_place)?;
    let within = (page_bytes / BASE).max(1) as usize;
    let mut at = 0;
    while at < pages.len() {
        // Pages that follow each other are read together.
        let run = pages[at..].windows(2).take_while(|w| w[1] == w[0] + 1);
        let run = run.count() + 1;
        let start = pages[at] * page_bytes;
        let mut last = None;
        let result = map.read(start as usize, run * within, |index, entry| {
            if entry.present() && entry.0 & SOFT_DIRTY != 0 {
                let page = pages[at] + (index / within) as u64;
                if last != Some(page) {
                    last = Some(page);
                    found.push(Use { page, writes: true });
                }
            }
        });
        result.map_err(of_place)?;
        at += run;
    }
    Ok(())
}

impl Observer for Written {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        if self.begun {
            written(self.process, self.page_bytes, pages, uses)?;
        }
        self.begun = true;
        forget(self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_written_is_used_and_one_that_was_read_is_not() {
        if !works() {
            return varve_skip::skip!("the kernel has no soft-dirty bits");
        }
        let _turn = turn();
        let mut held = vec![1u8; 16 * BASE as usize];
        let first = held.as_ptr() as u64 / BASE + 1;
        let pages: Vec<u64> = (first..first + 8).collect();
        let mut observer = Written::of(std::process::id(), BASE);
        let mut uses = Vec::new();
        observer.look(&pages, &mut uses).unwrap();
        assert!(uses.is_empty());
        let at = |page: u64| ((first + page) * BASE) as usize - held.as_ptr() as usize;
        let (written, read) = (at(3), at(5));
        std::hint::black_box(held[read]);
        held[std::hint::black_box(written)] = 2;
        observer.look(&pages, &mut uses).unwrap();
        let seen: Vec<u64> = uses.iter().map(|u| u.page).collect();
        assert!(seen.contains(&(first + 3)) && uses[0].writes, "{seen:?}");
        std::hint::black_box(held);
    }
}
