//! Ops as runs of templates: the recorder's knowledge of code before it runs is written once, and a run of the code
//! only has its template and the addresses that the template leaves open.

use super::difference::{BYTES_BY_MODE, BadOps, REGIONS, region_of, width_class};
use super::event::{BadEvents, get, put, unzigzag, zigzag};
use varve_access::{Kind, Op};

/// Addresses that a template may leave open.
pub const MAX_ADDRESSES: usize = 60;
/// Stands for no open address: the op's address is in the template.
pub const ABSOLUTE: u8 = 63;
/// Ops of a template, at most: two for each instruction of the longest block of code.
pub const MAX_TEMPLATE_OPS: usize = 1024;

/// An op of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateOp {
    /// The op; its address counts from the open address.
    pub op: Op,
    /// Which open address, or [`ABSOLUTE`].
    pub from: u8,
}

/// Where the ops of a template are, and the number of open addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Template {
    first_op: u32,
    ops: u32,
    /// Open addresses are predicted from the last ones in as many slots, from this one on.
    first_slot: u32,
    addresses: u32,
    instructions: u64,
}

impl Template {
    /// Ops.
    pub fn ops(&self) -> usize {
        self.ops as usize
    }

    /// Its first slot.
    pub(crate) fn first_slot(&self) -> u32 {
        self.first_slot
    }

    /// Open addresses.
    pub fn addresses(&self) -> usize {
        self.addresses as usize
    }

    /// Instructions.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }
}

/// The templates of a trace. Number 0 is none.
#[derive(Clone, Debug)]
pub struct Templates {
    list: Vec<Template>,
    ops: Vec<TemplateOp>,
    slots: u32,
    /// Of each template from number 1 on, as far as the trace has it: 1 more than the number of its function, or 0.
    functions: Vec<u32>,
}

/// A thread is in another function from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAt {
    /// Number of the op in the block.
    pub at: u32,
    /// Number of the function among the calls of the trace.
    pub function: u32,
}

impl Default for Templates {
    fn default() -> Templates {
        Templates {
            list: vec![Template::default()],
            ops: Vec::new(),
            slots: 0,
            functions: Vec::new(),
        }
    }
}

impl Templates {
    /// The number of the next template.
    pub fn next(&self) -> u32 {
        self.list.len() as u32
    }

    /// The template with this number, if there is one.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&Template> {
        self.list.get(number as usize)
    }

    /// Its ops.
    #[inline(always)]
    pub fn ops(&self, template: &Template) -> &[TemplateOp] {
        &self.ops[template.first_op as usize..][..template.ops as usize]
    }

    /// Slots in use.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Adds a template. `first_slot` is a slot in use, whose templates predict each other's addresses, or the next.
    /// `None` when the ops name addresses that the template does not have, or something else is too large.
    pub fn add(&mut self, first_slot: u32, addresses: usize, ops: &[TemplateOp]) -> Option<u32> {
        let fits = |op: &TemplateOp| op.from == ABSOLUTE || usize::from(op.from) < addresses;
        if addresses > MAX_ADDRESSES
            || ops.len() > MAX_TEMPLATE_OPS
            || first_slot > self.slots
            || !ops.iter().all(fits)
        {
            return None;
        }
        self.slots = self.slots.max(first_slot.checked_add(addresses as u32)?);
        self.list.push(Template {
            first_op: u32::try_from(self.ops.len()).ok()?,
            ops: ops.len() as u32,
            first_slot,
            addresses: addresses as u32,
            instructions: ops.iter().map(|op| u64::from(op.op.instructions)).sum(),
        });
        self.ops.extend_from_slice(ops);
        Some(self.list.len() as u32 - 1)
    }

    /// The function that a template is of, if it has one.
    #[inline(always)]
    fn function(&self, number: u32) -> Option<u32> {
        let told = self.functions.get((number as usize).checked_sub(1)?)?;
        told.checked_sub(1)
    }

    /// Whether functions are known of any.
    pub fn have_functions(&self) -> bool {
        self.functions.iter().any(|&function| function != 0)
    }

    /// Adds the functions of the next templates, as coded; there are `calls` to choose from.
    pub fn decode_functions(&mut self, mut bytes: &[u8], calls: usize) -> Result<(), BadOps> {
        while !bytes.is_empty() {
            let function = get(&mut bytes).map_err(|_| BadOps)?;
            if function > calls as u64 {
                return Err(BadOps);
            }
            self.functions.push(function as u32);
        }
        Ok(())
    }

    /// Appends the coded templates from number `from` on.
    pub fn encode(&self, from: u32, out: &mut Vec<u8>) {
        for template in &self.list[from as usize..] {
            put(out, u64::from(template.first_slot));
            put(out, u64::from(template.addresses));
            put(out, u64::from(template.ops));
            for TemplateOp { op, from } in self.ops(template) {
                out.push(*from);
                out.push(op.kind as u8 | op.dependent << 4);
                put(out, u64::from(op.size));
                put(out, u64::from(op.instructions));
                put(out, zigzag(op.addr));
            }
        }
    }

    /// Adds coded templates.
    pub fn decode(&mut self, mut bytes: &[u8]) -> Result<(), BadOps> {
        let mut ops = Vec::new();
        let bad = |_: BadEvents| BadOps;
        while !bytes.is_empty() {
            let mut small = |most: u64| {
                get(&mut bytes).map_err(bad).and_then(|value| {
                    if value <= most {
                        Ok(value)
                    } else {
                        Err(BadOps)
                    }
                })
            };
            let (slot, addresses, count) = (
                small(u64::from(u32::MAX))?,
                small(MAX_ADDRESSES as u64)?,
                small(MAX_TEMPLATE_OPS as u64)?,
            );
            ops.clear();
            for _ in 0..count {
                let ([from, what], rest) = bytes.split_first_chunk::<2>().ok_or(BadOps)?;
                bytes = rest;
                let size = u16::try_from(get(&mut bytes).map_err(bad)?).map_err(|_| BadOps)?;
                let instructions =
                    u32::try_from(get(&mut bytes).map_err(bad)?).map_err(|_| BadOps)?;
                let addr = unzigzag(get(&mut bytes).map_err(bad)?);
                let kind = Kind::from_code(what & 15).ok_or(BadOps)?;
                ops.push(TemplateOp {
                    op: Op {
                        addr,
                        instructions,
                        size,
                        kind,
                        dependent: what >> 4 & 1,
                    },
                    from: *from,
                });
            }
            self.add(slot as u32, addresses as usize, &ops)
                .ok_or(BadOps)?;
        }
        Ok(())
    }
}

