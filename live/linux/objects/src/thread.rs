//! The state of each thread: a heap in each tier, counts per group, and how far its stack reaches.

use crate::budget;
use crate::format::FAST;
use crate::map::Map;
use crate::memo::Memo;
use crate::memory;
use crate::sampled::Countdown;
use crate::sandbox;
use crate::share;
use crate::sys;
use libmimalloc_sys as mi;
use std::arch::{asm, global_asm};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Groups whose counts a thread has not told others of yet, at most.
const DIRTY: usize = 32;

/// Objects of a group that a thread is given before it tells others of them, at most.
const UNTOLD: u64 = 4096;

/// One thread's counts for one group. Only that thread writes it; the reporting thread reads it.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Count {
    pub objects: AtomicU64,
    /// Bytes given in fast memory, and in slow.
    pub given: [AtomicU64; 2],
    /// Bytes freed, which others may have given.
    pub taken: [AtomicU64; 2],
    /// The most that `given` was ahead of `taken` since others were told.
    top: [AtomicI64; 2],
    /// Objects that were to be in fast memory, and found no room for all of their bytes.
    refused: AtomicU64,
    /// It is in the thread's list of those of which there is more to tell.
    dirty: AtomicBool,
    /// Bytes allocated and freed before a fork, in fast and in slow memory: the child inherits them, but did not do it.
    pub before: [AtomicI64; 2],
    /// Fast memory that was reported to the budget.
    told: AtomicI64,
    /// Of what other processes know.
    shared: Shared,
}

/// The counts of a group as they were last told to the file of the run.
#[derive(Default)]
struct Shared {
    objects: AtomicU64,
    given: [AtomicU64; 2],
    refused: AtomicU64,
    /// Bytes given less those taken.
    held: [AtomicI64; 2],
}

impl Count {
    /// Bytes of a tier: those given minus those freed.
    pub fn live(&self, tier: u64) -> i64 {
        let before = self.before[tier as usize].load(Relaxed);
        before.wrapping_add(self.held(tier as usize))
    }

    /// The same, since the fork.
    #[inline]
    fn held(&self, tier: usize) -> i64 {
        let given = self.given[tier].load(Relaxed);
        given.wrapping_sub(self.taken[tier].load(Relaxed)) as i64
    }

    /// Tells the file of the run what is new. Any thread may: each change is told once, by the one that puts it into `shared`.
    fn tell(&self, group: usize) {
        for tier in 0..2 {
            let held = self.held(tier);
            let told = self.shared.held[tier].swap(held, Relaxed);
            let top = self.top[tier].load(Relaxed);
            self.top[tier].store(held, Relaxed);
            share::changed(group, tier, held - told, top - told);
        }
        let more = |now: &AtomicU64, told: &AtomicU64| {
            let now = now.load(Relaxed);
            now.wrapping_sub(told.swap(now, Relaxed))
        };
        share::given(
            group,
            more(&self.objects, &self.shared.objects),
            [0, 1].map(|tier| more(&self.given[tier], &self.shared.given[tier])),
            more(&self.refused, &self.shared.refused),
        );
    }
}

/// A thread, or the place of one that ended.
#[repr(C, align(64))]
pub struct Thread {
    heaps: [Cell<*mut mi::mi_heap_t>; 2],
    /// Addresses of the stack.
    pub stack: (usize, usize),
    /// Calls from addresses that are not in the map, while modules are missing.
    pub misses: Cell<u32>,
    /// Walks of this stack.
    pub memo: Memo,
    /// To the next sample of an object.
    pub samples: Countdown,
    dirty: [Cell<u16>; DIRTY],
    dirty_count: Cell<usize>,
    /// Bytes of fast memory not yet reported to the budget; the same of slow memory.
    pending: [Cell<i64>; 2],
    /// As many bytes of both, and there may be more in use than ever.
    until_top: Cell<i64>,
    reached: [Cell<usize>; 2],
    used: AtomicBool,
    next: *const Thread,
    groups: usize,
    // Counts follow.
}

// A word per thread, at a fixed distance from the thread's base. The compiler's own would call a function for it, since a
// library could be loaded late; a preloaded one is not.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".hidden varve_thread",
    ".globl varve_thread",
    ".type varve_thread, @object",
    ".size varve_thread, 8",
    "varve_thread:",
    ".zero 8",
    ".popsection",
);

