//! From the records of a probe to ops and events of one thread.

use super::ring::{
    EVENT, EVENT_ALLOC, EVENT_DISCARD, EVENT_EXEC, EVENT_EXIT, EVENT_FREE, EVENT_MAP, EVENT_RANGE,
    EVENT_START, EVENT_TICK, EVENT_UNMAP, EVENT_WAIT, EVENT_WORK, NO_REGISTER, Record, Site,
};
use varve_machine::{Kind, Op};

/// An event as the probe says it: call sites are still addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawEvent {
    Alloc {
        addr: u64,
        bytes: u64,
        caller: u64,
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
    Start {
        tick: u64,
    },
    /// The process is another program from here on.
    Exec,
    Wait {
        tick: u64,
    },
    Tick {
        tick: u64,
    },
    Exit {
        tick: u64,
    },
}

/// Decoded ops, and events with the number of ops that come before them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub ops: Vec<Op>,
    pub events: Vec<(usize, RawEvent)>,
}

/// Instructions that an access of a library range stands for: a vector of 32 bytes per load or store.
const RANGE_BYTES: u64 = 32;
// The estimate of instructions in compiled code. With these numbers, programs that sort, walk a tree and stream over arrays
// (gcc 12 and clang 14, -O1 and -O2) come to 0.8 to 1.3 times what QEMU counts in them without the probe.

/// Two calls in the code that are less apart are taken for a straight piece of code.
const STRAIGHT_BYTES: u64 = 128;
/// Bytes that the instrumentation itself takes per access: the call, its argument, and a register moved out of its way.
const CALL_BYTES: u64 = 12;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: u64 = 5;
/// Instructions between accesses that a jump, a call or a return separates; also for the body of a loop of one access.
const JUMP_INSTRUCTIONS: u64 = 4;
/// Largest number of pages that one `Unmap` op holds, and the page it counts in.
const UNMAP_PAGES: u64 = u16::MAX as u64;
const PAGE_BYTES: u64 = 4096;

/// What decoding remembers between the chunks of a thread.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    /// The site of the last access, its place in its block, and the block's length.
    site: u64,
    block: u32,
    index: u64,
    count: u64,
    /// The last access was a read (and a write of the same instruction may follow).
    was_read: bool,
    /// Bytes of a vector access that are still to come, and where.
    vector_left: u64,
    vector_next: u64,
    /// Instructions not yet given to an op.
    carried: u64,
    /// Low half of the return address of the last instrumented access.
    caller: u32,
    /// Registers that the last two loads wrote.
    loaded: [u8; 2],
    /// The first record of an event of two, when a chunk ended between them (it cannot).
    first: Option<Record>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            site: u64::MAX,
            block: u32::MAX,
            index: 0,
            count: 1,
            was_read: false,
            vector_left: 0,
            vector_next: 0,
            carried: 0,
            caller: 0,
            loaded: [NO_REGISTER; 2],
            first: None,
        }
    }
}

impl Decoder {
    /// Decodes records of the QEMU plugin.
    pub fn qemu(&mut self, records: &[Record], sites: &[Site], out: &mut Batch) {
        for record in records {
            if record.what & 0xffff_ffff == EVENT || self.first.is_some() {
                self.event(*record, out);
            } else {
                self.qemu_access(*record, sites, out);
            }
        }
    }

    /// Instructions of the program between two instrumented accesses, from the distance of the calls in the code.
    #[inline(always)]
    fn estimate(&mut self, caller: u32) -> u64 {
        let distance = u64::from(caller.wrapping_sub(self.caller));
        self.caller = caller;
        if distance == 0 || distance > STRAIGHT_BYTES {
            JUMP_INSTRUCTIONS
        } else {
            1 + distance.saturating_sub(CALL_BYTES) / INSTRUCTION_BYTES
        }
    }

    /// Decodes records of compiled code.
    pub fn compiled(&mut self, records: &[Record], out: &mut Batch) {
        for record in records {
            if record.what & 0xffff_ffff == EVENT || self.first.is_some() {
                self.event(*record, out);
                continue;
            }
            let kind = match record.what & 0xff {
                0 => Kind::Read,
                1 => Kind::Write,
                _ => Kind::Update,
            };
            let instructions =
                self.estimate((record.what >> 32) as u32) + std::mem::take(&mut self.carried);
            let size = (record.what >> 8) as u16;
            match out.ops.last_mut() {
                // `a[i] += x`: one access to the machine
                Some(last)
                    if kind == Kind::Write
                        && last.kind == Kind::Read
                        && last.addr == record.addr
                        && last.size == size =>
                {
                    last.kind = Kind::Update;
                    last.instructions = last.instructions.saturating_add(clamp(instructions));
                }
                _ => out
                    .ops
                    .push(Op::new(kind, record.addr, size, clamp(instructions))),
            }
        }
    }

