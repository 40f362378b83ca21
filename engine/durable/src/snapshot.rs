//! Copies of a region while it is stored to: its contents at one instant.
//!
//! The copying thread sets a flag. From then on each page is saved before its first write, and all others are copied in any order. So the copy is the
//! file at the instant when the flag was set: the state that a crash would have left if every earlier store had reached the medium. Without a copy
//! under way a write costs one load and a branch.

use crate::layout::PAGE;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A page's bytes.
pub(crate) type Page = [u8; PAGE as usize];

/// Most pages that wait to be fetched: 256 MiB. A copy that falls behind is given up, so that the program's memory is bounded.
const MOST_WAITING: usize = 64 << 10;

/// The state that an image shares with the thread that copies it.
#[derive(Default)]
pub(crate) struct Watch {
    copying: AtomicBool,
    /// Bytes of the image.
    len: AtomicU64,
    /// The file's name leads to another file, or to none.
    gone: AtomicBool,
    /// Some page is not as it was sealed, and cannot be reached any more.
    damaged: AtomicBool,
    copy: Mutex<Copy>,
}

#[derive(Default)]
struct Copy {
    /// One bit for each page of which the copy has the bytes.
    kept: Vec<u64>,
    pages: u64,
    /// Pages that were about to be written to.
    waiting: Vec<(u64, Box<Page>)>,
    fell_behind: bool,
}

impl Copy {
    /// Whether a page is still to be copied; it is not any more.
    fn take(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
        let needed = page < self.pages && self.kept[word] & bit == 0;
        if needed {
            self.kept[word] |= bit;
        }
        needed
    }
}

impl Watch {
    /// Whether a copy is under way.
    #[inline(always)]
    pub fn is_copying(&self) -> bool {
        self.copying.load(Ordering::Relaxed)
    }

    /// Bytes of the image.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// The image has this many bytes now.
    pub fn grown(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// Whether the file lost its name.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// The file lost its name.
    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Whether pages cannot be reached any more.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// A page is about to be out of reach.
    pub fn set_damaged(&self) {
        self.damaged.store(true, Ordering::Release);
    }

    fn copy(&self) -> MutexGuard<'_, Copy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the pages of bytes that are about to be written, of the image at `base`.
    #[cold]
    pub fn keep(&self, base: *const u8, offset: u64, bytes: u64) {
        let mut copy = self.copy();
        for page in offset / PAGE..(offset + bytes).div_ceil(PAGE) {
            if !copy.take(page) {
                continue;
            }
            if copy.waiting.len() >= MOST_WAITING {
                copy.fell_behind = true;
                copy.waiting.clear();
                self.copying.store(false, Ordering::Relaxed);
                return;
            }
            let kept = Box::new(read_page(base, page));
            copy.waiting.push((page, kept));
        }
    }

    /// Begins a copy: how many pages it has. `barrier` has all threads of the process pass a memory barrier.
    pub fn begin(&self, barrier: impl FnOnce()) -> u64 {
        {
            let mut copy = self.copy();
            // Nothing is needed yet: how long the image is can be known only once writers look.
            (copy.pages, copy.fell_behind) = (0, false);
            copy.waiting.clear();
            copy.kept.clear();
            self.copying.store(true, Ordering::SeqCst);
            // A write between the writer's check of the flag and now is in no page that is copied before this lock is released, or in all of them:
            // one write that nothing has fenced.
            barrier();
            copy.pages = self.len() / PAGE;
            copy.kept = vec![0; copy.pages.div_ceil(64) as usize];
            copy.pages
        }
    }

    /// Copies some pages of the image at `base` from one on, and the pages saved meanwhile; none if the copy was given up.
    pub fn fetch(&self, base: *const u8, from: u64, count: u64) -> Option<Vec<(u64, Box<Page>)>> {
        let mut copy = self.copy();
        if copy.fell_behind {
            return None;
        }
        let mut pages = std::mem::take(&mut copy.waiting);
        for page in from..from + count {
            if copy.take(page) {
                pages.push((page, Box::new(read_page(base, page))));
            }
        }
        Some(pages)
    }

    /// Ends it.
    pub fn end(&self) {
        self.copying.store(false, Ordering::Relaxed);
        *self.copy() = Copy::default();
    }
}

/// A page of an image, which its program may be storing to at the same time.
pub(crate) fn read_page(base: *const u8, page: u64) -> Page {
    let from = base
        .wrapping_add((page * PAGE) as usize)
        .cast::<AtomicU64>();
    let mut bytes = [0; PAGE as usize];
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        // SAFETY: the image has the page, at a multiple of 8; each word is read as one.
        let value = unsafe { (*from.add(i)).load(Ordering::Relaxed) };
        word.copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_what_the_image_was_when_it_began() {
        let mut words = vec![0u64; 8 * 512];
        for (i, w) in words.iter_mut().enumerate() {
            *w = i as u64;
        }
        let before = words.clone();
        let base = words.as_mut_ptr().cast::<u8>();
        let watch = Watch::default();
        watch.grown(8 * PAGE);
        assert_eq!(watch.begin(|| {}), 8);
        let mut copied = vec![0u8; 8 * PAGE as usize];
        let mut put = |pages: Vec<(u64, Box<Page>)>| {
            for (page, bytes) in pages {
                copied[(page * PAGE) as usize..][..PAGE as usize].copy_from_slice(&bytes[..]);
            }
        };
        let write = |offset: u64, value: u64| {
            watch.keep(base, offset, 8);
            // SAFETY: inside of the words.
            unsafe { base.add(offset as usize).cast::<u64>().write(value) };
        };
        write(3 * PAGE + 8, 99);
        put(watch.fetch(base, 0, 2).unwrap());
        write(8, 98); // A page that was copied already.
        write(7 * PAGE, 97);
        write(7 * PAGE + 8, 96);
        put(watch.fetch(base, 2, 6).unwrap());
        assert!(
            watch.fetch(base, 0, 8).unwrap().is_empty(),
            "each page once"
        );
        watch.end();
        let before: Vec<u8> = before.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert!(copied == before);
    }
}
