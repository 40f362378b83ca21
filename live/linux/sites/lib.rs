//! An agent inside a Java virtual machine (JVMTI) that samples allocations: where objects are made, and which collections they
//! survive. `-agentpath:AGENT=report=FILE;interval=BYTES`, or loaded into a machine that runs.
//!
//! ```text
//! an allocation is sampled   its stack and its class; a weak reference, which keeps nothing alive
//! a collection ends          counted by the machine's own thread, which may do no more; wakes the agent's thread
//! the agent's thread         checks which references the collection has cleared, and where the other objects are
//! its second thread          looks now and then which of the old ones the program uses
//! the machine ends           a line of JSON in the report; also when the agent is loaded again, with the option `end`
//! ```
//!
//! Where an object is: in a heap whose generations have places of their own (Serial, Parallel), by its address. HotSpot's
//! references point to a word with that address. With G1 by its age: it is old when it has survived more collections than the
//! machine's threshold, or a full one, or is so large that it was born in regions of its own.

#[allow(dead_code, reason = "shared with the readers of traces")]
#[path = "../../../model/trace/src/format/heap.rs"]
mod codes;
#[path = "../../../model/trace/probe/agent/commands.rs"]
mod commands;
#[allow(dead_code, reason = "shared with the recorder's agent")]
#[path = "../../../model/trace/probe/agent/counters.rs"]
mod counters;
mod follow;
#[allow(dead_code, reason = "shared with the recorder's agent")]
#[path = "../../../model/trace/probe/agent/heap.rs"]
mod heap;
#[allow(dead_code, reason = "shared with the recorder's agent")]
#[path = "../../../model/trace/probe/agent/jvm.rs"]
mod jvm;
mod names;
mod report;
#[allow(dead_code, reason = "shared with the samplers of native programs")]
#[path = "../src/sampled/used.rs"]
mod used;
mod uses;
mod watch;
mod weight;

use codes::{Collector, Use};
use commands::Commands;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use follow::{Followed, Now, Place, Sample};
use heap::Range;
use jvm::{Callbacks, Frame, Handle, Jni, Jvmti, Machine, Table};
use names::Names;
use report::quoted;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Frames of a stack that are kept, at most.
const FRAMES: usize = 16;
/// Samples that are followed at once, at most: some 5 MiB.
const MOST: usize = 1 << 16;
/// How long the agent's thread waits for a collection, ms, before it checks for a request to end.
const LOOK_EVERY_MS: i64 = 1000;

/// The agent's options.
struct Options {
    report: String,
    /// Bytes between two samples of a thread, on average.
    interval: u64,
}

/// The agent's state.
struct Agent {
    jvmti: Jvmti,
    options: Options,
    /// The monitor at which the agent's thread waits.
    monitor: Handle,
    collector: Collector,
    version: u64,
    /// Where generations are, if they have places of their own.
    young: Option<Range>,
    old: Option<Range>,
    /// All of the heap, if it is in one piece.
    heap: Option<Range>,
    /// Whether threads have buffers of their own to allocate from.
    tlabs: bool,
    /// From this size on an object is born in the old generation; bytes.
    huge: u64,
    counters: Counters,
    begun: Instant,
}

