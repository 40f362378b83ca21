//! From the words of a probe to runs of templates and events of one thread.

use super::ring::{
    CALLERS, EVENT, EVENT_ALLOC, EVENT_ALLOC_AT, EVENT_DISCARD, EVENT_EXEC, EVENT_EXIT, EVENT_FREE,
    EVENT_HEAP_RANGE, EVENT_MACHINE, EVENT_MAP, EVENT_MAPPED, EVENT_PAUSE, EVENT_RANGE,
    EVENT_RESUME, EVENT_STACK, EVENT_START, EVENT_TICK, EVENT_TOUCHED, EVENT_UNMAP, EVENT_WAIT,
    EVENT_WINDOW, EVENT_WORK, HEAD, RUN, RUN_COUNT, RUN_COUNT_SHIFT, SINGLE, Site,
};
use super::templates::{After, Key, Place, Registry, accesses, run_ops, single_op};
use crate::format::{
    CONTEXTS, LONG, NUMBER, NUMBER_AND_MORE, Run, SHORT, TemplateOp, next_context,
};
use crate::{Collector, Event, Use};
use varve_machine::{Kind, Op};

/// An event as the probe says it: call sites are still addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawEvent {
    /// Callers, the innermost first; the first 0 ends them.
    Alloc {
        addr: u64,
        bytes: u64,
        callers: [u64; CALLERS],
    },
    /// A stack that following events of the thread name by its number: return addresses, the innermost first.
    Stack {
        number: u64,
        callers: Box<[u64]>,
    },
    AllocAt {
        addr: u64,
        bytes: u64,
        stack: u64,
    },
    /// The range that was mapped just before was asked for by the program itself.
    Mapped {
        addr: u64,
        bytes: u64,
        stack: u64,
    },
    Free {
        addr: u64,
    },
    Map {
        addr: u64,
        bytes: u64,
    },
    Unmap {
        addr: u64,
        bytes: u64,
    },
    /// Pages went back while their range stays mapped; the ops say so too.
    Discard {
        addr: u64,
        bytes: u64,
    },
    Start {
        tick: u64,
        process: u32,
    },
    /// An event that has no call site.
    Known(Event),
    /// The process is another program from here on.
    Exec,
    Wait {
        tick: u64,
    },
    Tick {
        tick: u64,
    },
    /// The thread is recorded again.
    Window {
        number: u32,
        tick: u64,
    },
    Exit {
        tick: u64,
    },
}

/// Where runs and events go.
pub(super) trait Runs {
    /// A run of a template that the registry has, with its open addresses.
    fn run(&mut self, run: &Run, addresses: &[u64], registry: &Registry);
    /// The same for one that [`LONG`] says, which has an op for each of its addresses; they are changed by an exclusive or with
    /// `space`. `false` if one is 2^63 or more: then there is no such run, and a new block has to begin.
    fn again(
        &mut self,
        known: &Transition,
        addresses: &[u64],
        space: u64,
        registry: &Registry,
    ) -> bool;
    /// An event of the thread.
    fn event(&mut self, event: RawEvent);
    /// There is room for such a run.
    fn has_room(&self) -> bool;
    /// A new block should begin.
    fn is_full(&self) -> bool;
    /// A new block begins.
    fn next_block(&mut self);
}

/// Bytes that an access of a library's range stands for: a vector's.
const RANGE_BYTES: u64 = 32;
// The estimate of instructions in compiled code. With these numbers, programs that sort, walk a tree and stream over arrays
// (gcc 12 and clang 14, -O1 and -O2) come to 0.8 to 1.3 times what QEMU counts in them without the probe.

/// Two calls in the code that are less apart are taken for a straight piece of code.
const STRAIGHT_BYTES: u32 = 128;
/// Bytes that the instrumentation itself takes per access: the call, its argument, and a register moved out of its way.
const CALL_BYTES: u32 = 12;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: u32 = 5;
/// Instructions between accesses that a jump, a call or a return separates; also for the body of a loop of one access.
const JUMP_INSTRUCTIONS: u32 = 4;
/// Largest number of pages that one `Unmap` op holds, and the page it counts in.
const UNMAP_PAGES: u64 = u16::MAX as u64;
const PAGE_BYTES: u64 = 4096;
/// Up to as many instructions of code without accesses make templates of their own; more are said with the run.
const MOST_LEAD: u64 = 64;
/// Processes have their own bits 41 to 47 in the addresses of a trace, as many as there are such numbers.
const SPACES: u32 = 127;
const SPACE_SHIFT: u32 = 41;

/// The bits that distinguish the addresses of a process; none for the first.
pub(super) fn space_of(process: u32) -> u64 {
    match process {
        0 => 0,
        later => u64::from((later - 1) % SPACES + 1) << SPACE_SHIFT,
    }
}

/// A run at the front of a thread's words.
struct Front<'a> {
    /// How the probe said it, but for its addresses.
    what: u64,
    addresses: &'a [u64],
    /// The words behind it.
    left: &'a [u64],
}

/// A run of a block of QEMU's; none if something else is there.
#[inline(always)]
fn front_of_qemu(words: &[u64]) -> Option<Front<'_>> {
    let (&what, rest) = words.split_first()?;
    let count = (what >> RUN_COUNT_SHIFT & RUN_COUNT) as usize;
    let (addresses, left) = rest.split_at_checked(count)?;
    (what & HEAD == RUN).then_some(Front {
        what,
        addresses,
        left,
    })
}

// The head of an access of compiled code: its kind and size, the low half of where its call returns to; and what it is
// put together with.

const SHAPE: u64 = (1 << CALLER_SHIFT) - 1;
const CALLER_SHIFT: u32 = 18;
const MERGED: u64 = 1 << 50;
const DISTANCE_SHIFT: u32 = 51;
const MOST_DISTANCE: u64 = 1 << 10;
/// What every access has, so that none is 0, as empty entries are.
const ACCESS: u64 = 1 << 61;

