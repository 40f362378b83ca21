//! The agent's second thread: every now and then it looks which pages of old objects the program uses. See `uses`.

use super::follow::Sample;
use super::jvm::Table;
use super::uses::{self, OldObject, PAGE, Watched};
use super::{AGENT, CLOCK_THEN, ENDED, Samples, Weak, table, used};
use core::ffi::{c_int, c_void};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// How long the program goes on between the kernel's forgetting and the look. It is always the same, so that shares of pages in use can
/// be compared: of a program that is collected more often than that, uses are not known.
const WINDOW: Duration = Duration::from_millis(20);
/// The shortest time between two looks, and how many times as long as a look takes it is: 1 % of a processor. The first ones do not wait
/// for so long, so that something is known of short programs too.
const BETWEEN: Duration = Duration::from_millis(100);
const IDLE: u32 = 100;
const QUICK: u32 = 10;
/// Looks after which it is asked again how large pages are.
const ASK: u32 = 16;
/// Steps in which the thread sleeps, so that it ends soon.
const STEP: Duration = Duration::from_millis(50);

const DONTDUMP: c_int = 16;
const DODUMP: c_int = 17;

unsafe extern "C" {
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
}

/// Collections that have begun; and how many had when the last one ended.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// When the one began that is on, and the time of all that have ended: microseconds since the agent is there.
static SINCE: AtomicU64 = AtomicU64::new(0);
pub static PAUSED: AtomicU64 = AtomicU64::new(0);

/// A collection begins.
pub fn begin() {
    SINCE.store(microseconds(), SeqCst);
    BEGUN.fetch_add(1, SeqCst);
}

/// A collection has ended. The agent may have missed its beginning.
pub fn end() {
    let begun = BEGUN.load(SeqCst);
    if DONE.swap(begun, SeqCst) != begun {
        PAUSED.fetch_add(microseconds().saturating_sub(SINCE.load(SeqCst)), SeqCst);
    }
}

fn microseconds() -> u64 {
    let begun = AGENT.get().map(|agent| agent.begun.elapsed().as_micros());
    begun.map_or(0, |micros| micros as u64)
}

/// The number of the last collection, if none is on.
fn collections() -> Option<u64> {
    let done = DONE.load(SeqCst);
    (BEGUN.load(SeqCst) == done).then_some(done)
}

/// Marks pages, or takes the marks away. Returns those that took it.
fn mark(pages: impl Iterator<Item = u64>, bytes: u64, advice: c_int) -> BTreeSet<u64> {
    // SAFETY: this advice changes nothing but whether the pages are in a dump. Where there is no memory any more, it fails.
    let marks = |page: &u64| unsafe { madvise(*page as *mut c_void, bytes as usize, advice) == 0 };
    pages.filter(marks).collect()
}

/// The thread, a daemon.
pub extern "C" fn watch(_: Table, _: Table, _: *mut c_void) {
    let Some(agent) = AGENT.get() else { return };
    let Some(heap) = agent.lasting() else { return };
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 8
    };
    let own = std::process::id();
    let (mut tries, mut looks) = (0u32, 0u32);
    let (mut pause, mut bytes) = (BETWEEN, PAGE);
    while rest(pause) {
        let begun = Instant::now();
        let Some(collections) = collections() else {
            continue;
        };
        // What is newer shares pages with what the program makes now.
        let objects = old_objects(&heap, CLOCK_THEN.load(SeqCst));
        if objects.is_empty() {
            continue;
        }
        if tries.is_multiple_of(ASK) {
            let Ok(mappings) = used::look(own) else {
                return;
            };
            bytes = uses::page_bytes(&mappings, &heap);
        }
        tries += 1;
        let watched = uses::choose(&objects, bytes, &mut next);
        let Ok(seen) = look(own, &watched, bytes) else {
            return;
        };
        // Objects are where they were if none was collected since their addresses were read.
        if self::collections() == Some(collections) {
            count(&watched, &seen);
            looks += 1;
        }
        let took = begun.elapsed().saturating_sub(WINDOW);
        let quick = looks < QUICK && tries < 4 * QUICK;
        pause = if quick {
            BETWEEN
        } else {
            BETWEEN.max(took * IDLE)
        };
    }
}

/// Sleeps; whether the thread is to go on.
fn rest(pause: Duration) -> bool {
    let until = Instant::now() + pause;
    while !ENDED.load(SeqCst) {
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => std::thread::sleep(left.min(STEP)),
        }
    }
    false
}

/// The old samples that were made before a time, in bytes that the program has allocated.
fn old_objects(heap: &Range<u64>, before: u64) -> Vec<OldObject> {
    let table = table();
    let Some(Samples { followed, .. }) = &*table else {
        return Vec::new();
    };
    let object = |sample: &Sample<Weak>| {
        let object = OldObject {
            address: sample.handle.address(),
            size: sample.bytes,
            site: sample.site,
            stands_for: sample.weight * sample.bytes as f64,
        };
        heap.contains(&object.address).then_some(object)
    };
    let all = followed.old().filter(|sample| sample.born < before);
    all.filter_map(object).collect()
}

/// Which of the pages that could be marked are used within a window.
fn look(own: u32, watched: &[Watched], bytes: u64) -> std::io::Result<BTreeMap<u64, bool>> {
    let pages: BTreeSet<u64> = watched.iter().map(|of| of.page).collect();
    let pages = mark(pages.into_iter(), bytes, DONTDUMP);
    let seen = used::forget(own).and_then(|()| {
        std::thread::sleep(WINDOW);
        used::look(own).map(|mappings| uses::used(&mappings, &pages))
    });
    mark(pages.into_iter(), bytes, DODUMP);
    seen
}

fn count(watched: &[Watched], seen: &BTreeMap<u64, bool>) {
    let mut table = table();
    let Some(Samples { followed, .. }) = &mut *table else {
        return;
    };
    for of in watched {
        if let Some(&used) = seen.get(&of.page) {
            followed.looked(of.site, of.bytes, used);
        }
    }
}