// SAFETY: tables and references that live on may be used by every thread of the machine.
unsafe impl Send for Agent {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Agent {}

/// The machine's counters, as far as it keeps them.
#[derive(Default)]
struct Counters {
    young: Option<&'static AtomicI64>,
    full: Option<&'static AtomicI64>,
    tenuring: Option<&'static AtomicI64>,
    /// Bytes of the young generation, of the part where objects are born, of the old one.
    sizes: [Option<&'static AtomicI64>; 3],
}

/// A weak reference.
#[derive(Clone, Copy)]
struct Weak(Handle);
// SAFETY: such a reference may be used by every thread of the machine.
unsafe impl Send for Weak {}

impl Weak {
    /// The object's address. With a collector that moves objects while the program runs it would mean nothing.
    fn address(self) -> u64 {
        let word = (self.0 as usize & !7) as *const AtomicU64;
        // SAFETY: HotSpot's global references are addresses of words that hold the object's, with a tag in the lowest bits. The
        // word is there until the reference is freed.
        unsafe { (*word).load(Relaxed) }
    }
}

/// Samples by site.
struct Samples {
    names: Names,
    followed: Followed<Weak>,
}

static JVMTI: OnceLock<Jvmti> = OnceLock::new();
static OPTIONS: Mutex<Option<Options>> = Mutex::new(None);
static AGENT: OnceLock<Agent> = OnceLock::new();
static TABLE: Mutex<Option<Samples>> = Mutex::new(None);
/// Bytes that the program has allocated, as samples tell; and when the last collection ended.
static CLOCK: AtomicU64 = AtomicU64::new(0);
static CLOCK_THEN: AtomicU64 = AtomicU64::new(0);
/// Pauses for collections.
static PAUSES: AtomicU64 = AtomicU64::new(0);
/// The threshold that held in the last collection: the counter is of the next one.
static TENURING: AtomicI64 = AtomicI64::new(-1);
static TENURING_NEXT: AtomicI64 = AtomicI64::new(-1);
/// Collections before the agent was there.
static BEFORE: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];
/// A collection has ended since the agent thread's last check.
static COLLECTED: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);

// SAFETY: a table of functions that every thread may call.
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

fn table() -> MutexGuard<'static, Option<Samples>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// A string that ends in a zero byte, or null.
unsafe fn words(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(options) }
        .to_string_lossy()
        .into_owned()
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
    // SAFETY: promised by the caller.
    set_up(Machine(machine), &unsafe { words(options) });
    // A machine without samples runs as ever; the report says why there are none.
    0
}

/// Entry: called in a machine that runs, by the thread that serves such requests.
///
/// # Safety
/// As [`Agent_OnLoad`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnAttach(
    machine: Table,
    options: *const c_char,
    _: *const c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    let options = unsafe { words(options) };
    let machine = Machine(machine);
    let Some(jni) = machine.jni() else { return 1 };
    if options == "end" {
        end(jni);
    } else if set_up(machine, &options) {
        begin(jni);
    }
    0
}

/// Asks the machine for what is needed. `false` if it refuses, which the report says.
fn set_up(machine: Machine, text: &str) -> bool {
    let mut options = Options {
        report: String::new(),
        interval: 512 << 10,
    };
    for (key, value) in text.split(';').filter_map(|part| part.split_once('=')) {
        match key {
            "report" => options.report = value.into(),
            "interval" => options.interval = value.parse().unwrap_or(options.interval),
            _ => {}
        }
    }
    let asked = ask(machine, options.interval);
    if let Err(why) = asked {
        append(&options.report, &error_line(why));
    }
    *OPTIONS.lock().unwrap_or_else(PoisonError::into_inner) = Some(options);
    asked.is_ok()
}

fn ask(machine: Machine, interval: u64) -> Result<(), &'static str> {
    let jvmti = machine.jvmti().ok_or("it has no JVMTI 1.2")?;
    let mut wanted = vec![
        jvm::SOURCE_FILES,
        jvm::LINE_NUMBERS,
        jvm::COLLECTIONS,
        jvm::ALLOCATION_SAMPLES,
        jvm::VIRTUAL_THREADS,
    ];
    if !jvmti.ask_for(&wanted) {
        wanted.pop();
        if !jvmti.ask_for(&wanted) {
            return Err(
                "it provides no allocation samples: it is older than JDK 11, or another profiler uses them",
            );
        }
    }
    if !jvmti.sample_every(interval.min(i32::MAX as u64) as c_int) {
        return Err("it does not take the interval of samples");
    }
    let mut callbacks = Callbacks::none();
    callbacks.set(jvm::VM_INIT, on_start as *const c_void);
    callbacks.set(jvm::VM_DEATH, on_end as *const c_void);
    callbacks.set(jvm::COLLECTION_START, on_collection as *const c_void);
    callbacks.set(jvm::COLLECTION_FINISH, on_collected as *const c_void);
    callbacks.set(jvm::ALLOCATION_SAMPLE, on_sample as *const c_void);
    let _ = JVMTI.set(jvmti);
    match jvmti.listen(&callbacks) {
        true => Ok(()),
        false => Err("it does not notify agents of its collections"),
    }
}