/// An access of compiled code. A load whose store is the next access, as in `a[i] += x`, is one access to the machine.
#[inline(always)]
fn front_of_compiled(words: &[u64]) -> Option<Front<'_>> {
    let (&[head, addr], left) = words.split_first_chunk()?;
    if head & HEAD == EVENT {
        return None;
    }
    let addresses = &words[1..2];
    if head & 3 == 0
        && let Some((&[later, place], after)) = left.split_first_chunk()
        && place == addr
        && (later ^ head) & SHAPE == 1
        && later >> MERGED.trailing_zeros() == 0
    {
        let distance = (later >> CALLER_SHIFT).wrapping_sub(head >> CALLER_SHIFT) & 0xffff_ffff;
        if distance < MOST_DISTANCE {
            return Some(Front {
                what: head | ACCESS | MERGED | distance << DISTANCE_SHIFT,
                addresses,
                left: after,
            });
        }
    }
    Some(Front {
        what: head | ACCESS,
        addresses,
        left,
    })
}

/// A template in the block.
#[derive(Clone, Copy, Default)]
struct Entry {
    epoch: u32,
    /// What has followed it.
    next: u32,
}

/// Which template a run was of, by what the probe wrote for it and which template ran before; with all that is needed of it
/// to code it again.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Transition {
    what: u64,
    from: u32,
    /// 0 when the entry is empty.
    pub number: u32,
    pub first_slot: u32,
    pub ops: u16,
    pub instructions: u64,
}

/// Entries of the table of transitions: a second-level cache has room for them, and for what else is looked at.
const TRANSITIONS: usize = 1 << 13;

/// Where a transition is in the table.
#[inline(always)]
fn place(what: u64, from: u32) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (what ^ u64::from(from) << 24).wrapping_mul(MIX);
    (mixed >> 40) as usize % TRANSITIONS
}

/// What is remembered between the chunks of a thread.
#[derive(Default)]
pub(super) struct Walker {
    entries: Vec<Entry>,
    transitions: Vec<Transition>,
    /// What has followed the same few templates in the block.
    long: Vec<u32>,
    context: u32,
    epoch: u32,
    /// The template that ran last in the block, as its reader sees it.
    coded: u32,
    /// The template that ran last; 0 when nothing is to be concluded from it.
    current: u32,
    /// How the thread was left, when `current` is 0.
    after: After,
    /// Instructions not yet given to an op.
    carried: u64,
    space: u64,
    /// The process that the thread belongs to.
    process: u32,
    /// Lines that were touched while it was not recorded.
    pub touches: u64,
}

// Words that a key begins with, so that none is equal to one of another sort.
const RANGE_KEY: u64 = 1 << 62;
const UNMAP_KEY: u64 = 2 << 62;
const TOUCH_KEY: u64 = 3 << 62;
const WORK_KEY: u64 = UNMAP_KEY | 1 << 61;
const GROUP_KEY: u64 = RANGE_KEY | 1 << 61;
/// Vectors of a long range that share a template.
const GROUP: u64 = 16;
/// A store of an instruction whose load came just before, in a head of a single access.
const COMPANION: u64 = 1 << 60;

impl Walker {
    /// How the thread was left by what ran last.
    fn leave(&mut self, registry: &Registry) {
        if self.current != 0 {
            self.after = registry.after(self.current);
            self.current = 0;
        }
    }

    /// A new block begins: its reader knows nothing.
    fn next_block(&mut self) {
        self.epoch += 1;
        (self.coded, self.context) = (0, 0);
        self.long.clear();
        self.long.resize(CONTEXTS, 0);
    }

    /// Where code of the thread is.
    fn at(&self, address: u64) -> Place {
        let process = self.process;
        Place { process, address }
    }

    /// Whatever ran so far, something else is in the same place from here on.
    fn forget(&mut self) {
        self.transitions.clear();
        self.transitions.resize(TRANSITIONS, Transition::default());
    }

    /// Takes the words of a chunk.
    pub fn walk(
        &mut self,
        words: &[u64],
        sites: &[Site],
        compiled: bool,
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        if self.epoch == 0 {
            self.forget();
            self.next_block();
        }
        match compiled {
            true => self.compiled(words, registry, out),
            false => self.qemu(words, sites, registry, out),
        }
    }

    fn qemu(
        &mut self,
        words: &[u64],
        sites: &[Site],
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let mut at = 0;
        loop {
            at = self.quick(words, at, front_of_qemu, registry, out);
            let Some(&head) = words.get(at) else { return };
            at += 1;
            match head & HEAD {
                RUN => {
                    let left = &words[at..];
                    let count = (head >> RUN_COUNT_SHIFT & RUN_COUNT) as usize;
                    if !self.follow(head, count, left, &mut at, registry, out) {
                        self.qemu_run(head, left, &mut at, sites, registry, out);
                    }
                }
                SINGLE => self.qemu_single(head, words, &mut at, sites, registry, out),
                EVENT => self.event(head, words, &mut at, registry, out),
                // an address without a head: a run was broken off by a fault, and this is what came after it
                _ => {}
            }
        }
    }