/// Nothing known yet.
const NEW: usize = 0;
/// It gets nothing placed: it is at its beginning or at its end.
const OUTSIDE: usize = 1;

#[inline(always)]
fn word() -> usize {
    let word: usize;
    // SAFETY: reads the word of this thread defined above.
    unsafe {
        asm!("mov {0}, qword ptr [rip + varve_thread@GOTTPOFF]", "mov {0}, qword ptr fs:[{0}]",
             out(reg) word, options(nostack, readonly, preserves_flags));
    }
    word
}

fn set_word(word: usize) {
    // SAFETY: writes the word of this thread defined above.
    unsafe {
        asm!("mov {0}, qword ptr [rip + varve_thread@GOTTPOFF]", "mov qword ptr fs:[{0}], {1}",
             out(reg) _, in(reg) word, options(nostack, preserves_flags));
    }
}

static ALL: AtomicPtr<Thread> = AtomicPtr::new(std::ptr::null_mut());
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
/// Counts of threads that have none of their own any more.
static LATE: AtomicPtr<Thread> = AtomicPtr::new(std::ptr::null_mut());

/// Has ends of threads announced. Before mimalloc asks for the same: destructors of keys run in order, and heaps must be freed first.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the function is there as long as the process.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.store(key, Relaxed);
    }
}

/// Before any thread counts.
pub fn begin(map: &Map) -> Result<(), &'static str> {
    let late = Thread::make(map.groups()).ok_or("no memory for counts")?;
    LATE.store(std::ptr::from_ref(late).cast_mut(), Ordering::Release);
    Ok(())
}

/// The calling thread, if its objects are placed.
#[inline]
pub fn current(map: &Map) -> Option<&'static Thread> {
    match word() {
        NEW => first(map),
        OUTSIDE => None,
        // SAFETY: threads are never freed.
        at => Some(unsafe { &*(at as *const Thread) }),
    }
}

/// The calling thread, if it ever had an object placed.
#[inline]
pub fn known() -> Option<&'static Thread> {
    match word() {
        NEW | OUTSIDE => None,
        // SAFETY: threads are never freed.
        at => Some(unsafe { &*(at as *const Thread) }),
    }
}

#[cold]
fn first(map: &Map) -> Option<&'static Thread> {
    set_word(OUTSIDE);
    let thread = sys::keeping_errno(|| {
        let thread = Thread::place(map)?;
        // SAFETY: a value of the key's kind.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), std::ptr::from_ref(thread).cast()) };
        Some(thread)
    })?;
    set_word(std::ptr::from_ref(thread) as usize);
    Some(thread)
}

/// Nothing that the calling thread asks for from now on is placed.
pub fn leave() {
    set_word(OUTSIDE);
}

extern "C" fn ended(thread: *mut c_void) {
    set_word(OUTSIDE);
    // SAFETY: what `first` has set.
    let thread = unsafe { &*(thread as *const Thread) };
    thread.flush();
    for heap in &thread.heaps {
        let heap = heap.replace(std::ptr::null_mut());
        if !heap.is_null() {
            // SAFETY: this thread's own heap. Objects in it stay what they are.
            unsafe { mi::mi_heap_delete(heap) };
        }
    }
    thread.used.store(false, Ordering::Release);
}

/// Tells the file of the run what all threads have not told.
pub fn tell_all() {
    for thread in all() {
        for group in 0..thread.groups {
            thread.count(group).tell(group);
        }
    }
    share::top();
}

/// All threads, and those that were.
pub fn all() -> impl Iterator<Item = &'static Thread> {
    let mut at = ALL.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: null, or a thread, of which none is freed.
        let thread = unsafe { at.as_ref() }?;
        at = thread.next;
        Some(thread)
    })
}

/// Counts bytes that were freed.
#[inline]
pub fn taken(group: usize, tier: u64, bytes: usize) {
    match known() {
        Some(thread) => thread.taken(group, tier, bytes),
        None => late_free(group, tier, bytes),
    }
}