// How a run names its template: the one that came last after the same few runs, the one that came last after the same
// run, or a number in the column of numbers; then also with more instructions before its first op.
pub(crate) const LONG: u8 = 0;
pub(crate) const SHORT: u8 = 1;
pub(crate) const NUMBER: u8 = 2;
pub(crate) const NUMBER_AND_MORE: u8 = 3;

/// Entries of the table of templates that followed the same few runs; as the writer has it, it fits into a second-level
/// cache.
pub(crate) const CONTEXTS: usize = 1 << 14;

/// The last few runs in 14 bits: the oldest is shifted out after three more.
#[inline(always)]
pub(crate) fn next_context(context: u32, number: u32) -> u32 {
    ((context << 5) ^ (number.wrapping_mul(0x9e37_79b1) >> 18)) & (CONTEXTS as u32 - 1)
}

#[derive(Clone, Copy, Default)]
struct Slot {
    addr: u64,
    stride: u64,
}

/// The columns of a block of runs while it is written. They are as long as they may get from the start, so that bytes can
/// be put in without asking for room; memory that is not touched costs nothing.
#[derive(Default)]
pub(crate) struct Columns {
    control: Vec<u8>,
    numbers: Vec<u8>,
    differences: Vec<u8>,
    controls: usize,
    number_bytes: usize,
    difference_bytes: usize,
}

/// Control bytes of a block, at most. The encoder of a run asks whether there is room, unless it is a run with an op
/// for each address, of which a block has few enough.
const MAX_CONTROLS: usize = 1 << 18;
const _: () = assert!(MAX_CONTROLS / 2 > crate::BLOCK_OPS + 2 * MAX_TEMPLATE_OPS);

impl Columns {
    fn grow(&mut self) {
        if self.control.is_empty() {
            self.control = vec![0; MAX_CONTROLS];
            self.numbers = vec![0; 8 * MAX_CONTROLS + 8];
            self.differences = vec![0; 8 * MAX_CONTROLS];
        }
    }

    /// No run fits any more.
    #[inline(always)]
    pub fn are_full(&self) -> bool {
        self.controls >= MAX_CONTROLS / 2
    }

    pub fn are_empty(&self) -> bool {
        self.controls == 0
    }