    /// The quick way, from one place in the words to another, for runs that are what followed the same few templates before.
    /// Most are.
    #[inline(always)]
    fn quick<'a>(
        &mut self,
        words: &'a [u64],
        from: usize,
        front: impl Fn(&'a [u64]) -> Option<Front<'a>>,
        registry: &Registry,
        out: &mut impl Runs,
    ) -> usize {
        let transitions = self.transitions.first_chunk::<TRANSITIONS>();
        let long = self.long.first_chunk::<CONTEXTS>();
        let (Some(transitions), Some(long)) = (transitions, long) else {
            return from;
        };
        let (mut current, mut context) = (self.current, self.context);
        let mut left = words.get(from..).unwrap_or_default();
        let mut is_whole = true;
        while let Some(run) = front(left) {
            let known = &transitions[place(run.what, current)];
            let is_known = known.what == run.what
                && known.from == current
                && known.number == long[context as usize % CONTEXTS];
            let (true, Some(entry)) = (is_known, self.entries.get_mut(current as usize)) else {
                break;
            };
            is_whole = out.has_room() && out.again(known, run.addresses, self.space, registry);
            if !is_whole {
                break;
            }
            entry.next = known.number;
            current = known.number;
            context = next_context(context, current);
            left = run.left;
        }
        // what ran last is coded, if anything is known of it
        if current != 0 {
            (self.current, self.coded, self.context) = (current, current, context);
        }
        if !is_whole {
            self.leave(registry);
            self.next_block();
            out.next_block();
        }
        words.len() - left.len()
    }

    /// The same for one run, however it is to be coded. `false` when it has not followed the current template before.
    #[inline(always)]
    fn follow(
        &mut self,
        what: u64,
        count: usize,
        left: &[u64],
        at: &mut usize,
        registry: &Registry,
        out: &mut impl Runs,
    ) -> bool {
        let known = self.transitions[place(what, self.current)];
        if (known.what, known.from) != (what, self.current) {
            return false;
        }
        let Some(addresses) = left.get(..count) else {
            return false;
        };
        // a head among them: the run was broken off
        if addresses.iter().any(|address| address >> 63 != 0) || out.is_full() {
            return false;
        }
        *at += count;
        let is_again = self.long[self.context as usize % CONTEXTS] == known.number;
        if is_again && out.again(&known, addresses, self.space, registry) {
            // what ran last is coded, as something is known of it
            self.entries[self.coded as usize].next = known.number;
            self.context = next_context(self.context, known.number);
            (self.current, self.coded) = (known.number, known.number);
        } else {
            self.code(&known, 0, registry, addresses, out);
        }
        true
    }

    /// Codes a run of a template.
    #[inline(never)]
    fn code(
        &mut self,
        known: &Transition,
        more: u32,
        registry: &Registry,
        addresses: &[u64],
        out: &mut impl Runs,
    ) {
        let number = known.number;
        let long = &mut self.long[self.context as usize % CONTEXTS];
        let last = &mut self.entries[self.coded as usize];
        let how = match more {
            0 if *long == number => LONG,
            0 if last.next == number => SHORT,
            0 => NUMBER,
            _ => NUMBER_AND_MORE,
        };
        if self.coded != 0 {
            (last.next, *long) = (number, number);
        }
        self.context = next_context(self.context, number);
        (self.current, self.coded) = (number, number);
        let entry = &mut self.entries[number as usize];
        let first = entry.epoch != self.epoch;
        if first {
            (entry.epoch, entry.next) = (self.epoch, 0);
        }
        let run = Run {
            how,
            first,
            number,
            more,
            first_slot: known.first_slot,
            ops: u32::from(known.ops),
            instructions: known.instructions,
        };
        if self.space == 0 {
            out.run(&run, addresses, registry);
        } else {
            let mut spaced = [0; crate::format::MAX_ADDRESSES];
            let spaced = &mut spaced[..addresses.len()];
            for (to, from) in spaced.iter_mut().zip(addresses) {
                *to = from ^ self.space;
            }
            out.run(&run, spaced, registry);
        }
    }

    /// The long way: the template is known by its key, or new. `what` is 0 when the same words may mean something else next
    /// time.
    fn put_number(
        &mut self,
        what: u64,
        number: u32,
        more: u64,
        registry: &Registry,
        addresses: &[u64],
        out: &mut impl Runs,
    ) {
        if self.entries.len() <= number as usize {
            self.entries.resize(number as usize + 1, Entry::default());
        }
        let template = registry.get(number);
        let known = Transition {
            what,
            from: self.current,
            number,
            first_slot: template.first_slot(),
            ops: template.ops() as u16,
            instructions: template.instructions(),
        };
        // what is only right for this once, or after something that is not known, must not be found again
        if what != 0 && more == 0 && self.current != 0 {
            self.transitions[place(what, self.current)] = known;
        }
        let more = more.min(u64::from(u32::MAX)) as u32;
        self.code(&known, more, registry, addresses, out);
    }

    /// Makes room, and says how the thread was left and how many instructions come before the next op.
    fn before(
        &mut self,
        pending: u64,
        registry: &Registry,
        out: &mut impl Runs,
    ) -> (After, u32, u64) {
        if out.is_full() {
            self.leave(registry);
            self.next_block();
            out.next_block();
        }
        let after = if self.current != 0 {
            registry.after(self.current)
        } else {
            self.after
        };
        let pending = pending + std::mem::take(&mut self.carried);
        match pending {
            0..MOST_LEAD => (after, pending as u32, 0),
            _ => (after, 0, pending),
        }
    }

