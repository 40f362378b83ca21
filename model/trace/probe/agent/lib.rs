//! An agent inside a Java virtual machine (JVMTI, given by `-agentpath`). It reports where the heap's generations,
//! metaspace and compiled code are, each change of these places, and each pause of the program for a collection.
//!
//! ```text
//! machine has started     asks it by its own diagnostic commands, before the program's first class
//! a collection begins     a mark, by the machine's own thread
//! a collection ends       a mark with the kind of collection, from the machine's counters; wakes the agent's thread
//! the agent's thread      asks again, since the machine's thread may not, and reports changes
//! ```
//!
//! Where memory is to be on nodes of this machine, it also binds the ranges that it finds (`place.rs`), and at the end
//! writes where they were. With a deciding process it also reports the program's progress, and moves the old generation
//! (`decider.rs`).

#[allow(
    dead_code,
    reason = "shared with the readers of traces, which need more of it"
)]
#[path = "../../src/format/heap.rs"]
mod codes;
mod commands;
mod counters;
mod decider;
mod heap;
#[allow(
    dead_code,
    reason = "shared with the agent that samples allocations, which needs more of it"
)]
mod jvm;
mod marks;
mod pages;
mod place;
mod progress;
mod reports;

use codes::{Collector, Use};
use commands::Commands;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use counters::{Allocation, Counters};
use decider::Decider;
use heap::Range;
use jvm::{Callbacks, Handle, Jni, Jvmti, Machine, Table};
use marks::{CALL_HEAP_RANGE, CALL_MACHINE, CALL_PAUSE, CALL_RESUME};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Instant;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn _exit(code: c_int) -> !;
}

/// Reports something to the process that traces this one.
fn tell(call: i64, words: [u64; 3]) {
    // SAFETY: the kernel does not know such numbers.
    unsafe { syscall(call, words[0], words[1], words[2]) };
}

/// The agent's state of its machine.
struct Agent {
    jvmti: Jvmti,
    /// Monitor that the agent's thread waits at.
    monitor: Handle,
    counters: Option<Counters>,
    collector: Collector,
    /// Its feature version.
    version: u64,
    commands: Commands,
}

// SAFETY: tables and references that live on may be used by every thread of the machine.
unsafe impl Send for Agent {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Agent {}

static JVMTI: OnceLock<SendTable> = OnceLock::new();
static AGENT: OnceLock<Agent> = OnceLock::new();
/// Ranges reported last.
static TOLD: Mutex<Vec<Range>> = Mutex::new(Vec::new());
/// A collection has ended since the agent's thread last scanned the heap.
static COLLECTED: AtomicBool = AtomicBool::new(false);
/// Reported collections.
static COUNTED: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];
/// When the agent was loaded.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// When the machine stood still last, ns after that; how often it did, for how long, and the longest time, ns.
static STOOD_STILL_AT: AtomicU64 = AtomicU64::new(0);
static PAUSES: AtomicU64 = AtomicU64::new(0);
static PAUSED: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);
/// Ranges that could not be bound, and why the last one could not.
static REFUSED: Mutex<(u32, String)> = Mutex::new((0, String::new()));
/// Memory reserved for metaspace when the agent last asked, bytes.
static METASPACE: AtomicI64 = AtomicI64::new(0);

struct SendTable(Jvmti);
// SAFETY: a table of functions that every thread may call.
unsafe impl Send for SendTable {}
// SAFETY: as above.
unsafe impl Sync for SendTable {}

/// How long the agent's thread waits for a collection, ms, before it checks whether metaspace has grown.
const LOOK_EVERY_MS: i64 = 1000;

fn say(line: &str) {
    eprintln!("varve: {line}");
}

/// Entry: called by the virtual machine before it starts.
///
/// # Safety
/// The machine's table, and the agent's options as a string that ends in a zero byte, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(
    machine: Table,
    options: *const c_char,
    _: *const c_void,
) -> c_int {
    LazyLock::force(&BEGUN);
    if !options.is_null() {
        // SAFETY: promised by the caller.
        place::begin(&unsafe { CStr::from_ptr(options) }.to_string_lossy());
    }
    let Some(jvmti) = Machine(machine).jvmti() else {
        say("this Java virtual machine has no JVMTI 1.2; its heap is not known");
        return 0;
    };
    if let Some(places) = place::places()
        && let (Some(report), true) = (&places.report, places.decide.is_some())
    {
        reports::begin(report);
    }
    let mut callbacks = Callbacks::none();
    callbacks.set(jvm::VM_INIT, on_start as *const c_void);
    if jvmti.ask_for(&[jvm::COLLECTIONS]) {
        callbacks.set(jvm::VM_DEATH, on_end as *const c_void);
        callbacks.set(jvm::COLLECTION_START, on_pause as *const c_void);
        callbacks.set(jvm::COLLECTION_FINISH, on_resume as *const c_void);
    }
    let _ = JVMTI.set(SendTable(jvmti));
    if !jvmti.listen(&callbacks) {
        say(
            "this Java virtual machine notifies no agent of its collections; its heap is not known",
        );
    }
    0
}