/// Counts what a thread without counts of its own freed.
#[cold]
fn late_free(group: usize, tier: u64, bytes: usize) {
    // SAFETY: made before anything was placed, and never freed.
    let Some(late) = (unsafe { LATE.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let count = late.count(group);
    count.taken[tier as usize].fetch_add(bytes as u64, Relaxed);
    count.tell(group);
    if tier == FAST {
        budget::add(group, -(bytes as i64));
    }
}

impl Thread {
    /// A place with as many counts, all 0, that is in use.
    fn make(groups: usize) -> Option<&'static Thread> {
        let bytes = size_of::<Thread>() + groups * size_of::<Count>();
        let at = sys::zeroed(bytes.next_multiple_of(sys::PAGE)) as *mut Thread;
        // SAFETY: zeroed memory that is large enough; zeros are a thread without anything. It is not shared before the
        // exchange succeeds.
        unsafe {
            at.as_mut()?.groups = groups;
            (*at).used = AtomicBool::new(true);
            let mut next = ALL.load(Relaxed);
            loop {
                (*at).next = next;
                match ALL.compare_exchange(next, at, Ordering::AcqRel, Relaxed) {
                    Ok(_) => return Some(&*at),
                    Err(now) => next = now,
                }
            }
        }
    }

    /// The place of a thread that ended, or a new one, for the calling thread.
    fn place(map: &Map) -> Option<&'static Thread> {
        let left = all().find(|t| {
            t.used
                .compare_exchange(false, true, Ordering::Acquire, Relaxed)
                .is_ok()
        });
        let thread = match left {
            Some(thread) => thread,
            None => Thread::make(map.groups())?,
        };
        let stack = std::ptr::from_ref(&thread.stack).cast_mut();
        let memo = std::ptr::from_ref(&thread.memo).cast_mut();
        // SAFETY: the place is this thread's alone. A memo of zeros is one without walks; those of the thread before were of
        // its stack.
        unsafe {
            stack.write(stack_of_this_thread());
            memo.write_bytes(0, 1);
        }
        Some(thread)
    }

    /// End of the stack in which an address is; 0 if that is not this thread's.
    pub fn stack_end(&self, at: usize) -> usize {
        let (low, high) = self.stack;
        if (low..high).contains(&at) { high } else { 0 }
    }

    /// This thread's heap in a tier; null if there can be none.
    #[inline]
    pub fn heap(&self, tier: u64) -> *mut mi::mi_heap_t {
        let heap = &self.heaps[tier as usize];
        if heap.get().is_null() {
            // SAFETY: an arena that mimalloc was given.
            heap.set(unsafe { mi::mi_heap_new_in_arena(memory::arena(tier)) });
        }
        heap.get()
    }

    #[inline]
    pub fn count(&self, group: usize) -> &Count {
        debug_assert!(group < self.groups);
        // SAFETY: counts follow the thread, one for each group.
        unsafe { &*std::ptr::from_ref(self).add(1).cast::<Count>().add(group) }
    }

    /// Bytes of fast memory allocated or freed that are not reported to the budget.
    #[inline]
    pub fn pending(&self) -> i64 {
        self.pending[FAST as usize].get()
    }

    /// Counts an object that was given.
    #[inline]
    pub fn given(&self, group: usize, tier: u64, object: usize, bytes: usize) {
        self.born(group);
        self.mapped(group, tier, bytes);
        self.reaches(tier, object + bytes);
    }

    /// Notes how far it uses a tier's range.
    #[inline]
    pub fn reaches(&self, tier: u64, end: usize) {
        let reached = &self.reached[tier as usize];
        if end > reached.get() {
            reached.set(end);
            memory::reached(tier, end);
        }
    }

    /// Counts an object or mapping, without its bytes.
    #[inline]
    pub fn born(&self, group: usize) {
        let objects = &self.count(group).objects;
        add(objects, 1);
        if objects.load(Relaxed).is_multiple_of(UNTOLD) {
            self.flush();
        }
    }

    /// Counts an object that was to be in fast memory, and finds no room for all of its bytes.
    #[cold]
    pub fn refused(&self, group: usize) {
        add(&self.count(group).refused, 1);
    }

    /// Counts bytes that were given.
    #[inline]
    pub fn mapped(&self, group: usize, tier: u64, bytes: usize) {
        let count = self.count(group);
        add(&count.given[tier as usize], bytes as u64);
        let held = count.held(tier as usize);
        let top = &count.top[tier as usize];
        if held > top.load(Relaxed) {
            top.store(held, Relaxed);
        }
        self.grew(count, group, tier, bytes);
    }

    /// Counts an object that was freed.
    #[inline]
    pub fn taken(&self, group: usize, tier: u64, bytes: usize) {
        let count = self.count(group);
        add(&count.taken[tier as usize], bytes as u64);
        self.shrank(count, group, tier, bytes);
    }

    /// Undoes the count of freed bytes.
    pub fn kept(&self, group: usize, tier: u64, bytes: usize) {
        let taken = &self.count(group).taken[tier as usize];
        taken.store(taken.load(Relaxed).wrapping_sub(bytes as u64), Relaxed);
        self.grew(self.count(group), group, tier, bytes);
    }

    /// A tier's bytes changed. Returns how many are not told.
    #[inline]
    fn change(&self, count: &Count, group: usize, tier: u64, bytes: i64) -> i64 {
        let pending = &self.pending[tier as usize];
        let now = pending.get() + bytes;
        pending.set(now);
        if !count.dirty.load(Relaxed) {
            self.note(count, group);
        }
        now
    }

    #[inline]
    fn grew(&self, count: &Count, group: usize, tier: u64, bytes: usize) {
        let now = self.change(count, group, tier, bytes as i64);
        let [fast, slow] = &self.pending;
        if now >= budget::step() as i64 || fast.get() + slow.get() > self.until_top.get() {
            self.flush();
        }
    }

    #[inline]
    fn shrank(&self, count: &Count, group: usize, tier: u64, bytes: usize) {
        let now = self.change(count, group, tier, -(bytes as i64));
        if now <= -(budget::step() as i64) {
            self.flush();
        }
    }

    #[cold]
    fn note(&self, count: &Count, group: usize) {
        if self.dirty_count.get() == DIRTY {
            self.flush();
        }
        count.dirty.store(true, Relaxed);
        self.dirty[self.dirty_count.get()].set(group as u16);
        self.dirty_count.set(self.dirty_count.get() + 1);
    }

    /// Tells the budget and the file of the run what changed.
    #[cold]
    pub fn flush(&self) {
        for dirty in &self.dirty[..self.dirty_count.replace(0)] {
            let group = usize::from(dirty.get());
            let count = self.count(group);
            let now = count.live(FAST);
            budget::add(group, now - count.told.load(Relaxed));
            count.told.store(now, Relaxed);
            count.tell(group);
            count.dirty.store(false, Relaxed);
        }
        self.pending.iter().for_each(|bytes| bytes.set(0));
        budget::decide();
        self.until_top.set(share::top());
    }

    /// In the child of a fork: what was given before is the parent's to report.
    pub fn forget_history(&self) {
        for count in (0..self.groups).map(|g| self.count(g)) {
            let shared = &count.shared;
            for number in [&count.objects, &count.refused] {
                number.store(0, Relaxed);
            }
            for number in [&shared.objects, &shared.refused] {
                number.store(0, Relaxed);
            }
            for tier in 0..2 {
                count.before[tier].store(count.live(tier as u64), Relaxed);
                for bytes in [&count.given[tier], &count.taken[tier], &shared.given[tier]] {
                    bytes.store(0, Relaxed);
                }
                for bytes in [&count.top[tier], &shared.held[tier]] {
                    bytes.store(0, Relaxed);
                }
            }
        }
    }
}

/// Only its thread writes it, so no exchange is needed.
#[inline]
fn add(to: &AtomicU64, value: u64) {
    to.store(to.load(Relaxed) + value, Relaxed);
}

/// First address of the stack and the one behind its last; both 0 if that cannot be known.
fn stack_of_this_thread() -> (usize, usize) {
    unsafe extern "C" {
        static __libc_stack_end: usize;
    }
    if sandbox::closed() {
        return (0, 0);
    }
    // SAFETY: asks about this thread; structures are filled in before they are read.
    unsafe {
        if libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) {
            // The C library would read a file for the first thread. The kernel keeps as much free below its end.
            const KEPT_FREE: u64 = 128 << 20;
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
            let end = __libc_stack_end;
            return (
                end.saturating_sub(limit.rlim_cur.min(KEPT_FREE) as usize),
                end,
            );
        }
        let mut about: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut about) != 0 {
            return (0, 0);
        }
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&about, &mut start, &mut bytes) == 0;
        libc::pthread_attr_destroy(&mut about);
        if known {
            (start as usize, start as usize + bytes)
        } else {
            (0, 0)
        }
    }
}