    #[cold]
    fn qemu_run(
        &mut self,
        head: u64,
        left: &[u64],
        at: &mut usize,
        sites: &[Site],
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let first = head as u32 as usize;
        let Some(site) = sites.get(first) else { return };
        let (after, lead, more) = self.before(head >> 32 & 0xffff, registry, out);
        let lead = lead + after.until(site.block, (first as u32).saturating_sub(site.block));
        let key = Key {
            what: RUN | first as u64,
            lead,
            loaded: after.loaded,
            space: self.space,
        };
        let number = match registry.known(&key) {
            Some(number) => number,
            None => {
                let found = accesses(sites, first, usize::MAX);
                let leaders = leaders(&found);
                let (ops, after) = run_ops(sites, &found, after, lead, self.space);
                registry.add(key, key.what, leaders, &ops, after, self.at(site.pc))
            }
        };
        let wanted = registry.get(number).addresses();
        let there = left
            .iter()
            .take(wanted)
            .take_while(|&&word| word >> 63 == 0)
            .count();
        *at += there;
        if there == wanted {
            // a head that says another number is damaged
            let head = match wanted as u64 == head >> RUN_COUNT_SHIFT & RUN_COUNT {
                true => head,
                false => 0,
            };
            return self.put_number(head, number, more, registry, &left[..there], out);
        }
        // broken off by a fault: as far as it came
        let found = accesses(sites, first, there);
        let key = Key {
            what: RUN | (there as u64 + 1) << 48 | first as u64,
            ..key
        };
        let number = registry.known(&key).unwrap_or_else(|| {
            let (ops, after) = run_ops(sites, &found, after, lead, self.space);
            registry.add(key, key.what, there, &ops, after, self.at(site.pc))
        });
        self.put_number(0, number, more, registry, &left[..there], out);
    }

