//! Where the modules of the map are in this process.

use crate::find;
use crate::map::{Map, map};
use crate::mapped;
use crate::sys;
use crate::thread::Thread;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// It is not loaded, or no longer.
pub const MISSING: usize = 0;
/// A module of that name is loaded, and is another build.
pub const OTHER_BUILD: usize = 1;
/// It is loaded.
pub const THERE: usize = 2;

struct Module {
    state: AtomicUsize,
    /// The offset of its addresses from those of its file.
    base: AtomicUsize,
}

static MODULES: AtomicPtr<Module> = AtomicPtr::new(std::ptr::null_mut());
/// Modules that were loaded and taken out so far, as of the last search.
static CHANGES: AtomicU64 = AtomicU64::new(0);
static LOOKING: AtomicBool = AtomicBool::new(false);
/// A module is missing.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Calls from unknown addresses between two searches for new modules.
const MISSES: u32 = 64;
/// Calls from unknown addresses after a module was asked for, each of which may be its first.
const SOON: u32 = 1024;
/// How many of these are to come.
static EXPECTED: AtomicU32 = AtomicU32::new(0);

pub fn begin(map: &Map) -> Result<(), &'static str> {
    let bytes = (map.modules().max(1) * size_of::<Module>()).next_multiple_of(sys::PAGE);
    let at = sys::zeroed(bytes);
    if at == 0 {
        return Err("no memory for the table of modules");
    }
    MODULES.store(at as *mut Module, Ordering::Release);
    look(map);
    Ok(())
}

fn module(index: usize) -> &'static Module {
    // SAFETY: one for each module of the map, made before this is asked.
    unsafe { &*MODULES.load(Ordering::Acquire).add(index) }
}

pub fn state(index: usize) -> usize {
    module(index).state.load(Relaxed)
}

/// The offset to add to a module's addresses; none if it is not loaded.
pub fn base(index: usize) -> Option<usize> {
    (state(index) == THERE).then(|| module(index).base.load(Relaxed))
}

/// A call came from an address that the map does not know. Whether modules have come or gone since the last look, so that it may
/// be known now.
#[inline]
pub fn missed(thread: &Thread) -> bool {
    if !WAITING.load(Relaxed) {
        return false;
    }
    let expected = EXPECTED.load(Relaxed);
    if expected > 0 {
        // Of several threads that count at once, one may count for all.
        EXPECTED.store(expected - 1, Relaxed);
    }
    thread.misses.set(thread.misses.get().wrapping_add(1));
    (expected > 0 || thread.misses.get().is_multiple_of(MISSES)) && look_again()
}

/// A module is about to be loaded: its first calls are to be known.
pub extern "C" fn expect() {
    EXPECTED.store(SOON, Relaxed);
}

/// Modules may have gone: their addresses may be another's soon.
pub fn gone() {
    look_again();
}

/// Whether modules have come or gone since the last look.
#[cold]
fn look_again() -> bool {
    extern "C" fn count(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
        // SAFETY: the linker's structure, and the number below.
        unsafe { *to.cast::<u64>() = changes(&*info) };
        1
    }
    sys::keeping_errno(|| {
        let mut now = 0u64;
        // SAFETY: the number outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(count), std::ptr::from_mut(&mut now).cast()) };
        if now == CHANGES.load(Relaxed) {
            return false;
        }
        let Some(map) = map() else { return false };
        look(map);
        true
    })
}

fn changes(info: &libc::dl_phdr_info) -> u64 {
    info.dlpi_adds.wrapping_add(info.dlpi_subs)
}

/// In the child of a fork: the thread that was looking does not exist there.
pub fn after_fork() {
    LOOKING.store(false, Relaxed);
}

/// Finds the modules, and places static variables of those that are new.
fn look(map: &Map) {
    if LOOKING.swap(true, Ordering::Acquire) {
        return;
    }
    extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the linker's structure, and the search below.
        unsafe { (*search.cast::<Search>()).see(&*info) };
        0
    }
    let mut search = Search { map, first: true };
    for index in 0..map.modules() {
        let module = module(index);
        if module.state.load(Relaxed) == OTHER_BUILD {
            module.state.store(MISSING, Relaxed);
        }
        // Until it is seen again. Others go on with the table as it was.
        module.base.store(usize::MAX, Relaxed);
    }
    // SAFETY: the search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), std::ptr::from_mut(&mut search).cast()) };
    let mut waiting = false;
    for index in 0..map.modules() {
        let module = module(index);
        if module.base.load(Relaxed) == usize::MAX && module.state.load(Relaxed) == THERE {
            module.state.store(MISSING, Relaxed);
        }
        waiting |= state(index) != THERE;
    }
    // What was there may be taken out, and something else put in its place: as long as a module can be unloaded, we keep searching.
    WAITING.store(waiting || map.modules() > 1, Relaxed);
    find::build(map);
    LOOKING.store(false, Ordering::Release);
}

struct Search<'a> {
    map: &'a Map,
    /// The program itself comes first, without a name.
    first: bool,
}

impl Search<'_> {
    fn see(&mut self, info: &libc::dl_phdr_info) {
        CHANGES.store(changes(info), Relaxed);
        let mut own = [0u8; 4096];
        let name: &[u8] = if std::mem::take(&mut self.first) {
            // SAFETY: a buffer and its size.
            let bytes = unsafe {
                libc::readlink(
                    c"/proc/self/exe".as_ptr(),
                    own.as_mut_ptr().cast(),
                    own.len(),
                )
            };
            own.get(..usize::try_from(bytes).unwrap_or(0))
                .unwrap_or_default()
        } else if info.dlpi_name.is_null() {
            b""
        } else {
            // SAFETY: the linker's name of a module.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
        };
        let name = name.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let id = build_id(info);
        for index in 0..self.map.modules() {
            let wanted = self.map.module_id(index);
            let (same_name, known) = (self.map.module_name(index) == name, !wanted.is_empty());
            let module = module(index);
            if known && wanted == id || !known && same_name {
                let new = module.state.load(Relaxed) != THERE;
                module.base.store(info.dlpi_addr as usize, Relaxed);
                module.state.store(THERE, Relaxed);
                if new {
                    mapped::place_variables(self.map, index, info.dlpi_addr as usize);
                }
            } else if same_name && module.state.load(Relaxed) == MISSING {
                module.state.store(OTHER_BUILD, Relaxed);
            }
        }
    }
}

/// The build id among a module's notes; empty without one.
fn build_id(info: &libc::dl_phdr_info) -> &[u8] {
    const NT_GNU_BUILD_ID: u32 = 3;
    // SAFETY: program headers of a loaded module, and notes within its memory as they say.
    unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        for header in headers.iter().filter(|h| h.p_type == libc::PT_NOTE) {
            let at = (info.dlpi_addr + header.p_vaddr) as *const u8;
            let mut notes = std::slice::from_raw_parts(at, header.p_memsz as usize);
            while let Some((head, rest)) = notes.split_at_checked(12) {
                let word =
                    |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
                let (name, bytes) = (word(0) as usize, word(4) as usize);
                let start = name.next_multiple_of(4);
                let Some(id) = rest.get(start..start.saturating_add(bytes)) else {
                    break;
                };
                if word(8) == NT_GNU_BUILD_ID && rest.starts_with(b"GNU\0") {
                    return id;
                }
                notes = rest
                    .get(start + bytes.next_multiple_of(4)..)
                    .unwrap_or_default();
            }
        }
        &[]
    }
}
