//! From the words of a probe to runs of templates and events of one thread.

mod events;
mod front;
#[cfg(test)]
mod tests;

use super::ring::{CALLERS, EVENT, HEAD, RUN, RUN_COUNT, RUN_COUNT_SHIFT, SINGLE, Site};
use super::templates::{After, Key, Place, Registry, accesses, run_ops, single_op};
use crate::Event;
use crate::format::{
    CONTEXTS, LONG, NUMBER, NUMBER_AND_MORE, Run, SHORT, TemplateOp, next_context,
};
use front::{
    CALLER_SHIFT, DISTANCE_SHIFT, Front, MERGED, MOST_DISTANCE, estimate, front_of_compiled,
    front_of_qemu,
};
use varve_access::{Kind, Op};

/// An event as the probe reports it: call sites are still addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawEvent {
    /// Callers, the innermost first; the first 0 ends them.
    Alloc {
        addr: u64,
        bytes: u64,
        callers: [u64; CALLERS],
    },
    /// A stack that following events of the thread name by its number: return addresses, the innermost first. They are of the
    /// modules that so many bytes of the text about them tell of.
    Stack {
        number: u64,
        text: usize,
        callers: Box<[u64]>,
        /// Lines of a script that such code was called by, the innermost first.
        lines: events::Lines,
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
        /// The process that it was forked from.
        parent: Option<u32>,
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

/// Instructions of code without accesses in a template of its own, at most; a run reports more of them itself.
const MOST_LEAD: u64 = 64;
/// A template in the block.
#[derive(Clone, Copy, Default)]
struct Entry {
    epoch: u32,
    /// The template that last followed it.
    next: u32,
}

/// The template of a run, by the probe's word for it and the template before; with all data that is needed to code it
/// again.
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

/// Entries of the table of transitions: a second-level cache has room for them, and for the other data of a walk.
const TRANSITIONS: usize = 1 << 13;

/// Where a transition is in the table.
#[inline(always)]
fn place(what: u64, from: u32) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (what ^ u64::from(from) << 24).wrapping_mul(MIX);
    (mixed >> 40) as usize % TRANSITIONS
}

/// State of a thread between its chunks.
#[derive(Default)]
pub(super) struct Walker {
    entries: Vec<Entry>,
    transitions: Vec<Transition>,
    /// Templates that followed the same few templates in the block.
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

/// A store of an instruction whose load came just before, in a head of a single access.
const COMPANION: u64 = 1 << 60;

impl Walker {
    /// The state of the thread after the last run.
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

    /// Forgets all transitions: from here on, other code is at the same addresses.
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
                // an address without a head: a fault broke off a run, and this is the record after it
                _ => {}
            }
        }
    }

    /// The fast path, from one place in the words to another, for runs that followed the same few templates before.
    /// Most do.
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
        // the last run is coded, if its template is known
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
            // the last run is coded, as its template is known
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

    /// The slow path: the template is known by its key, or new. `what` is 0 when the same words may mean something else
    /// next time.
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
        // a transition that holds only this once, or after an unknown template, must not be found again
        if what != 0 && more == 0 && self.current != 0 {
            self.transitions[place(what, self.current)] = known;
        }
        let more = more.min(u64::from(u32::MAX)) as u32;
        self.code(&known, more, registry, addresses, out);
    }

    /// Makes room, and returns the state of the thread after the last run and the instructions before the next op.
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
            // a head with another number is damaged
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

    /// An access that its site does not describe, with the pieces of a vector and the store of an instruction that has
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
}

/// Addresses that a run leaves open.
fn leaders(found: &[(usize, usize, super::ring::SiteAccess)]) -> usize {
    use super::ring::{FIRST, NEXT};
    found
        .iter()
        .filter(|(_, _, access)| matches!(access.source, FIRST | NEXT))
        .count()
}
