//! How the ops of a block become bytes: every op is predicted from the ops before it, and only what the prediction
//! missed is written.
//!
//! Two tables are kept by writer and reader alike and start empty in every block. The *shape* of an op is all of it
//! but the address (kind, size, instructions, dependent). A hash of the last few shapes stands for "where in the
//! program we are" and selects an [`Entry`]: the shape that came next the last time, the address it had, and the
//! stride since the time before. Per op:
//!
//! - a control byte: bits 0-2 say how the address is written ([`Mode`]), bit 3 that the shape was predicted, bit 4 that
//!   it is one of the recent shapes and a byte in the shape column says which; otherwise 8 bytes follow there;
//! - 0, 1, 2, 4 or 8 bytes of difference in the column of differences.
//!
//! The three columns (control, shapes, differences) follow each other, and the whole is compressed with LZ4.

use varve_machine::{Kind, Op};

/// Entries of the prediction table; with 24 bytes each it stays in a first-level cache.
const CONTEXTS: usize = 1024;
/// Entries of the table of recent shapes.
const RECENT: usize = 256;
/// An odd constant with well-mixed bits (the golden ratio in 64 bits) for multiplicative hashing.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

const PREDICTED: u8 = 1 << 3;
const RECENT_SHAPE: u8 = 1 << 4;

/// How the address of an op is written, in bits 0-2 of its control byte.
///
/// 0: the entry's last address plus its stride. 1-3: a difference of 1, 2, 4 bytes to the entry's last address.
/// 4-6: a difference of 1, 2, 4 bytes to the previous op's address. 7: a difference of 8 bytes to that.
struct Mode;

impl Mode {
    /// Bytes that follow, by mode.
    const BYTES: [u8; 8] = [0, 1, 2, 4, 1, 2, 4, 8];
}

#[derive(Clone, Copy, Default)]
struct Entry {
    shape: u64,
    addr: u64,
    stride: u64,
}

/// What writer and reader both know at a point of a block.
struct Model {
    entries: Box<[Entry; CONTEXTS]>,
    recent: Box<[u64; RECENT]>,
    context: u64,
    previous: u64,
}

impl Model {
    fn new() -> Model {
        Model {
            entries: Box::new([Entry::default(); CONTEXTS]),
            recent: Box::new([0; RECENT]),
            context: 0,
            previous: 0,
        }
    }

    fn reset(&mut self) {
        self.entries.fill(Entry::default());
        self.recent.fill(0);
        self.context = 0;
        self.previous = 0;
    }

    /// Moves on: older shapes are shifted out of the 10 bits that select an entry after four ops.
    #[inline(always)]
    fn advance(context: u64, hash: u64) -> u64 {
        ((context << 3) ^ (hash >> 54)) & (CONTEXTS as u64 - 1)
    }
}

#[inline(always)]
fn shape_of(op: &Op) -> u64 {
    u64::from(op.instructions)
        | u64::from(op.size) << 32
        | (op.kind as u64) << 48
        | u64::from(op.dependent) << 56
}

#[inline(always)]
fn recent_slot(hash: u64) -> usize {
    (hash >> 40) as usize & (RECENT - 1)
}

/// Writes blocks. Keeps its tables between blocks only to save their allocation.
pub struct OpEncoder {
    model: Model,
    control: Vec<u8>,
    shapes: Vec<u8>,
    differences: Vec<u8>,
}

impl Default for OpEncoder {
    fn default() -> OpEncoder {
        OpEncoder {
            model: Model::new(),
            control: Vec::new(),
            shapes: Vec::new(),
            differences: Vec::new(),
        }
    }
}

/// The smallest of 1, 2, 4, 8 bytes that hold `value` as a signed number, as 0, 1, 2, 3.
#[inline(always)]
fn width_class(value: i64) -> u8 {
    let bits = 65 - (value ^ (value >> 63)).leading_zeros();
    (bits > 8) as u8 + (bits > 16) as u8 + (bits > 32) as u8
}