fn error_line(why: &str) -> String {
    format!(
        "{{\"pid\":{},\"error\":{}}}\n",
        std::process::id(),
        quoted(why)
    )
}

/// If that fails, the caller of the agent sees that the report is missing.
fn append(file: &str, line: &str) {
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// The machine has started; the program has not.
extern "C" fn on_start(_: Table, jni: Table, _: Handle) {
    begin(Jni(jni));
}

fn begin(jni: Jni) {
    let options = OPTIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let (Some(&jvmti), Some(options)) = (JVMTI.get(), options) else {
        return;
    };
    let report = options.report.clone();
    if let Err(why) = follow_machine(jvmti, jni, options) {
        append(&report, &error_line(why));
    }
}

fn follow_machine(jvmti: Jvmti, jni: Jni, options: Options) -> Result<(), &'static str> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // Without its commands it is not known where generations are: objects are old by their age.
    let commands = Commands::find(jni).ok();
    let ask = |command| commands.as_ref().and_then(|c| c.ask(jni, command));
    let info = ask("GC.heap_info").unwrap_or_default();
    let flags = ask("VM.flags").unwrap_or_default();
    let (collector, ranges) = heap::heap(&info);
    let of = |what| ranges.iter().find(|range| range.what == what).copied();
    let version = jvmti.property(c"java.vm.specification.version");
    let huge = match collector {
        // Half of a region.
        Collector::G1 => region_bytes(&info).map_or(u64::MAX, |bytes| bytes / 2),
        _ => u64::MAX,
    };
    let agent = Agent {
        jvmti,
        monitor: jvmti.monitor(c"varve sites").ok_or("it has no monitors")?,
        collector,
        version: version.and_then(|text| text.parse().ok()).unwrap_or(0),
        young: of(Use::Young),
        old: of(Use::Old),
        heap: of(Use::Heap),
        tlabs: !flags.contains("-XX:-UseTLAB"),
        huge,
        counters: Counters::find(&maps),
        options,
        begun: Instant::now(),
    };
    let [young, full] = agent.counters.collections();
    BEFORE[0].store(young, Relaxed);
    BEFORE[1].store(full, Relaxed);
    agent.tenured();
    let ages = agent.has_ages();
    *table() = Some(Samples {
        names: Names::new(),
        followed: Followed::new(MOST, ages),
    });
    let _ = AGENT.set(agent);
    let run = |name: &str, work| {
        let thread = jni.thread(name);
        thread.is_some_and(|thread| jvmti.run(thread, work))
    };
    // Without this one nothing is known of uses.
    run("varve uses", watch::watch);
    match run("varve sites", follow) {
        true => Ok(()),
        false => Err("it starts no thread for the agent"),
    }
}

/// The size of a region of G1, as `GC.heap_info` has it: `region size 1024K`.
fn region_bytes(info: &str) -> Option<u64> {
    let number = info.split_once("region size ")?.1.split_once('K')?.0;
    Some(number.trim().parse::<u64>().ok()? << 10)
}

impl Counters {
    fn find(maps: &str) -> Counters {
        let memory = counters::memory(maps);
        let named = |name| counters::value(memory?, name);
        Counters {
            young: named("sun.gc.collector.0.invocations"),
            full: named("sun.gc.collector.1.invocations"),
            tenuring: named("sun.gc.policy.tenuringThreshold"),
            sizes: [
                named("sun.gc.generation.0.capacity"),
                named("sun.gc.generation.0.space.0.capacity"),
                named("sun.gc.generation.1.capacity"),
            ],
        }
    }