    /// Appends the low `bytes` of two numbers; the others are written over by the next.
    #[inline(always)]
    fn put_numbers(&mut self, first: u32, second: u32, bytes: usize) {
        let at = self.number_bytes;
        let both = u64::from(first) | u64::from(second) << 32;
        self.numbers[at..at + 8].copy_from_slice(&both.to_le_bytes());
        self.number_bytes = at + bytes;
    }

    /// Appends the columns to a payload.
    pub fn join(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.controls as u32).to_le_bytes());
        out.extend_from_slice(&(self.number_bytes as u32).to_le_bytes());
        out.extend_from_slice(&self.control[..self.controls]);
        out.extend_from_slice(&self.numbers[..self.number_bytes]);
        out.extend_from_slice(&self.differences[..self.difference_bytes]);
    }

    /// The control bytes are zero again, as they are for predicted addresses.
    pub fn clear(&mut self) {
        self.control[..self.controls].fill(0);
        (self.controls, self.number_bytes, self.difference_bytes) = (0, 0, 0);
    }
}

/// Bytes in the column of numbers, by how a run names its template.
const NUMBER_BYTES: [u8; 4] = [0, 0, 4, 8];

/// A run of a template, all but its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// One of the four ways to say which template it is of.
    pub how: u8,
    /// The block has no run of it yet.
    pub first: bool,
    /// The template.
    pub number: u32,
    /// Instructions more before its first op.
    pub more: u32,
    /// Of the template: its first slot, ops and instructions.
    pub first_slot: u32,
    pub ops: u32,
    pub instructions: u64,
}

/// Addresses that are not where their slots' strides lead to, until they are coded together.
struct Misses {
    count: usize,
    addr: [u64; MISSES],
    to_slot: [u64; MISSES],
    /// Which control bytes are theirs.
    control: [u32; MISSES],
}

/// Misses that are kept.
const MISSES: usize = 256;

/// Writes runs of one thread. The caller knows which template followed which, see [`crate::host`].
///
/// A processor cannot predict which addresses are predictable, so the encoder does not branch on it: it stores all of
/// them, overwrites those that are predictable, and codes the others many at a time.
pub(crate) struct RunEncoder {
    slots: Vec<Slot>,
    regions: [u64; REGIONS],
    columns: Columns,
    misses: Misses,
}

impl Default for RunEncoder {
    fn default() -> RunEncoder {
        RunEncoder {
            slots: Vec::new(),
            regions: [0; REGIONS],
            columns: Columns::default(),
            misses: Misses {
                count: 0,
                addr: [0; MISSES],
                to_slot: [0; MISSES],
                control: [0; MISSES],
            },
        }
    }
}

impl RunEncoder {
    /// Nothing was coded in this block.
    pub fn is_empty(&self) -> bool {
        self.columns.are_empty()
    }

    /// No run fits into the block any more.
    pub fn is_full(&self) -> bool {
        self.columns.are_full()
    }

    /// Ends the block: gives its columns in exchange for empty ones. The next one knows nothing of it.
    pub fn finish(&mut self, empty: Columns) -> Columns {
        self.settle();
        self.regions = [0; REGIONS];
        std::mem::replace(&mut self.columns, empty)
    }

    /// Appends a run.
    pub fn run(&mut self, run: &Run, addresses: &[u64]) {
        let start = run.first_slot as usize;
        if run.first {
            self.begin(start, start + addresses.len());
        }
        let columns = &mut self.columns;
        let bytes = NUMBER_BYTES[usize::from(run.how & 3)];
        columns.put_numbers(run.number, run.more, usize::from(bytes));
        columns.control[columns.controls] = run.how;
        if addresses.is_empty() {
            columns.controls += 1;
        }
        self.again(start, addresses, 0);
    }

    /// Appends a run of which [`LONG`] says which template it is of, so that it is not the first in the block: all but its
    /// addresses is a zero byte, which is there already. They are changed by an exclusive or with `space`. `false` if one is
    /// 2^63 or more: then nothing was coded, but the block has to end here.
    #[inline(always)]
    pub fn again(&mut self, first_slot: usize, addresses: &[u64], space: u64) -> bool {
        if self.misses.count > MISSES - MAX_ADDRESSES {
            self.settle();
        }
        let start = self.columns.controls;
        let misses = &mut self.misses;
        let (mut count, mut all) = (misses.count, 0);
        let slots = &mut self.slots[first_slot..][..addresses.len()];
        for (place, (slot, &addr)) in slots.iter_mut().zip(addresses).enumerate() {
            let addr = addr ^ space;
            all |= addr;
            let to_slot = addr.wrapping_sub(slot.addr);
            misses.addr[count % MISSES] = addr;
            misses.to_slot[count % MISSES] = to_slot;
            misses.control[count % MISSES] = (start + place) as u32;
            count += usize::from(to_slot != slot.stride);
            *slot = Slot {
                addr,
                stride: to_slot,
            };
        }
        if all >> 63 != 0 {
            return false;
        }
        misses.count = count;
        self.columns.controls = start + addresses.len();
        true
    }

