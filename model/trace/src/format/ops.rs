//! How the ops of a block become bytes: every op is predicted from the ops before it, and only the mispredicted parts
//! are written.
//!
//! Two tables are kept by writer and reader alike and start empty in every block. The *shape* of an op is all of it
//! but the address (kind, size, instructions, dependent). A hash of the last few shapes stands for "where in the
//! program we are" and selects an [`Entry`]: the shape that came next the last time, the address it had, and the
//! stride since the time before. The address that was last accessed in the same *region* (a hash of the upper bits of
//! the address: stack, globals, heap) is the other thing to predict from. Per op:
//!
//! - a control byte: bits 0-2 say how the address is written ([`BYTES_BY_MODE`]), bit 3 that the shape was predicted,
//!   bit 4 that it is written in 2 bytes ([`short_shape`]) rather than 8, bits 5-7 are the region;
//! - nothing, 2 or 8 bytes in the column of shapes;
//! - 0, 1, 2, 4 or 8 bytes in the column of differences.
//!
//! The three columns (control, shapes, differences) follow each other, and the whole is compressed with LZ4.

use super::difference::{BYTES_BY_MODE, BadOps, MIX, REGIONS, region_of, width_class};
use super::runs::{CodeAt, RunDecoder, Templates};
use varve_access::{Kind, Op};

/// Entries of the prediction table; with 24 bytes each it stays in a first-level cache.
const CONTEXTS: usize = 1024;
const PREDICTED: u8 = 1 << 3;
const SHORT_SHAPE: u8 = 1 << 4;

#[derive(Clone, Copy, Default)]
struct Entry {
    shape: u64,
    addr: u64,
    stride: u64,
}

/// State that writer and reader share at a point of a block.
struct Model {
    entries: Box<[Entry; CONTEXTS]>,
    regions: [u64; REGIONS],
}

impl Model {
    fn new() -> Model {
        Model {
            entries: Box::new([Entry::default(); CONTEXTS]),
            regions: [0; REGIONS],
        }
    }

    fn reset(&mut self) {
        self.entries.fill(Entry::default());
        self.regions = [0; REGIONS];
    }
}

/// Moves on: older shapes are shifted out of the 10 bits that select an entry after four ops.
#[inline(always)]
fn next_context(context: u64, shape: u64) -> u64 {
    ((context << 3) ^ (shape.wrapping_mul(MIX) >> 54)) & (CONTEXTS as u64 - 1)
}

#[inline(always)]
fn shape_of(op: &Op) -> u64 {
    u64::from(op.instructions)
        | u64::from(op.size) << 32
        | (op.kind as u64) << 48
        | u64::from(op.dependent) << 56
}

/// The shape in 14 bits, when it fits: instructions below 64 (bits 0-5), a size that is 0 or a power of two up to 64
/// (bits 6-8: 0, or 1 more than its logarithm), kind (bits 9-12), dependent (bit 13).
#[inline(always)]
fn short_shape(op: &Op) -> Option<u16> {
    let size = if op.size == 0 {
        0
    } else {
        op.size.trailing_zeros() as u16 + 1
    };
    let fits = op.instructions < 64
        && op.dependent < 2
        && size < 8
        && (op.size == 0 || op.size.is_power_of_two());
    fits.then(|| {
        op.instructions as u16 | size << 6 | (op.kind as u16) << 9 | u16::from(op.dependent) << 13
    })
}