/// The machine has started; the program has not.
extern "C" fn on_start(_: Table, jni: Table, _: Handle) {
    let jni = Jni(jni);
    if let Err(what) = start(jni) {
        say(&format!(
            "the heap of this Java virtual machine is not known: {what}"
        ));
        if place::places().is_some_and(|places| places.must) {
            end();
        }
    }
}

/// Ends the process: its memory had to be placed, and cannot be. The program has not begun.
fn end() -> ! {
    // SAFETY: takes nothing, and does not come back.
    unsafe { _exit(2) }
}

/// Ends the process if its memory had to be placed, and is not.
fn insist(agent: &Agent) {
    let Some(places) = place::places().filter(|places| places.must) else {
        return;
    };
    let refused = REFUSED.lock().map_or(0, |refused| refused.0);
    if refused > 0 {
        say(
            "the memory of this Java virtual machine cannot be bound: give the right to (CAP_SYS_NICE), or leave --must out",
        );
        end();
    }
    if places.tells_generations_apart() && !agent.collector.has_generations() {
        let whose = match agent.collector {
            Collector::Other => "a collector that is not known here",
            known => known.name(),
        };
        say(&format!(
            "the generations of this Java virtual machine have no places of their own ({whose}): take -XX:+UseSerialGC or \
             -XX:+UseParallelGC, or leave --must out"
        ));
        end();
    }
}

fn start(jni: Jni) -> Result<(), &'static str> {
    let jvmti = JVMTI.get().ok_or("the agent was not loaded")?.0;
    let monitor = jvmti.monitor(c"varve").ok_or("it has no monitors")?;
    let commands = Commands::find(jni)?;
    let mut agent = Agent {
        jvmti,
        monitor,
        counters: Counters::find(&maps()),
        collector: Collector::Other,
        version: 0,
        commands,
    };
    let info = agent.commands.ask(jni, "GC.heap_info");
    let info = info.ok_or("it does not know the command GC.heap_info")?;
    agent.collector = heap::heap(&info).0;
    let version = jvmti.property(c"java.vm.specification.version");
    agent.version = version.and_then(|text| text.parse().ok()).unwrap_or(0);
    tell(CALL_MACHINE, [agent.collector as u64, agent.version, 0]);
    let counts = agent.collector.has_generations() || agent.collector == Collector::G1;
    if agent.counters.is_none() && counts {
        say(
            "this Java virtual machine keeps no counters (-XX:-UsePerfData), which distinguish minor from full collections",
        );
    }
    agent.look(jni, true);
    insist(&agent);
    let thread = jni.thread("varve");
    let _ = AGENT.set(agent);
    thread
        .filter(|&thread| jvmti.run(thread, follow))
        .map(|_| ())
        .ok_or("it starts no thread for the agent")
}

fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

impl Agent {
    /// Counters of allocation, where generations have places of their own.
    fn allocation(&self) -> Option<Allocation> {
        let counters = self.counters.filter(|_| self.collector.has_generations())?;
        counters.allocation
    }

    /// Finds the place of everything, and reports each range that has changed since the last report.
    fn look(&self, jni: Jni, first: bool) {
        let mut ranges = Vec::new();
        let reserved = self.counters.map_or(0, |counters| counters.metaspace());
        if METASPACE.swap(reserved, Relaxed) != reserved || first {
            let text = self
                .commands
                .ask(jni, "VM.metaspace vslist")
                .unwrap_or_default();
            ranges.extend(heap::metaspace(&text));
        }
        if first {
            ranges.extend(heap::archive(&maps()));
            let text = self
                .commands
                .ask(jni, "Compiler.codecache")
                .unwrap_or_default();
            ranges.extend(heap::code(&text));
        }
        let info = self.commands.ask(jni, "GC.heap_info").unwrap_or_default();
        ranges.extend(heap::heap(&info).1);
        if self.collector == Collector::Z {
            ranges.extend(heap::z_heap(&maps()));
        }
        let Ok(mut told) = TOLD.lock() else { return };
        let young = |range: &Range| matches!(range.what, Use::Young | Use::Eden | Use::Survivor);
        // Spaces lie inside their generation: if one has moved, all are reported.
        let moved = ranges
            .iter()
            .any(|range| young(range) && !told.contains(range));
        ranges.retain(|range| (moved && young(range)) || !told.contains(range));
        if moved {
            told.retain(|range| !young(range));
        }
        for range in ranges {
            tell(
                CALL_HEAP_RANGE,
                [range.what as u64, range.start, range.bytes],
            );
            if let Some(Err(error)) = place::places().map(|places| places.bind(&range))
                && let Ok(mut refused) = REFUSED.lock()
            {
                *refused = (refused.0 + 1, error.to_string());
            }
            told.push(range);
        }
    }
}