    /// Collections so far: of the young generation, of everything.
    fn collections(&self) -> [i64; 2] {
        [self.young, self.full].map(|counter| counter.map_or(0, |c| c.load(Relaxed)))
    }
}

impl Agent {
    /// Whether collections of the young generation are known apart, so that objects have ages. Without counters each pause is
    /// taken for one; those of ZGC are parts of collections, and it clears weak references only when it has collected everything.
    fn has_ages(&self) -> bool {
        self.collector.has_generations() || self.collector == Collector::G1
    }

    /// Where objects are that stay in their places between two collections, old ones among them.
    fn lasting(&self) -> Option<core::ops::Range<u64>> {
        let range = match self.collector {
            Collector::G1 => self.heap,
            _ if self.collector.has_generations() => self.old,
            _ => None,
        }?;
        Some(range.start..range.start + range.bytes)
    }

    /// Collections since the agent is there.
    fn now(&self) -> Now {
        let [young, full] = match (self.has_ages(), self.counters.young) {
            (false, _) => [0, 0],
            (true, None) => [PAUSES.load(SeqCst) as i64, 0],
            (true, Some(_)) => {
                let [young, full] = self.counters.collections();
                [
                    young - BEFORE[0].load(Relaxed),
                    full - BEFORE[1].load(Relaxed),
                ]
            }
        };
        Now {
            young: young.max(0) as u64,
            full: full.max(0) as u64,
            clock: CLOCK_THEN.load(SeqCst),
            tenuring: u64::try_from(TENURING.load(SeqCst)).ok(),
        }
    }

    /// The threshold that the machine has set for its next collection becomes that of the last one when there is another.
    fn tenured(&self) {
        let next = self.counters.tenuring.map_or(-1, |t| t.load(Relaxed));
        TENURING.store(TENURING_NEXT.swap(next, SeqCst), SeqCst);
    }

    /// Where an object is that is alive.
    fn place(&self, weak: Weak) -> Place {
        let (Some(young), Some(old)) = (self.young, self.old) else {
            return Place::Alive;
        };
        let address = weak.address();
        let inside = |range: Range| address.wrapping_sub(range.start) < range.bytes;
        match (inside(young), inside(old)) {
            (true, _) => Place::Young,
            (_, true) => Place::Old,
            _ => Place::Alive,
        }
    }

    /// Looks which samples are dead, and where the others are.
    fn look(&self, jni: Jni) {
        let mut table = table();
        let Some(Samples { followed, .. }) = &mut *table else {
            return;
        };
        let place = |sample: &Sample<Weak>| match jni.is_cleared(sample.handle.0) {
            true => Place::Dead,
            false => self.place(sample.handle),
        };
        followed.look(self.now(), place, |weak| jni.forget_weak(weak.0));
    }
}

/// An allocation is sampled. The thread is the one that allocates.
extern "C" fn on_sample(_: Table, jni: Table, _: Handle, object: Handle, class: Handle, size: i64) {
    let Some(agent) = AGENT.get() else { return };
    if ENDED.load(Relaxed) {
        return;
    }
    let (jvmti, jni) = (agent.jvmti, Jni(jni));
    let mut frames = [Frame {
        method: null_mut(),
        location: 0,
    }; FRAMES];
    let count = jvmti.stack(&mut frames);
    let stack = &frames[..count];
    let class = jvmti.signature(class).unwrap_or_default();
    let bytes = size.max(0) as u64;
    let weight = weight::stands_for(bytes, agent.options.interval);
    let more = (weight * bytes as f64) as u64;
    let born = CLOCK.fetch_add(more, Relaxed);
    let Some(weak) = jni.weak(object).map(Weak) else {
        return;
    };
    // From here on a collection may clear the reference, and so those before do not count.
    let now = agent.now();
    let old = bytes >= agent.huge || agent.place(weak) == Place::Old;
    let unknown = match &*table() {
        Some(table) => table.names.unknown(stack),
        None => return jni.forget_weak(weak.0),
    };
    let learned = names::ask(jvmti, jni, &unknown);
    let mut table = table();
    let Some(Samples { names, followed }) = &mut *table else {
        return jni.forget_weak(weak.0);
    };
    names.learn(learned);
    let sample = Sample {
        handle: weak,
        site: names.site(stack, &class),
        bytes,
        weight,
        born,
        young: now.young,
        full: now.full,
        age: 0,
        seen: 0,
        old,
        alive: born,
    };
    followed.add(sample, |weak| jni.forget_weak(weak.0));
}