    /// The block has no run of these slots yet.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, start: usize, end: usize) {
        self.columns.grow();
        if end > self.slots.len() {
            self.slots.resize(end, Slot::default());
        }
        self.slots[start..end].fill(Slot::default());
    }

    /// Codes the addresses that could not be predicted.
    #[inline(never)]
    fn settle(&mut self) {
        let columns = &mut self.columns;
        let mut at = columns.difference_bytes;
        let count = std::mem::take(&mut self.misses.count);
        let misses = self.misses.addr[..count].iter();
        let misses = misses.zip(&self.misses.to_slot).zip(&self.misses.control);
        for ((&addr, &to_slot), &control) in misses {
            let region = region_of(addr);
            let in_region = &mut self.regions[usize::from(region) & (REGIONS - 1)];
            let to_region = addr.wrapping_sub(*in_region);
            *in_region = addr;
            let (slot_class, region_class) =
                (width_class(to_slot as i64), width_class(to_region as i64));
            let (mode, difference) = if slot_class < region_class {
                (slot_class + 1, to_slot)
            } else {
                ((region_class + 4) | (region << 3), to_region)
            };
            // of the 8 bytes, those that are not needed are written over by the next
            columns.differences[at..at + 8].copy_from_slice(&difference.to_le_bytes());
            at += usize::from(BYTES_BY_MODE[usize::from(mode & 7)]);
            columns.control[control as usize] |= mode << 2;
        }
        columns.difference_bytes = at;
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    epoch: u32,
    next: u32,
}

/// Reads blocks of runs.
#[derive(Default)]
pub(super) struct RunDecoder {
    entries: Vec<Entry>,
    long: Vec<u32>,
    slots: Vec<Slot>,
    epoch: u32,
}