/// The agent's thread, a daemon.
extern "C" fn follow(_: Table, jni: Table, _: *mut c_void) {
    let Some(agent) = AGENT.get() else { return };
    let places = place::places();
    let mut decider = places.and_then(Decider::of);
    loop {
        agent.jvmti.enter(agent.monitor);
        if !COLLECTED.swap(false, SeqCst) {
            agent.jvmti.wait(agent.monitor, LOOK_EVERY_MS);
            COLLECTED.store(false, SeqCst);
        }
        agent.jvmti.exit(agent.monitor);
        agent.look(Jni(jni), false);
        if let (Some(asked), Some(places)) = (&mut decider, places) {
            let old = agent
                .allocation()
                .map_or(u64::MAX, |now| now.old_capacity());
            if asked.step(places, old).is_err() {
                decider = None;
            }
        }
    }
}

/// A collection begins. The thread is the machine's own: it may not use JNI.
extern "C" fn on_pause(_: Table) {
    STOOD_STILL_AT.store(BEGUN.elapsed().as_nanos() as u64, Relaxed);
    if let Some(now) = AGENT.get().and_then(Agent::allocation) {
        progress::pause(&now);
    }
    tell(CALL_PAUSE, [0; 3]);
}

/// It ends.
extern "C" fn on_resume(_: Table) {
    let began = STOOD_STILL_AT.load(Relaxed);
    let paused = BEGUN.elapsed().as_nanos() as u64 - began;
    PAUSES.fetch_add(1, Relaxed);
    let before = PAUSED.fetch_add(paused, Relaxed);
    LONGEST.fetch_max(paused, Relaxed);
    let Some(agent) = AGENT.get() else {
        return tell(CALL_RESUME, [0; 3]);
    };
    if let Some(now) = agent.allocation() {
        progress::resume(&now, began - before);
    }
    let now = agent
        .counters
        .map_or([0; 2], |counters| counters.collections());
    let mut since = [0; 3];
    for (i, counted) in COUNTED.iter().enumerate() {
        since[i] = (now[i] - counted.swap(now[i], Relaxed)).max(0) as u64;
    }
    // The pauses of ZGC are parts of collections.
    if agent.collector == Collector::Z {
        since = [0; 3];
    }
    tell(CALL_RESUME, since);
    agent.jvmti.enter(agent.monitor);
    COLLECTED.store(true, SeqCst);
    agent.jvmti.notify(agent.monitor);
    agent.jvmti.exit(agent.monitor);
}

/// The machine is about to end: writes a line of JSON with its version and the places of its memory.
extern "C" fn on_end(_: Table, _: Table) {
    let (Some(agent), Some(places)) = (AGENT.get(), place::places()) else {
        return;
    };
    let Some(file) = &places.report else { return };
    let Ok(told) = TOLD.lock() else { return };
    let mut parts = Vec::new();
    for range in told.iter() {
        // Spaces are parts of their generation.
        if matches!(range.what, Use::Eden | Use::Survivor) {
            continue;
        }
        let nodes = pages::positions(range).into_iter();
        let nodes: Vec<String> = nodes
            .map(|(node, bytes)| format!("\"{node}\":{bytes}"))
            .collect();
        parts.push(format!(
            "{{\"what\":\"{}\",\"start\":{},\"reserved_bytes\":{},\"wanted\":{:?},\"nodes\":{{{}}}}}",
            range.what.name(),
            range.start,
            range.bytes,
            places.of(range.what).list(),
            nodes.join(",")
        ));
    }
    let [minor, full] = agent
        .counters
        .map_or([0; 2], |counters| counters.collections());
    let refused = REFUSED
        .lock()
        .map_or((0, String::new()), |refused| refused.clone());
    let line = format!(
        "{{\"pid\":{},\"collector\":\"{}\",\"java\":{},\"minor\":{minor},\"full\":{full},\"pauses\":{},\"pause_ns\":{},\"longest_pause_ns\":{},\"refused\":{},\"why_refused\":\"{}\",\"parts\":[{}]}}\n",
        std::process::id(),
        agent.collector.name(),
        agent.version,
        PAUSES.load(Relaxed),
        PAUSED.load(Relaxed),
        LONGEST.load(Relaxed),
        refused.0,
        refused.1,
        parts.join(",")
    );
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file);
    // The reader of the report finds out that it is missing.
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}