/// The agent's thread, a daemon.
extern "C" fn follow(_: Table, jni: Table, _: *mut c_void) {
    let Some(agent) = AGENT.get() else { return };
    while !ENDED.load(SeqCst) {
        agent.jvmti.enter(agent.monitor);
        if !COLLECTED.swap(false, SeqCst) {
            agent.jvmti.wait(agent.monitor, LOOK_EVERY_MS);
        }
        agent.jvmti.exit(agent.monitor);
        agent.look(Jni(jni));
    }
}

/// A collection begins. The thread is the machine's own.
extern "C" fn on_collection(_: Table) {
    watch::begin();
}

/// A collection has ended. The thread is the machine's own: it may not use JNI.
extern "C" fn on_collected(_: Table) {
    watch::end();
    let Some(agent) = AGENT.get() else { return };
    PAUSES.fetch_add(1, SeqCst);
    CLOCK_THEN.store(CLOCK.load(SeqCst), SeqCst);
    agent.tenured();
    agent.jvmti.enter(agent.monitor);
    COLLECTED.store(true, SeqCst);
    agent.jvmti.notify(agent.monitor);
    agent.jvmti.exit(agent.monitor);
}

/// The machine is about to end.
extern "C" fn on_end(_: Table, jni: Table) {
    end(Jni(jni));
}

/// Checks all samples once more, frees everything, and writes the report.
fn end(jni: Jni) {
    let Some(agent) = AGENT.get() else { return };
    if ENDED.swap(true, SeqCst) {
        return;
    }
    for event in [
        jvm::ALLOCATION_SAMPLE,
        jvm::COLLECTION_START,
        jvm::COLLECTION_FINISH,
    ] {
        agent.jvmti.notify_of(event, false);
    }
    agent.jvmti.give_up(&[jvm::ALLOCATION_SAMPLES]);
    agent.look(jni);
    let Some(mut all) = table().take() else {
        return;
    };
    let live = all.followed.len();
    all.followed.finish(|weak| jni.forget_weak(weak.0));
    let Now { young, full, .. } = agent.now();
    let sizes = agent
        .counters
        .sizes
        .map(|size| size.map_or(0, |s| s.load(Relaxed)));
    let by = match agent.young {
        Some(_) => "address",
        None if agent.has_ages() => "age",
        None => "",
    };
    let command = agent.jvmti.property(c"sun.java.command");
    let line = format!(
        "{{\"pid\":{},\"collector\":\"{}\",\"java\":{},\"command\":{},\"interval_bytes\":{},\"milliseconds\":{},\"young\":{young},\"full\":{full},\"pauses\":{},\"paused_ms\":{},\"tenuring\":{},\"young_bytes\":{},\"eden_bytes\":{},\"old_bytes\":{},\"old_by\":\"{by}\",\"tlabs\":{},\"allocated_bytes\":{},\"live_samples\":{live},{}}}\n",
        std::process::id(),
        agent.collector.name(),
        agent.version,
        quoted(&command.unwrap_or_default()),
        agent.options.interval,
        agent.begun.elapsed().as_millis(),
        PAUSES.load(SeqCst),
        watch::PAUSED.load(SeqCst) / 1000,
        TENURING_NEXT.load(SeqCst),
        sizes[0],
        sizes[1],
        sizes[2],
        agent.tlabs,
        CLOCK.load(SeqCst),
        report::sites(&all.names, &all.followed),
    );
    append(&agent.options.report, &line);
}