    /// An access about which the site says nothing, with the pieces of a vector and the store of an instruction that has
    /// loaded from the same place put together.
    #[cold]
    fn qemu_single(
        &mut self,
        head: u64,
        words: &[u64],
        at: &mut usize,
        sites: &[Site],
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let number = head as u32;
        let (Some(site), Some(&addr)) = (sites.get(number as usize), words.get(*at)) else {
            return;
        };
        *at += 1;
        let parts = |head: u64| {
            (
                1u64 << (head >> 36 & 7),
                head >> 48 & 1 != 0,
                head >> 49 & 1 != 0,
            )
        };
        let (mut size, reads, mut writes) = parts(head);
        let mut companion = None;
        while let Some(&[next, next_addr]) = words.get(*at..*at + 2) {
            if next & HEAD != SINGLE || next as u32 != number {
                break;
            }
            let (next_size, next_reads, next_writes) = parts(next);
            if next_addr == addr + size
                && size + next_size <= u64::from(site.vector)
                && (next_reads, next_writes) == (reads, writes)
            {
                size += next_size;
            } else if reads && !writes && next_writes && !next_reads {
                *at += 2;
                match (next_addr, next_size) == (addr, size) {
                    true => writes = true,
                    false => companion = Some((next_addr, next_size)),
                }
                break;
            } else {
                break;
            }
            *at += 2;
        }
        let kind = match (reads, writes) {
            (true, true) => Kind::Update,
            (_, true) if site.non_temporal != 0 => Kind::NtWrite,
            (_, true) => Kind::Write,
            _ => Kind::Read,
        };
        self.single(number, site, kind, size, addr, 0, registry, out);
        if let Some((addr, size)) = companion {
            self.single(
                number,
                site,
                Kind::Write,
                size,
                addr,
                COMPANION,
                registry,
                out,
            );
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one access")]
    fn single(
        &mut self,
        number: u32,
        site: &Site,
        kind: Kind,
        size: u64,
        addr: u64,
        flag: u64,
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let what = SINGLE | flag | u64::from(number) | (kind as u64) << 32 | size << 36;
        let mut at = 0;
        if self.carried == 0 && self.follow(what, 1, &[addr], &mut at, registry, out) {
            return;
        }
        let (after, lead, more) = self.before(0, registry, out);
        let lead = match flag {
            COMPANION => lead,
            _ => lead + after.until(site.block, number.saturating_sub(site.block)),
        };
        let key = Key {
            what,
            lead,
            loaded: after.loaded,
            space: 0,
        };
        let template = registry.known(&key).unwrap_or_else(|| {
            let (op, after) = single_op(site, number, kind, size as u16, after, lead);
            let what = SINGLE | flag | u64::from(number);
            registry.add(key, what, 1, &[op], after, self.at(site.pc))
        });
        self.put_number(what, template, more, registry, &[addr], out);
    }

    fn compiled(&mut self, words: &[u64], registry: &mut Registry, out: &mut impl Runs) {
        let mut at = 0;
        loop {
            at = self.quick(words, at, front_of_compiled, registry, out);
            let left = words.get(at..).unwrap_or_default();
            match (front_of_compiled(left), left.first()) {
                (Some(run), _) => {
                    self.compiled_access(&run, registry, out);
                    at = words.len() - run.left.len();
                }
                (None, Some(&head)) if head & HEAD == EVENT => {
                    at += 1;
                    self.event(head, words, &mut at, registry, out);
                }
                // nothing, or half an access
                _ => return,
            }
        }
    }

    fn compiled_access(&mut self, run: &Front, registry: &mut Registry, out: &mut impl Runs) {
        let what = run.what;
        let mut at = 0;
        if self.follow(what, 1, run.addresses, &mut at, registry, out) {
            return;
        }
        let (after, lead, more) = self.before(0, registry, out);
        let caller = (what >> CALLER_SHIFT) as u32;
        let mut lead = lead + estimate(after.caller, caller);
        let mut then = After {
            caller,
            ..After::default()
        };
        let mut kind = match what & 3 {
            0 => Kind::Read,
            1 => Kind::Write,
            _ => Kind::Update,
        };
        if what & MERGED != 0 {
            kind = Kind::Update;
            then.caller =
                caller.wrapping_add((what >> DISTANCE_SHIFT) as u32 % MOST_DISTANCE as u32);
            lead += estimate(caller, then.caller);
        }
        let key = Key {
            what,
            lead,
            loaded: [0; 2],
            space: 0,
        };
        let number = registry.known(&key).unwrap_or_else(|| {
            let op = Op::new(kind, 0, (what >> 2) as u16, lead);
            let place = self.at(u64::from(caller));
            registry.add(key, what, 1, &[TemplateOp { op, from: 0 }], then, place)
        });
        self.put_number(what, number, more, registry, run.addresses, out);
    }

    #[cold]
    fn event(
        &mut self,
        head: u64,
        words: &[u64],
        at: &mut usize,
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let length = (head >> 8 & 0xff) as usize;
        let Some(rest) = words.get(*at..*at + length) else {
            *at = words.len();
            return;
        };
        *at += length;
        // every event has the words that it needs, or is damaged
        let word = |at: usize| rest.get(at).copied().unwrap_or(0);
        let (addr, bytes) = (word(0), word(1));
        if out.is_full() {
            self.leave(registry);
            self.next_block();
            out.next_block();
        }
        let place = addr ^ self.space;
        match head & 0xff {
            EVENT_ALLOC => {
                let callers = std::array::from_fn(|level| word(2 + level));
                out.event(RawEvent::Alloc {
                    addr: place,
                    bytes,
                    callers,
                });
            }
            EVENT_STACK => out.event(RawEvent::Stack {
                number: addr,
                callers: rest.get(1..).unwrap_or_default().into(),
            }),
            EVENT_ALLOC_AT => out.event(RawEvent::AllocAt {
                addr: place,
                bytes,
                stack: word(2),
            }),
            EVENT_MAPPED => out.event(RawEvent::Mapped {
                addr: place,
                bytes,
                stack: word(2),
            }),
            EVENT_FREE => out.event(RawEvent::Free { addr: place }),
            EVENT_MAP => out.event(RawEvent::Map { addr: place, bytes }),
            EVENT_UNMAP => {
                self.unmap(addr, bytes, registry, out);
                out.event(RawEvent::Unmap { addr: place, bytes });
            }
            EVENT_DISCARD => {
                self.unmap(addr, bytes, registry, out);
                out.event(RawEvent::Discard { addr: place, bytes });
            }
            EVENT_RANGE => {
                let kind = if word(2) == 0 {
                    Kind::Read
                } else {
                    Kind::Write
                };
                self.range(addr, bytes, kind, registry, out);
            }
            EVENT_WORK => {
                self.leave(registry);
                self.carried += addr;
            }
            EVENT_START => {
                // a block has one thread
                let process = bytes as u32;
                self.next_block();
                out.next_block();
                (self.current, self.after, self.carried) = (0, After::default(), 0);
                self.process = process;
                if self.space != space_of(process) {
                    self.space = space_of(process);
                    self.forget();
                }
                out.event(RawEvent::Start {
                    tick: addr,
                    process,
                });
            }
            EVENT_EXEC => out.event(RawEvent::Exec),
            EVENT_MACHINE | EVENT_HEAP_RANGE | EVENT_PAUSE | EVENT_RESUME => {
                let known = java(head & 0xff, place, [addr, bytes, word(2)]);
                known
                    .into_iter()
                    .for_each(|event| out.event(RawEvent::Known(event)));
            }
            EVENT_WAIT => out.event(RawEvent::Wait { tick: addr }),
            EVENT_TICK => out.event(RawEvent::Tick { tick: addr }),
            EVENT_WINDOW => {
                // what ran before was something else, and its instructions are of the window before
                // A time to sleep is no address: a process does not make it another.
                let none = self.space;
                self.plain(WORK_KEY, Op::new(Kind::Sleep, 0, 0, 0), none, registry, out);
                (self.current, self.after) = (0, After::default());
                out.event(RawEvent::Window {
                    number: addr as u32,
                    tick: bytes,
                });
            }
            EVENT_TOUCHED => {
                self.touches += rest.len() as u64;
                for line in rest {
                    let op = Op::new(Kind::Touch, 0, (line & 1) as u16, 0);
                    self.plain(TOUCH_KEY, op, line & !63, registry, out);
                }
            }
            EVENT_EXIT => out.event(RawEvent::Exit { tick: addr }),
            _ => {}
        }
    }

    /// One op that no code stands behind. How the thread was left stays as it is.
    fn plain(&mut self, key: u64, op: Op, addr: u64, registry: &mut Registry, out: &mut impl Runs) {
        self.leave(registry);
        let (after, more, much) = self.before(0, registry, out);
        let key = Key {
            what: key | u64::from(op.size) << 8 | op.kind as u64,
            lead: op.instructions,
            loaded: [0; 2],
            space: 0,
        };
        let number = registry.known(&key).unwrap_or_else(|| {
            registry.add(
                key,
                key.what,
                1,
                &[TemplateOp { op, from: 0 }],
                After::default(),
                Place::default(),
            )
        });
        self.put_number(0, number, much + u64::from(more), registry, &[addr], out);
        (self.current, self.after) = (0, after);
    }

    /// Pages that go back to the operating system.
    fn unmap(&mut self, addr: u64, bytes: u64, registry: &mut Registry, out: &mut impl Runs) {
        let mut at = addr;
        let mut pages = bytes / PAGE_BYTES;
        // more than the address space of a process is a damaged record
        while pages > 0 && pages <= 1 << 35 {
            let now = pages.min(UNMAP_PAGES);
            self.plain(
                UNMAP_KEY,
                Op::new(Kind::Unmap, 0, now as u16, 0),
                at,
                registry,
                out,
            );
            at += now * PAGE_BYTES;
            pages -= now;
        }
    }

    /// As many whole vectors as one template has.
    fn group(&mut self, addr: u64, kind: Kind, registry: &mut Registry, out: &mut impl Runs) {
        self.leave(registry);
        let (after, more, much) = self.before(0, registry, out);
        let key = Key {
            what: GROUP_KEY | kind as u64,
            lead: 1,
            loaded: [0; 2],
            space: 0,
        };
        let number = registry.known(&key).unwrap_or_else(|| {
            let op = |at| TemplateOp {
                op: Op::new(kind, at * RANGE_BYTES, RANGE_BYTES as u16, 1),
                from: 0,
            };
            let ops: Vec<TemplateOp> = (0..GROUP).map(op).collect();
            let (after, place) = (After::default(), Place::default());
            registry.add(key, key.what, 1, &ops, after, place)
        });
        self.put_number(0, number, much + u64::from(more), registry, &[addr], out);
        (self.current, self.after) = (0, after);
    }

    /// A library function went over a range.
    fn range(
        &mut self,
        addr: u64,
        bytes: u64,
        kind: Kind,
        registry: &mut Registry,
        out: &mut impl Runs,
    ) {
        let end = addr.saturating_add(bytes.min(1 << 40));
        let mut at = addr;
        while at < end {
            if at.is_multiple_of(RANGE_BYTES) && end - at >= GROUP * RANGE_BYTES {
                self.group(at, kind, registry, out);
                at += GROUP * RANGE_BYTES;
                continue;
            }
            // never across a line of 64 bytes
            let size = (RANGE_BYTES - at % RANGE_BYTES).min(end - at);
            self.plain(
                RANGE_KEY,
                Op::new(kind, 0, size as u16, 1),
                at,
                registry,
                out,
            );
            at += size;
        }
    }
}

/// An event of a Java virtual machine; none if its codes are not known.
fn java(event: u64, place: u64, words: [u64; 3]) -> Option<Event> {
    let number = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
    let code = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
    Some(match event {
        EVENT_MACHINE => Event::Machine {
            collector: *Collector::ALL.get(code(words[0]))?,
            version: number(words[1]),
        },
        EVENT_HEAP_RANGE => Event::Range {
            what: *Use::ALL.get(code(words[2]))?,
            addr: place,
            bytes: words[1],
        },
        EVENT_PAUSE => Event::Pause,
        _ => Event::Resume {
            minor: number(words[0]),
            full: number(words[1]),
        },
    })
}

/// Addresses that a run leaves open.
fn leaders(found: &[(usize, usize, super::ring::SiteAccess)]) -> usize {
    use super::ring::{FIRST, NEXT};
    found
        .iter()
        .filter(|(_, _, access)| matches!(access.source, FIRST | NEXT))
        .count()
}

/// Instructions of the program between two instrumented accesses, from the distance of the calls in the code.
fn estimate(from: u32, to: u32) -> u32 {
    let distance = to.wrapping_sub(from);
    if distance == 0 || distance > STRAIGHT_BYTES {
        JUMP_INSTRUCTIONS
    } else {
        1 + distance.saturating_sub(CALL_BYTES) / INSTRUCTION_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::super::coder::{Coder, Expander};
    use super::super::ring::{DERIVED, FIRST, NEXT, NO_REGISTER, NONE, SiteAccess, UNKNOWN};
    use super::*;
    use crate::{FileHeader, TraceReader, TraceWriter};
    use proptest::prelude::*;
    use std::path::Path;

    const READ: u64 = 1 << 48;
    const WRITE: u64 = 2 << 48;

    fn access(source: u8, leader: u8, offset: i32, kind: u8) -> SiteAccess {
        SiteAccess {
            offset,
            source,
            leader,
            size: 8,
            kind,
        }
    }

    /// Block 0 has 5 instructions: 1 loads register 0 through register 0, 3 stores a vector; nothing is known of them.
    /// Block 5 has 4: 0 leads, 1 is 16 behind it, 2 leads.
    fn sites() -> Vec<Site> {
        let site = |number: u32| Site {
            pc: 0x1000 + u64::from(number),
            block: if number < 5 { 0 } else { 5 },
            count: if number < 5 { 5 } else { 4 },
            vector: if number == 3 { 16 } else { 0 },
            base: if number == 1 { 0 } else { NO_REGISTER },
            index: NO_REGISTER,
            loads: if number == 1 { 0 } else { NO_REGISTER },
            non_temporal: 0,
            accesses: [
                match number {
                    1 | 3 => access(UNKNOWN, 0, 0, 0),
                    5 => access(FIRST, 0, 0, 0),
                    6 => access(DERIVED, 0, 16, 1),
                    7 => access(NEXT, 1, 0, 2),
                    _ => access(NONE, 0, 0, 0),
                },
                SiteAccess::default(),
            ],
        };
        (0..9).map(site).collect()
    }

    /// The head of a run of block 5, which has two leaders.
    const RUN_5: u64 = RUN | 5 | 2 << RUN_COUNT_SHIFT;

    fn single(site: u64, rw: u64, shift: u64, addr: u64) -> [u64; 2] {
        [SINGLE | site | shift << 36 | rw, addr]
    }

    fn expand(chunks: &[&[u64]], compiled: bool) -> Vec<Op> {
        let (mut walker, mut registry, mut out) =
            (Walker::default(), Registry::default(), Expander::default());
        for words in chunks {
            walker.walk(words, &sites(), compiled, &mut registry, &mut out);
        }
        out.ops
    }

    /// The same through a trace; its bytes.
    fn code(chunks: &[&[u64]], compiled: bool) -> Vec<u8> {
        let (mut walker, mut registry, mut coder) =
            (Walker::default(), Registry::default(), Coder::default());
        let mut writer =
            TraceWriter::new(Vec::new(), Path::new("memory"), &FileHeader::default()).unwrap();
        for words in chunks {
            walker.walk(words, &sites(), compiled, &mut registry, &mut coder);
        }
        coder.close();
        registry.templates.encode(1, writer.templates());
        for piece in std::mem::take(&mut coder.done) {
            let mut content = writer.spare();
            content.runs = piece.columns;
            writer
                .push_runs(0, piece.ops, piece.instructions, content)
                .unwrap();
        }
        writer.finish(Default::default()).unwrap().0
    }

    fn read(bytes: &[u8]) -> Vec<Op> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        std::fs::write(&path, bytes).unwrap();
        let reader = TraceReader::open(&path).unwrap();
        reader
            .thread(0)
            .flat_map(|block| block.unwrap().ops)
            .collect()
    }

    #[test]
    fn a_run_has_the_accesses_that_follow_from_its_addresses() {
        let run = [RUN_5, 0x100, 0x900];
        let ops = expand(&[&[run, run].concat()], false);
        let seen: Vec<_> = ops
            .iter()
            .map(|op| (op.kind, op.addr, op.instructions))
            .collect();
        let first = [
            (Kind::Read, 0x100, 1),
            (Kind::Write, 0x110, 1),
            (Kind::Update, 0x900, 1),
        ];
        // the instruction after the last access belongs to the next run
        assert_eq!((&seen[..3], seen[3]), (&first[..], (Kind::Read, 0x100, 2)));
    }

    #[test]
    fn a_run_that_a_fault_broke_off_ends_there_and_the_next_is_whole() {
        let ops = expand(&[&[RUN_5, 0x100, RUN_5, 0x200, 0x900]], false);
        let seen: Vec<_> = ops.iter().map(|op| op.addr).collect();
        assert_eq!(seen, [0x100, 0x110, 0x200, 0x210, 0x900]);
    }

    /// After so many whole ones that the quick way takes them, in the first process and in another.
    #[test]
    fn a_run_that_a_fault_broke_off_is_seen_among_many_that_are_whole() {
        for process in [0, 3] {
            let start = [EVENT | EVENT_START | 2 << 8, 0, process];
            let whole = |at: u64| [RUN_5, 0x1000 + at * at, 0x9000 + 8 * at];
            let mut words = start.to_vec();
            words.extend((0..50).flat_map(whole));
            words.extend([RUN_5, 0x77]);
            words.extend((50..100).flat_map(whole));
            let places: Vec<u64> = expand(&[&words], false).iter().map(|op| op.addr).collect();
            let space = space_of(process as u32);
            let wanted = (0..100).flat_map(|at| {
                let [_, first, second] = whole(at);
                let broken = (at == 50).then_some([0x77, 0x87]);
                let all = [first, first + 16, second];
                broken.into_iter().flatten().chain(all)
            });
            // an address that follows from another counts from that, as it is in the process
            let wanted: Vec<u64> = wanted.map(|addr| addr ^ space).collect();
            assert_eq!(places, wanted);
            assert_eq!(read(&code(&[&words], false)), expand(&[&words], false));
        }
    }

    #[test]
    fn instructions_add_up_to_those_of_the_blocks() {
        let run = [
            single(1, READ, 3, 0x100),
            single(3, READ, 3, 0x200),
            single(3, READ, 3, 0x208),
        ]
        .concat();
        let ops = expand(&[&[run.clone(), run.clone(), run].concat()], false);
        assert_eq!(
            ops.iter().map(|op| op.instructions).collect::<Vec<_>>(),
            [2, 2, 3, 2, 3, 2]
        );
    }

    #[test]
    fn pieces_and_loads_with_stores_are_put_together_where_they_are_one() {
        let vectors: Vec<u64> = (0..4)
            .flat_map(|piece| single(3, WRITE, 3, 0x200 + 8 * piece))
            .collect();
        let sizes: Vec<_> = expand(&[&vectors], false)
            .iter()
            .map(|op| (op.addr, op.size))
            .collect();
        assert_eq!(sizes, [(0x200, 16), (0x210, 16)]);
        let update = [single(1, READ, 2, 0x100), single(1, WRITE, 2, 0x100)].concat();
        assert_eq!(
            expand(&[&update], false),
            [Op::new(Kind::Update, 0x100, 4, 2)]
        );
        let apart = [single(1, READ, 3, 0x100), single(1, WRITE, 3, 0x900)].concat();
        assert_eq!(
            expand(&[&apart], false),
            [Op::read(0x100, 8, 2), Op::write(0x900, 8, 0)]
        );
    }

    #[test]
    fn a_load_through_a_loaded_pointer_waits_for_it() {
        let ops = expand(
            &[&[single(1, READ, 3, 0x100), single(1, READ, 3, 0x500)].concat()],
            false,
        );
        assert_eq!(
            ops.iter().map(|op| op.dependent).collect::<Vec<_>>(),
            [0, 1]
        );
    }

    #[test]
    fn compiled_code_counts_instructions_by_distance_and_merges_updates() {
        let at = |caller: u64, kind: u64, addr: u64| [kind | 8 << 2 | caller << 18, addr];
        let words = [
            at(1000, 0, 0x100),
            at(1017, 1, 0x100),
            at(1034, 0, 0x200),
            at(9000, 1, 0x300),
        ]
        .concat();
        let seen: Vec<_> = expand(&[&words], true)
            .iter()
            .map(|op| (op.kind, op.addr, op.instructions))
            .collect();
        assert_eq!(
            seen,
            [
                (Kind::Update, 0x100, 6),
                (Kind::Read, 0x200, 2),
                (Kind::Write, 0x300, 4)
            ]
        );
    }

    #[test]
    fn unmapped_ranges_of_any_length_become_ops() {
        let bytes = 70_000 * PAGE_BYTES;
        let ops = expand(&[&[EVENT | EVENT_UNMAP | 2 << 8, 0x10_0000, bytes]], false);
        assert_eq!(ops.iter().map(|op| u64::from(op.size)).sum::<u64>(), 70_000);
        assert_eq!(ops[1].addr, 0x10_0000 + 65_535 * PAGE_BYTES);
    }

    /// Words as a probe could write them, and some that it could not.
    fn any_words() -> impl Strategy<Value = Vec<u64>> {
        let addr = || prop_oneof![0x1000u64..0x1100, any::<u64>().prop_map(|addr| addr >> 17)];
        let piece = prop_oneof![
            4 => (addr(), addr(), 0u64..3).prop_map(|(a, b, pending)| vec![RUN_5 | (pending * 60) << 32, a, b]),
            1 => addr().prop_map(|a| vec![RUN_5, a]),
            2 => (prop_oneof![Just(1u64), Just(3)], addr(), 1u64..4).prop_map(|(site, a, rw)| single(site, rw << 48, 3, a).to_vec()),
            1 => (0u64..300).prop_map(|work| vec![EVENT | EVENT_WORK | 1 << 8, work]),
            1 => (addr(), 0u64..2000).prop_map(|(a, bytes)| vec![EVENT | EVENT_RANGE | 3 << 8, a, bytes, 1]),
            1 => any::<u64>().prop_map(|word| vec![word & !(0xff << 8)]),
        ];
        prop::collection::vec(piece, 0..300).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_trace_has_the_ops_that_a_live_program_has(chunks in prop::collection::vec(any_words(), 1..4)) {
            let chunks: Vec<&[u64]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(read(&code(&chunks, false)), expand(&chunks, false));
        }

        /// One access after the other, with nothing remembered but the last one's call. A loop comes often enough for the quick way.
        #[test]
        fn compiled_accesses_are_what_an_obvious_reader_says(
            body in prop::collection::vec((0u64..3, 0u64..5, 0u64..3), 0..20),
            iterations in 0u64..40,
            stride in 0u64..3,
        ) {
            let accesses: Vec<(u64, u64, u64)> = (0..iterations)
                .flat_map(|i| body.iter().map(move |&(kind, call, at)| (kind, call, at + i * stride)))
                .collect();
            let words: Vec<u64> = accesses.iter().flat_map(|&(kind, call, at)| [kind | 8 << 2 | (call * 20) << 18, at * 8]).collect();
            let (mut wanted, mut last, mut left) = (Vec::new(), 0, &accesses[..]);
            while let [(kind, call, at), rest @ ..] = left {
                let here = *call as u32 * 20;
                let mut access = (*kind, at * 8, estimate(last, here));
                (last, left) = (here, rest);
                if let (0, Some((1, later, place))) = (kind, rest.first())
                    && place == at
                    && later >= call
                {
                    last = *later as u32 * 20;
                    access = (2, at * 8, access.2 + estimate(here, last));
                    left = &rest[1..];
                }
                wanted.push(access);
            }
            let ops = expand(&[&words], true);
            let kinds = [Kind::Read, Kind::Write, Kind::Update];
            let seen: Vec<_> = ops.iter().map(|op| (kinds.iter().position(|kind| *kind == op.kind).unwrap() as u64, op.addr, op.instructions)).collect();
            prop_assert_eq!(seen, wanted);
        }

        #[test]
        fn compiled_words_go_the_same_way(accesses in prop::collection::vec((0u64..4, 0u64..8, 0u64..64), 0..400)) {
            let words: Vec<u64> = accesses.iter().flat_map(|&(kind, caller, at)| [kind.min(2) | 8 << 2 | (caller * 20) << 18, at * 8]).collect();
            prop_assert_eq!(read(&code(&[&words], true)), expand(&[&words], true));
        }
    }

    /// What a fuzzer would do, as an ordinary test: thousands of traces with changed bytes, changed behind the checksums
    /// too, and cut ones are read or refused.
    #[test]
    fn thousands_of_damaged_traces_are_read_or_refused() {
        let run = [RUN_5, 0x100, 0x900];
        let words: Vec<u64> = (0..200u64)
            .flat_map(|i| {
                [run[0], run[1] + i * (i % 3), run[2] ^ i << (i % 40)]
                    .into_iter()
                    .chain(single(1, READ, 3, i))
            })
            .collect();
        let whole = code(&[&words], false);
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let header = crate::format::BLOCK_HEADER_BYTES;
        let content = |at: usize| {
            let block =
                crate::format::BlockHeader::from_bytes(whole[at..at + header].try_into().ok()?)
                    .ok()?;
            let stored = whole.get(at + header..at + header + block.stored_bytes as usize)?;
            let raw = lz4_flex::block::decompress(stored, block.raw_bytes as usize).ok()?;
            Some((at, block, raw))
        };
        let blocks: Vec<_> = (0..whole.len() - header).filter_map(content).collect();
        assert!(blocks.len() >= 3, "templates, runs, end");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        for round in 0..6000 {
            let mut bytes = whole.clone();
            if round % 4 == 0 {
                bytes.truncate(random(whole.len()));
            } else if round % 4 == 1 {
                for _ in 0..1 + random(4) {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
            } else {
                // a block's own content, with everything else right
                let (at, block, mut raw) = blocks[random(blocks.len())].clone();
                let end = at + header + block.stored_bytes as usize;
                for _ in 0..1 + random(3) {
                    let at = random(raw.len());
                    raw[at] = random(256) as u8;
                }
                let stored = lz4_flex::block::compress(&raw);
                let block = crate::format::BlockHeader {
                    stored_bytes: stored.len() as u32,
                    ..block
                };
                let mut changed = bytes[..at].to_vec();
                changed.extend_from_slice(&block.to_bytes(&stored));
                changed.extend_from_slice(&stored);
                changed.extend_from_slice(&bytes[end..]);
                bytes = changed;
            }
            if let Ok(stream) = crate::TraceStream::new(&bytes[..], Path::new("pipe")) {
                stream.for_each(drop);
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(reader) = TraceReader::open(&path) {
                (0..reader.threads()).for_each(|thread| reader.thread(thread).for_each(drop));
            }
        }
    }
}