    #[inline(always)]
    fn qemu_access(&mut self, record: Record, sites: &[Site], out: &mut Batch) {
        let number = record.what & 0xffff_ffff;
        let Some(site) = sites.get(number as usize) else {
            return;
        };
        let size = 1u64 << (record.what >> 36 & 7);
        let (reads, writes) = (record.what >> 48 & 1 != 0, record.what >> 49 & 1 != 0);
        let pending = record.what >> 50;

        if number == self.site && pending == 0 {
            // the rest of a vector, or the store of an instruction that has loaded
            if self.vector_left >= size && record.addr == self.vector_next {
                self.vector_left -= size;
                self.vector_next += size;
                if let Some(last) = out.ops.last_mut() {
                    last.size += size as u16;
                    return;
                }
            } else if self.was_read && writes {
                self.was_read = reads;
                self.vector_left = 0;
                match out.ops.last_mut() {
                    Some(last) if last.addr == record.addr && u64::from(last.size) == size => {
                        last.kind = Kind::Update
                    }
                    _ => out
                        .ops
                        .push(Op::new(Kind::Write, record.addr, size as u16, 0)),
                }
                return;
            }
        }
        let index = number - u64::from(site.block);
        let instructions = if site.block == self.block && index > self.index {
            index - self.index
        } else {
            // the last block ran to its end, and this one from its beginning
            self.count - 1 - self.index + index + 1
        };
        let instructions = instructions + pending + std::mem::take(&mut self.carried);
        (self.site, self.block, self.index, self.count) = (
            number,
            site.block,
            index,
            u64::from(site.count).max(index + 1),
        );
        self.was_read = reads && !writes;
        self.vector_left = u64::from(site.vector).saturating_sub(size);
        self.vector_next = record.addr + size;

        let mut op = Op::new(Kind::Read, record.addr, size as u16, clamp(instructions));
        op.kind = match (reads, writes) {
            (true, true) => Kind::Update,
            (_, true) if site.non_temporal != 0 => Kind::NtWrite,
            (_, true) => Kind::Write,
            _ => Kind::Read,
        };
        if reads {
            let from_load =
                |register: u8| register != NO_REGISTER && self.loaded.contains(&register);
            op.dependent = u8::from(from_load(site.base) || from_load(site.index));
            self.loaded = [site.loads, self.loaded[0]];
        }
        out.ops.push(op);
    }

    #[cold]
    fn event(&mut self, record: Record, out: &mut Batch) {
        let at = out.ops.len();
        if let Some(first) = self.first.take() {
            let (addr, bytes) = (first.addr, record.addr);
            match first.what >> 32 {
                EVENT_ALLOC => out.events.push((
                    at,
                    RawEvent::Alloc {
                        addr,
                        bytes,
                        caller: record.what,
                    },
                )),
                EVENT_MAP => out.events.push((at, RawEvent::Map { addr, bytes })),
                EVENT_UNMAP => {
                    self.unmap(addr, bytes, out);
                    out.events
                        .push((out.ops.len(), RawEvent::Unmap { addr, bytes }));
                }
                EVENT_DISCARD => self.unmap(addr, bytes, out),
                EVENT_RANGE => self.range(
                    addr,
                    bytes,
                    if record.what == 0 {
                        Kind::Read
                    } else {
                        Kind::Write
                    },
                    out,
                ),
                _ => {}
            }
            return;
        }
        let tick = record.addr;
        match record.what >> 32 {
            EVENT_FREE => out.events.push((at, RawEvent::Free { addr: record.addr })),
            EVENT_WAIT => out.events.push((at, RawEvent::Wait { tick })),
            EVENT_TICK => out.events.push((at, RawEvent::Tick { tick })),
            EVENT_START => {
                *self = Decoder::default();
                out.events.push((at, RawEvent::Start { tick }));
            }
            EVENT_EXEC => out.events.push((at, RawEvent::Exec)),
            EVENT_EXIT => out.events.push((at, RawEvent::Exit { tick })),
            EVENT_WORK => self.carried += record.addr,
            _ => self.first = Some(record),
        }
    }

    /// Pages that go back to the operating system.
    fn unmap(&mut self, addr: u64, bytes: u64, out: &mut Batch) {
        let mut at = addr;
        let mut pages = bytes / PAGE_BYTES;
        // more than the address space of a process is a damaged record
        while pages > 0 && pages <= 1 << 35 {
            let now = pages.min(UNMAP_PAGES);
            out.ops.push(Op::new(Kind::Unmap, at, now as u16, 0));
            at += now * PAGE_BYTES;
            pages -= now;
        }
    }