impl OpEncoder {
    /// Appends the coded ops to `out`.
    pub fn encode(&mut self, ops: &[Op], out: &mut Vec<u8>) {
        self.model.reset();
        self.control.resize(ops.len(), 0);
        self.shapes.resize(ops.len() * 8 + 8, 0);
        self.differences.resize(ops.len() * 8 + 8, 0);
        let (mut shapes_end, mut differences_end) = (0, 0);
        let (mut context, mut previous) = (0u64, 0u64);
        for (op, control) in ops.iter().zip(self.control.iter_mut()) {
            let shape = shape_of(op);
            let entry = &mut self.model.entries[context as usize & (CONTEXTS - 1)];
            let hash = shape.wrapping_mul(MIX);
            let mut code = PREDICTED;
            if entry.shape != shape {
                let recent = &mut self.model.recent[recent_slot(hash)];
                if *recent == shape {
                    code = RECENT_SHAPE;
                    self.shapes[shapes_end] = recent_slot(hash) as u8;
                    shapes_end += 1;
                } else {
                    code = 0;
                    self.shapes[shapes_end..shapes_end + 8].copy_from_slice(&shape.to_le_bytes());
                    shapes_end += 8;
                    *recent = shape;
                }
            }
            let to_entry = op.addr.wrapping_sub(entry.addr) as i64;
            let to_previous = op.addr.wrapping_sub(previous) as i64;
            let (entry_class, previous_class) = (width_class(to_entry), width_class(to_previous));
            let (mut mode, mut difference) = if entry_class <= previous_class && entry_class < 3 {
                (entry_class + 1, to_entry)
            } else {
                (previous_class + 4, to_previous)
            };
            if to_entry as u64 == entry.stride {
                (mode, difference) = (0, 0);
            }
            let place = &mut self.differences[differences_end..differences_end + 8];
            place.copy_from_slice(&difference.to_le_bytes());
            differences_end += Mode::BYTES[mode as usize] as usize;
            *control = code | mode;

            *entry = Entry {
                shape,
                addr: op.addr,
                stride: to_entry as u64,
            };
            previous = op.addr;
            context = Model::advance(context, hash);
        }
        out.extend_from_slice(&(shapes_end as u32).to_le_bytes());
        out.extend_from_slice(&self.control);
        out.extend_from_slice(&self.shapes[..shapes_end]);
        out.extend_from_slice(&self.differences[..differences_end]);
    }
}

/// Reads blocks.
pub struct OpDecoder {
    model: Model,
}

impl Default for OpDecoder {
    fn default() -> OpDecoder {
        OpDecoder {
            model: Model::new(),
        }
    }
}

/// Why coded ops cannot be read: the block says more than it holds, or names a kind that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadOps;