#[inline(always)]
fn from_short_shape(short: u16) -> u64 {
    let short = u64::from(short);
    let size = 1 << (short >> 6 & 7) >> 1;
    (short & 63) | size << 32 | (short >> 9 & 15) << 48 | (short >> 13 & 1) << 56
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

impl OpEncoder {
    /// Appends the coded ops to `out`.
    pub fn encode(&mut self, ops: &[Op], out: &mut Vec<u8>) {
        self.model.reset();
        self.control.resize(ops.len(), 0);
        self.shapes.resize(ops.len() * 8 + 8, 0);
        self.differences.resize(ops.len() * 8 + 8, 0);
        let (mut shapes_end, mut differences_end, mut context) = (0, 0, 0u64);
        for (op, control) in ops.iter().zip(self.control.iter_mut()) {
            let shape = shape_of(op);
            let entry = &mut self.model.entries[context as usize & (CONTEXTS - 1)];
            let mut code = PREDICTED;
            if entry.shape != shape {
                let place = &mut self.shapes[shapes_end..shapes_end + 8];
                match short_shape(op) {
                    Some(short) => {
                        code = SHORT_SHAPE;
                        place[..2].copy_from_slice(&short.to_le_bytes());
                        shapes_end += 2;
                    }
                    None => {
                        code = 0;
                        place.copy_from_slice(&shape.to_le_bytes());
                        shapes_end += 8;
                    }
                }
            }
            let region = region_of(op.addr);
            let in_region = &mut self.model.regions[region as usize & (REGIONS - 1)];
            let to_entry = op.addr.wrapping_sub(entry.addr);
            let to_region = op.addr.wrapping_sub(*in_region);
            if to_entry != entry.stride {
                let (entry_class, region_class) =
                    (width_class(to_entry as i64), width_class(to_region as i64));
                let (mode, difference) = if entry_class < region_class {
                    (entry_class + 1, to_entry)
                } else {
                    ((region_class + 4) | (region << 5), to_region)
                };
                let place = &mut self.differences[differences_end..differences_end + 8];
                place.copy_from_slice(&difference.to_le_bytes());
                differences_end += BYTES_BY_MODE[mode as usize & 7] as usize;
                code |= mode;
            }
            *control = code;
            *entry = Entry {
                shape,
                addr: op.addr,
                stride: to_entry,
            };
            *in_region = op.addr;
            context = next_context(context, shape);
        }
        out.extend_from_slice(&(shapes_end as u32).to_le_bytes());
        out.extend_from_slice(&self.control);
        out.extend_from_slice(&self.shapes[..shapes_end]);
        out.extend_from_slice(&self.differences[..differences_end]);
    }
}

/// Reads blocks of either kind.
pub struct OpDecoder {
    model: Model,
    runs: RunDecoder,
}

impl Default for OpDecoder {
    fn default() -> OpDecoder {
        OpDecoder {
            model: Model::new(),
            runs: RunDecoder::default(),
        }
    }
}

impl OpDecoder {
    /// The same as [`OpDecoder::decode`] for a block of runs of templates, which may say of which functions the ops are. All blocks that one decoder reads must be of
    /// the same trace.
    pub fn decode_runs(
        &mut self,
        bytes: &[u8],
        count: usize,
        templates: &Templates,
        out: &mut Vec<Op>,
        code: Option<&mut Vec<CodeAt>>,
    ) -> Result<(), BadOps> {
        self.runs.decode(bytes, count, templates, out, code)
    }

    /// Appends the `count` ops that `bytes` hold to `out`. `bytes` may have more at the end, at least 8 bytes, which
    /// are not decoded: with them the last difference can be read in one step.
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
        let (mut shapes_at, mut differences_at, mut context) = (0, 0, 0u64);
        for &code in control {
            let entry = &mut self.model.entries[context as usize & (CONTEXTS - 1)];
            let shape = if code & PREDICTED != 0 {
                entry.shape
            } else if code & SHORT_SHAPE != 0 {
                let raw = shapes
                    .get(shapes_at..shapes_at + 2)
                    .and_then(|raw| raw.first_chunk())
                    .ok_or(BadOps)?;
                shapes_at += 2;
                from_short_shape(u16::from_le_bytes(*raw))
            } else {
                let raw = shapes
                    .get(shapes_at..shapes_at + 8)
                    .and_then(|raw| raw.first_chunk())
                    .ok_or(BadOps)?;
                shapes_at += 8;
                u64::from_le_bytes(*raw)
            };
            let mode = code & 7;
            let raw = differences
                .get(differences_at..differences_at + 8)
                .and_then(|raw| raw.first_chunk());
            let raw = i64::from_le_bytes(*raw.ok_or(BadOps)?);
            let bytes = BYTES_BY_MODE[mode as usize];
            differences_at += bytes as usize;
            let unused = 64 - 8 * u32::from(bytes);
            let difference = (raw.wrapping_shl(unused) >> (unused & 63)) as u64;
            let base = if mode >= 4 {
                self.model.regions[usize::from(code >> 5)]
            } else {
                entry.addr
            };
            let addr = base.wrapping_add(if mode == 0 { entry.stride } else { difference });
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
            self.model.regions[region_of(addr) as usize & (REGIONS - 1)] = addr;
            context = next_context(context, shape);
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
            0u8..16,
            0u8..2,
        )
            .prop_map(|(addr, instructions, size, kind, dependent)| Op {
                addr,
                instructions,
                size,
                kind: Kind::from_code(kind).expect("16 kinds"),
                dependent,
            })
    }

    #[test]
    fn every_shape_that_fits_is_written_short_and_read_back() {
        for size in [0, 1, 2, 4, 8, 16, 32, 64, 3, 128, 65535] {
            for (kind, instructions, dependent) in Kind::ALL
                .into_iter()
                .flat_map(|kind| [(kind, 0, 1), (kind, 63, 0), (kind, 64, 0)])
            {
                let op = Op {
                    addr: 0,
                    instructions,
                    size,
                    kind,
                    dependent,
                };
                let fits = instructions < 64 && (size == 0 || size.is_power_of_two()) && size < 128;
                assert_eq!(
                    short_shape(&op).map(from_short_shape),
                    fits.then_some(shape_of(&op)),
                    "{op:?}"
                );
            }
        }
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