impl RunDecoder {
    /// Appends the `count` ops that `bytes` hold to `out`; `bytes` has [`super::PADDING`] more bytes at its end.
    /// Appends the functions that the ops are of to `told`, if the caller passes it.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        count: usize,
        templates: &Templates,
        out: &mut Vec<Op>,
        mut told: Option<&mut Vec<CodeAt>>,
    ) -> Result<(), BadOps> {
        let (lengths, columns) = bytes.split_first_chunk::<8>().ok_or(BadOps)?;
        let length = |at: usize| {
            u32::from_le_bytes([
                lengths[at],
                lengths[at + 1],
                lengths[at + 2],
                lengths[at + 3],
            ]) as usize
        };
        let (control, columns) = columns.split_at_checked(length(0)).ok_or(BadOps)?;
        let (mut numbers, differences) = columns.split_at_checked(length(4)).ok_or(BadOps)?;
        if self.epoch == u32::MAX {
            *self = RunDecoder::default();
        }
        self.epoch += 1;
        self.entries.resize(templates.list.len(), Entry::default());
        self.slots.resize(templates.slots as usize, Slot::default());
        out.reserve(count);
        let first = out.len();
        let last = first + count;
        let mut regions = [0u64; REGIONS];
        let mut differences_at = 0;
        self.long.clear();
        self.long.resize(CONTEXTS, 0);
        let (mut current, mut context) = (0u32, 0u32);
        let mut open = [0u64; 64];
        let mut control = control.iter();
        while let Some(&code) = control.next() {
            let entry = &mut self.entries[current as usize];
            let long = &mut self.long[context as usize];
            let (number, mut more) = match code & 3 {
                LONG => (*long, 0),
                SHORT => (entry.next, 0),
                how => {
                    let mut word = || {
                        let (first, rest) = numbers.split_first_chunk::<4>().ok_or(BadOps)?;
                        numbers = rest;
                        Ok(u32::from_le_bytes(*first))
                    };
                    (word()?, if how == NUMBER_AND_MORE { word()? } else { 0 })
                }
            };
            if current != 0 {
                (entry.next, *long) = (number, number);
            }
            context = next_context(context, number);
            let template = templates
                .list
                .get(number as usize)
                .filter(|_| number != 0)
                .ok_or(BadOps)?;
            current = number;
            let range =
                template.first_slot as usize..(template.first_slot + template.addresses) as usize;
            let entry = &mut self.entries[number as usize];
            if entry.epoch != self.epoch {
                *entry = Entry {
                    epoch: self.epoch,
                    next: 0,
                };
                self.slots[range.clone()].fill(Slot::default());
            }
            let mut code = code >> 2;
            for (at, slot) in self.slots[range].iter_mut().enumerate() {
                if at > 0 {
                    code = control.next().ok_or(BadOps)? >> 2;
                }
                let mode = code & 7;
                if mode != 0 {
                    let raw = differences
                        .get(differences_at..differences_at + 8)
                        .and_then(|raw| raw.first_chunk());
                    let raw = i64::from_le_bytes(*raw.ok_or(BadOps)?);
                    let bytes = BYTES_BY_MODE[mode as usize];
                    differences_at += bytes as usize;
                    let unused = 64 - 8 * u32::from(bytes);
                    let difference = (raw << unused >> unused) as u64;
                    let base = if mode >= 4 {
                        regions[usize::from(code >> 3)]
                    } else {
                        slot.addr
                    };
                    let addr = base.wrapping_add(difference);
                    slot.stride = addr.wrapping_sub(slot.addr);
                    slot.addr = addr;
                    regions[region_of(addr) as usize & (REGIONS - 1)] = addr;
                } else {
                    slot.addr = slot.addr.wrapping_add(slot.stride);
                }
                open[at] = slot.addr;
            }
            if out.len() + template.ops() > last {
                return Err(BadOps);
            }
            if let Some(told) = &mut told
                && let Some(function) = templates.function(number)
                && told.last().is_none_or(|last| last.function != function)
            {
                let at = (out.len() - first) as u32;
                told.push(CodeAt { at, function });
            }
            for TemplateOp { op, from } in templates.ops(template) {
                let instructions = op.instructions.saturating_add(std::mem::take(&mut more));
                out.push(Op {
                    addr: op.addr.wrapping_add(open[usize::from(from & 63)]),
                    instructions,
                    ..*op
                });
            }
        }
        if out.len() == last {
            Ok(())
        } else {
            Err(BadOps)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PADDING;

    /// Template 1 has one op, 2 has two, 3 has none of its own function.
    fn templates() -> Templates {
        let mut templates = Templates::default();
        let op = TemplateOp {
            op: Op::read(0, 8, 1),
            from: 0,
        };
        for (slot, ops) in [(0, 1), (1, 2), (2, 1)] {
            templates.add(slot, 1, &vec![op; ops]).unwrap();
        }
        templates
    }

    fn run(encoder: &mut RunEncoder, number: u32, first: bool) {
        let run = Run {
            how: NUMBER,
            first,
            number,
            more: 0,
            first_slot: number - 1,
            ops: 0,
            instructions: 0,
        };
        encoder.run(&run, &[0x1000]);
    }

    #[test]
    fn functions_are_told_where_they_change() {
        let mut templates = templates();
        templates.decode_functions(&[6, 2, 0], 6).unwrap();
        let mut encoder = RunEncoder::default();
        for (number, first) in [
            (3, true),
            (1, true),
            (1, false),
            (3, false),
            (2, true),
            (1, false),
        ] {
            run(&mut encoder, number, first);
        }
        let mut bytes = Vec::new();
        encoder.finish(Columns::default()).join(&mut bytes);
        bytes.extend_from_slice(&[0; PADDING]);
        let (mut told, mut ops) = (Vec::new(), Vec::new());
        let mut decoder = RunDecoder::default();
        decoder
            .decode(&bytes, 7, &templates, &mut ops, Some(&mut told))
            .unwrap();
        let told: Vec<(u32, u32)> = told.iter().map(|step| (step.at, step.function)).collect();
        // A template without a function belongs to the one before; at the beginning it is unknown.
        assert_eq!(told, [(1, 5), (4, 1), (6, 5)]);
        let mut plain = Vec::new();
        decoder
            .decode(&bytes, 7, &templates, &mut plain, None)
            .unwrap();
        assert_eq!(plain, ops);
    }

    #[test]
    fn a_function_that_is_not_there_is_refused() {
        assert!(templates().decode_functions(&[1, 7], 6).is_err());
        assert!(templates().decode_functions(&[0x80], 6).is_err());
        assert!(!templates().have_functions());
    }
}
