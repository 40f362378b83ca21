//! Records of a probe other than accesses of the program's own code: events of the thread, pages that go, ranges that a
//! library accesses.

use super::super::ring::{
    EVENT_ALLOC, EVENT_ALLOC_AT, EVENT_COLORED, EVENT_DISCARD, EVENT_EXEC, EVENT_EXIT, EVENT_FREE,
    EVENT_HEAP_RANGE, EVENT_MACHINE, EVENT_MAP, EVENT_MAPPED, EVENT_PAUSE, EVENT_RANGE,
    EVENT_RESUME, EVENT_SHARED, EVENT_STACK, EVENT_START, EVENT_TICK, EVENT_TOUCHED, EVENT_UNMAP,
    EVENT_WAIT, EVENT_WINDOW, EVENT_WORK, LINE,
};
use super::super::templates::{After, Key, Place, Registry};
use super::{RawEvent, Runs, Walker};
use crate::format::TemplateOp;
use crate::spaces::space_of;
use crate::{Collector, Event, Use};
use varve_access::{Kind, Op};

/// Bytes that an access of a library's range stands for: a vector's.
const RANGE_BYTES: u64 = 32;
/// Largest number of pages that one `Unmap` op holds, and the page it counts in.
const UNMAP_PAGES: u64 = u16::MAX as u64;
pub(super) const PAGE_BYTES: u64 = 4096;
// Words that a key begins with, so that none is equal to one of another sort.
const RANGE_KEY: u64 = 1 << 62;
const UNMAP_KEY: u64 = 2 << 62;
const TOUCH_KEY: u64 = 3 << 62;
const WORK_KEY: u64 = UNMAP_KEY | 1 << 61;
const GROUP_KEY: u64 = RANGE_KEY | 1 << 61;
/// Vectors of a long range that share a template.
const GROUP: u64 = 16;

impl Walker {
    #[cold]
    pub(super) fn event(
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
            EVENT_STACK => {
                let (callers, lines) = stack(rest.get(2..).unwrap_or_default());
                out.event(RawEvent::Stack {
                    number: addr,
                    text: word(1) as usize,
                    callers,
                    lines,
                });
            }
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
                    parent: (word(2) as u32).checked_sub(1),
                });
            }
            EVENT_EXEC => out.event(RawEvent::Exec),
            EVENT_SHARED => out.event(RawEvent::Known(Event::Shared {
                addr: place,
                bytes,
                object: word(2),
                offset: word(3),
                private: word(4) != 0,
            })),
            EVENT_COLORED => out.event(RawEvent::Known(Event::Colored {
                addr: place,
                bytes,
                hot: word(2) == 0,
            })),
            EVENT_MACHINE | EVENT_HEAP_RANGE | EVENT_PAUSE | EVENT_RESUME => {
                let known = java(head & 0xff, place, [addr, bytes, word(2)]);
                known
                    .into_iter()
                    .for_each(|event| out.event(RawEvent::Known(event)));
            }
            EVENT_WAIT => out.event(RawEvent::Wait { tick: addr }),
            EVENT_TICK => out.event(RawEvent::Tick { tick: addr }),
            EVENT_WINDOW => {
                // other code ran before, and its instructions are of the window before
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

    /// Whole vectors, as many as one template has.
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

/// Lines of a script: the number of the code, and the line.
pub(super) type Lines = Box<[(u64, u32)]>;

/// The return addresses of a stack, and the lines of a script behind them.
pub(super) fn stack(words: &[u64]) -> (Box<[u64]>, Lines) {
    let is_line = |word: &u64| word & LINE != 0;
    let native = words.iter().position(is_line).unwrap_or(words.len());
    let (callers, lines) = words.split_at(native);
    let lines = lines.chunks_exact(2).map(|two| (two[1], two[0] as u32));
    (callers.into(), lines.collect())
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