    /// A library function went over a range.
    fn range(&mut self, addr: u64, bytes: u64, kind: Kind, out: &mut Batch) {
        let end = addr.saturating_add(bytes.min(1 << 40));
        let mut at = addr;
        while at < end {
            // never across a line of 64 bytes
            let size = (RANGE_BYTES - at % RANGE_BYTES).min(end - at);
            out.ops.push(Op::new(
                kind,
                at,
                size as u16,
                clamp(1 + std::mem::take(&mut self.carried)),
            ));
            at += size;
        }
    }
}

fn clamp(instructions: u64) -> u32 {
    instructions.min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u64 = 1 << 16;
    const WRITE: u64 = 2 << 16;

    /// Block 0: 5 instructions, of which 1 and 3 access memory; 3 is a vector instruction of 16 bytes.
    fn sites() -> Vec<Site> {
        (0..5)
            .map(|index| Site {
                pc: 0x1000 + index,
                block: 0,
                count: 5,
                vector: if index == 3 { 16 } else { 0 },
                base: if index == 1 { 0 } else { NO_REGISTER },
                index: NO_REGISTER,
                loads: if index == 1 { 0 } else { NO_REGISTER },
                non_temporal: 0,
                _space: [0; 5],
            })
            .collect()
    }

    fn record(site: u64, rw: u64, shift: u64, addr: u64) -> Record {
        Record {
            addr,
            what: site | (rw | shift << 4) << 32,
        }
    }

    fn decode(records: &[Record]) -> Vec<Op> {
        let mut batch = Batch::default();
        Decoder::default().qemu(records, &sites(), &mut batch);
        batch.ops
    }

    #[test]
    fn instructions_add_up_to_those_of_the_blocks() {
        // three runs of the block: the instructions after the last access belong to the next op
        let run = [
            record(1, READ, 3, 0x100),
            record(3, READ, 3, 0x200),
            record(3, READ, 3, 0x208),
        ];
        let ops = decode(&[run, run, run].concat());
        assert_eq!(
            ops.iter().map(|op| op.instructions).collect::<Vec<_>>(),
            [2, 2, 3, 2, 3, 2]
        );
    }

    #[test]
    fn the_halves_of_a_vector_are_one_access() {
        let ops = decode(&[
            record(3, WRITE, 3, 0x200),
            record(3, WRITE, 3, 0x208),
            record(3, WRITE, 3, 0x210),
            record(3, WRITE, 3, 0x218),
        ]);
        assert_eq!(
            ops.iter()
                .map(|op| (op.addr, op.size, op.kind))
                .collect::<Vec<_>>(),
            [(0x200, 16, Kind::Write), (0x210, 16, Kind::Write)]
        );
    }

    #[test]
    fn load_and_store_of_one_instruction_are_an_update() {
        let ops = decode(&[record(1, READ, 2, 0x100), record(1, WRITE, 2, 0x100)]);
        assert_eq!(
            (ops.len(), ops[0].kind, ops[0].instructions),
            (1, Kind::Update, 2)
        );
    }

    #[test]
    fn a_store_elsewhere_by_the_same_instruction_stays_apart() {
        // push [m], movs: the load and the store are at different places
        let ops = decode(&[record(1, READ, 3, 0x100), record(1, WRITE, 3, 0x900)]);
        assert_eq!(
            ops.iter()
                .map(|op| (op.kind, op.instructions))
                .collect::<Vec<_>>(),
            [(Kind::Read, 2), (Kind::Write, 0)]
        );
    }

    #[test]
    fn a_load_through_a_loaded_pointer_waits_for_it() {
        let ops = decode(&[record(1, READ, 3, 0x100), record(1, READ, 3, 0x500)]);
        assert_eq!(
            ops.iter().map(|op| op.dependent).collect::<Vec<_>>(),
            [0, 1]
        );
    }

    #[test]
    fn unmapped_ranges_of_any_length_become_ops() {
        let event = |addr, event: u64| Record {
            addr,
            what: EVENT | event << 32,
        };
        let mut batch = Batch::default();
        let bytes = 70_000 * PAGE_BYTES;
        Decoder::default().qemu(
            &[
                event(0x10_0000, EVENT_UNMAP),
                Record {
                    addr: bytes,
                    what: 0,
                },
            ],
            &[],
            &mut batch,
        );
        assert_eq!(
            batch.ops.iter().map(|op| u64::from(op.size)).sum::<u64>(),
            70_000
        );
        assert_eq!(batch.ops[1].addr, 0x10_0000 + 65_535 * PAGE_BYTES);
    }
}