impl OpDecoder {
    /// Appends the `count` ops that `bytes` hold to `out`. `bytes` may have more at the end, which is not looked at
    /// but makes the last difference readable in one step; at least 8 bytes.
    pub fn decode(&mut self, bytes: &[u8], count: usize, out: &mut Vec<Op>) -> Result<(), BadOps> {
        let (length, columns) = bytes.split_first_chunk::<4>().ok_or(BadOps)?;
        let shapes_length = u32::from_le_bytes(*length) as usize;
        if count > columns.len() || shapes_length > columns.len() - count {
            return Err(BadOps);
        }
        let (control, columns) = columns.split_at(count);
        let (shapes, differences) = columns.split_at(shapes_length);
        self.model.reset();
        out.reserve(count);
        let (mut shapes_at, mut differences_at) = (0, 0);
        let (mut context, mut previous) = (self.model.context, self.model.previous);
        for &code in control {
            let entry = &mut self.model.entries[context as usize & (CONTEXTS - 1)];
            let shape = if code & PREDICTED != 0 {
                entry.shape
            } else if code & RECENT_SHAPE != 0 {
                let slot = *shapes.get(shapes_at).ok_or(BadOps)?;
                shapes_at += 1;
                self.model.recent[usize::from(slot)]
            } else {
                let raw = shapes
                    .get(shapes_at..shapes_at + 8)
                    .and_then(|raw| raw.first_chunk())
                    .ok_or(BadOps)?;
                shapes_at += 8;
                let shape = u64::from_le_bytes(*raw);
                self.model.recent[recent_slot(shape.wrapping_mul(MIX))] = shape;
                shape
            };
            let mode = code & 7;
            let raw = differences
                .get(differences_at..differences_at + 8)
                .and_then(|raw| raw.first_chunk());
            let raw = i64::from_le_bytes(*raw.ok_or(BadOps)?);
            let bytes = Mode::BYTES[mode as usize];
            differences_at += bytes as usize;
            let difference =
                raw.wrapping_shl(64 - 8 * u32::from(bytes)) >> ((64 - 8 * u32::from(bytes)) & 63);
            let base = if mode >= 4 { previous } else { entry.addr };
            let difference = if mode == 0 {
                entry.stride
            } else {
                difference as u64
            };
            let addr = base.wrapping_add(difference);
            let kind = Kind::from_code((shape >> 48) as u8).ok_or(BadOps)?;
            out.push(Op {
                addr,
                instructions: shape as u32,
                size: (shape >> 32) as u16,
                kind,
                dependent: (shape >> 56) as u8,
            });
            *entry = Entry {
                shape,
                addr,
                stride: addr.wrapping_sub(entry.addr),
            };
            previous = addr;
            context = Model::advance(context, shape.wrapping_mul(MIX));
        }
        Ok(())
    }
}

/// Bytes that must follow the columns so that [`OpDecoder::decode`] can read its last difference.
pub const PADDING: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(ops: &[Op]) -> Vec<Op> {
        let mut bytes = Vec::new();
        OpEncoder::default().encode(ops, &mut bytes);
        bytes.extend_from_slice(&[0; PADDING]);
        let mut back = Vec::new();
        OpDecoder::default()
            .decode(&bytes, ops.len(), &mut back)
            .expect("what was written can be read");
        back
    }

    fn any_op() -> impl Strategy<Value = Op> {
        let addr = prop_oneof![
            any::<u64>(),
            0u64..1 << 20,
            (0u64..64).prop_map(|i| u64::MAX - i)
        ];
        (
            addr,
            0u32..6,
            prop_oneof![Just(8u16), any::<u16>()],
            0u8..13,
            0u8..2,
        )
            .prop_map(|(addr, instructions, size, kind, dependent)| Op {
                addr,
                instructions,
                size,
                kind: Kind::from_code(kind).expect("13 kinds"),
                dependent,
            })
    }

    proptest! {
        #[test]
        fn any_ops_come_back_as_they_were(ops in prop::collection::vec(any_op(), 0..600)) {
            prop_assert_eq!(round_trip(&ops), ops);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), count in 0usize..400) {
            let _ = OpDecoder::default().decode(&bytes, count, &mut Vec::new());
        }
    }

    #[test]
    fn a_loop_over_an_array_costs_one_control_byte_per_op() {
        let ops: Vec<Op> = (0..10_000)
            .map(|i| Op::read(0x1000 + 8 * i, 8, 3))
            .collect();
        let mut bytes = Vec::new();
        OpEncoder::default().encode(&ops, &mut bytes);
        assert!(bytes.len() < ops.len() + 200, "{} bytes", bytes.len());
        assert_eq!(round_trip(&ops), ops);
    }

    #[test]
    fn two_threads_of_control_in_one_stream_keep_their_own_strides() {
        let ops: Vec<Op> = (0..10_000)
            .flat_map(|i| {
                [
                    Op::read(0x10_0000 + 64 * i, 8, 3),
                    Op::write(0x7f00_0000_0000 - 8 * i, 4, 2),
                ]
            })
            .collect();
        let mut bytes = Vec::new();
        OpEncoder::default().encode(&ops, &mut bytes);
        assert!(bytes.len() < ops.len() + 400, "{} bytes", bytes.len());
    }
}
