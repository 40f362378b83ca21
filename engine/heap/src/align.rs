//! The alignment of objects, and what follows from it: how far references reach, where the range of durable objects is, and how large
//! objects are.
//!
//! A reference has 32 bits, of which the lowest tells integers from objects. So it can name 2^31 places, and how many bytes that is
//! depends on how far apart they are:
//!
//! | objects are aligned to | a reference counts units of | references span | durable range, about |
//! |--:|--:|--:|--:|
//! | 8 bytes | 4 bytes | 16 GiB | 8 GiB |
//! | 16 | 8 | 32 GiB | 16 GiB |
//! | 32 | 16 | 64 GiB | 32 GiB |
//! | 64 | 32 | 128 GiB | 64 GiB |
//! | 128 | 64 | 256 GiB | 128 GiB |
//! | 256 | 128 | 512 GiB | 256 GiB |
//!
//! Each doubling costs half of the alignment more per object, on average. Only the durable range grows with it: the heap itself has
//! [`HEAP_MAX`](crate::layout::HEAP_MAX) bytes at most.

use crate::layout::{CHUNK_SIZE, array_base};
use crate::reference::Ref;

/// The alignment of objects: each begins at a multiple of it and occupies a multiple of it. A power of two from 8 to 256 bytes.
///
/// ```
/// use varve_heap::{ObjectAlign, Ref};
///
/// let align = ObjectAlign::new(64)?;
/// assert_eq!(align.span(), 128 << 30);
/// assert_eq!(align.offset(Ref(2)), 64);
/// assert_eq!(align.object_size(65), 128);
/// assert!(ObjectAlign::new(48).is_err());
/// # Ok::<(), varve_heap::AlignError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectAlign {
    shift: u32,
}

/// An alignment that is none of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("objects cannot be aligned to {0} bytes: 8, 16, 32, 64, 128 and 256 are possible")]
pub struct AlignError(pub u64);

impl Default for ObjectAlign {
    fn default() -> ObjectAlign {
        ObjectAlign::LEAST
    }
}

impl ObjectAlign {
    /// 8 bytes, which is also the default.
    pub const LEAST: ObjectAlign = ObjectAlign { shift: 2 };
    /// 256 bytes.
    pub const MOST: ObjectAlign = ObjectAlign { shift: 7 };

    /// An alignment to `bytes` bytes.
    ///
    /// # Errors
    /// If it is no power of two from 8 to 256.
    pub const fn new(bytes: u64) -> Result<ObjectAlign, AlignError> {
        if !bytes.is_power_of_two() {
            return Err(AlignError(bytes));
        }
        match ObjectAlign::of_shift(bytes.trailing_zeros().wrapping_sub(1)) {
            Some(align) => Ok(align),
            None => Err(AlignError(bytes)),
        }
    }

    /// The alignment with which references count units of `1 << shift` bytes; `shift` is 2 to 7.
    pub const fn of_shift(shift: u32) -> Option<ObjectAlign> {
        if shift < ObjectAlign::LEAST.shift || shift > ObjectAlign::MOST.shift {
            return None;
        }
        Some(ObjectAlign { shift })
    }

    /// The least alignment whose durable range has `bytes` bytes; none if there is none.
    pub fn for_durable(bytes: u64) -> Option<ObjectAlign> {
        ObjectAlign::all().find(|align| align.durable_end() - align.durable_start() >= bytes)
    }

    /// All of them, ascending.
    pub fn all() -> impl Iterator<Item = ObjectAlign> {
        (ObjectAlign::LEAST.shift..=ObjectAlign::MOST.shift).map(|shift| ObjectAlign { shift })
    }

    /// Bytes.
    #[inline(always)]
    pub const fn bytes(self) -> u64 {
        2 << self.shift
    }

    /// A reference counts units of 1 shifted by this, in bytes from the heap's base: half of the alignment, because its lowest bit
    /// is that of integers.
    #[inline(always)]
    pub const fn shift(self) -> u32 {
        self.shift
    }

    /// Bytes that references span: the address range that a heap reserves.
    pub const fn span(self) -> u64 {
        1 << (32 + self.shift)
    }

    /// Where objects that survive the program are, in bytes from the heap's base: in the upper half of what references span, which
    /// a heap with [`Config::durable`](crate::Config::durable) leaves to the code that maps them there. Their references are
    /// [`Ref::is_durable`].
    pub const fn durable_start(self) -> u64 {
        self.span() / 2
    }

    /// Where that range ends.
    pub const fn durable_end(self) -> u64 {
        self.span() - CHUNK_SIZE
    }

    /// Bytes from the heap's base to an object.
    #[inline(always)]
    pub const fn offset(self, object: Ref) -> u64 {
        (object.0 as u64) << self.shift
    }

    /// The reference of an object that is `offset` bytes from the heap's base: a multiple of the alignment, less than the span.
    #[inline(always)]
    pub const fn reference(self, offset: u64) -> Ref {
        debug_assert!(self.is_aligned(offset) && offset < self.span());
        Ref((offset >> self.shift) as u32)
    }

    /// Whether a number of bytes is a multiple of the alignment.
    #[inline(always)]
    pub const fn is_aligned(self, bytes: u64) -> bool {
        bytes & (self.bytes() - 1) == 0
    }

    /// The largest multiple of the alignment that is no more than `bytes`.
    #[inline(always)]
    pub const fn round_down(self, bytes: u64) -> u64 {
        bytes & !(self.bytes() - 1)
    }

    /// Bytes that an object with `bytes` of header and payload occupies.
    #[inline(always)]
    pub const fn object_size(self, bytes: u64) -> u64 {
        self.round_down(bytes + (self.bytes() - 1))
    }

    /// Bytes that an array of `length` elements of `element_size` bytes occupies. It cannot overflow.
    #[inline(always)]
    pub const fn array_size(self, element_size: u32, length: u32) -> u64 {
        self.object_size(array_base(element_size) as u64 + element_size as u64 * length as u64)
    }

    /// Half of the first reference to a range of bytes, and half of how many references it spans: see
    /// [`Ref::is_object_in`].
    #[inline]
    pub(crate) fn half_range(self, (start, end): (u64, u64)) -> (u32, u32) {
        let half = |bytes: u64| (bytes >> self.shift) as u32 / 2;
        (half(start), half(end - start))
    }
}

/// The source of the alignment: a heap's settings, or a compile-time constant. Tracing is compiled for both, because a shift by a number
/// that is in a register costs it several percent.
pub(crate) trait Aligned: Copy + Send + Sync {
    /// The alignment.
    fn align(self) -> ObjectAlign;
}

impl Aligned for ObjectAlign {
    #[inline(always)]
    fn align(self) -> ObjectAlign {
        self
    }
}

/// The usual alignment, 8 bytes, as a constant.
#[derive(Clone, Copy)]
pub(crate) struct Usual;

impl Aligned for Usual {
    #[inline(always)]
    fn align(self) -> ObjectAlign {
        ObjectAlign::LEAST
    }
}

impl std::str::FromStr for ObjectAlign {
    type Err = String;

    fn from_str(s: &str) -> Result<ObjectAlign, String> {
        let bytes = s
            .parse()
            .map_err(|_| format!("{s:?} is no alignment: give bytes, 8 to 256"))?;
        ObjectAlign::new(bytes).map_err(|e| e.to_string())
    }
}

impl std::fmt::Display for ObjectAlign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes().fmt(f)
    }
}

impl std::fmt::Debug for ObjectAlign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_from_8_to_256_are_alignments() {
        let accepted: Vec<u64> = (0..5000).filter(|&b| ObjectAlign::new(b).is_ok()).collect();
        assert_eq!(accepted, [8, 16, 32, 64, 128, 256]);
        assert_eq!(
            ObjectAlign::all()
                .map(ObjectAlign::bytes)
                .collect::<Vec<_>>(),
            accepted
        );
        let why = "64".parse::<ObjectAlign>().map(ObjectAlign::shift);
        assert_eq!(why, Ok(5));
        let why = "4096".parse::<ObjectAlign>().unwrap_err();
        assert_eq!(
            why,
            "objects cannot be aligned to 4096 bytes: 8, 16, 32, 64, 128 and 256 are possible"
        );
        assert!("8 KiB".parse::<ObjectAlign>().is_err());
    }

    #[test]
    fn the_usual_alignment_is_8_bytes() {
        let align = ObjectAlign::default();
        assert_eq!((align.bytes(), align.shift()), (8, 2));
        assert_eq!((align.span(), align.durable_start()), (16 << 30, 8 << 30));
    }

    #[test]
    fn a_durable_range_has_the_least_alignment_that_it_needs() {
        let needed = |bytes| ObjectAlign::for_durable(bytes).map(ObjectAlign::bytes);
        assert_eq!((needed(0), needed(7 << 30)), (Some(8), Some(8)));
        assert_eq!((needed(8 << 30), needed(100 << 30)), (Some(16), Some(128)));
        assert_eq!((needed(255 << 30), needed(256 << 30)), (Some(256), None));
    }

    /// Whatever the alignment is, references of objects are even, and the upper half of them durable.
    #[test]
    fn references_and_offsets_are_each_others() {
        for align in ObjectAlign::all() {
            assert_eq!(align.span(), align.bytes() << 31);
            let last = align.span() - align.bytes();
            for offset in [
                0,
                align.bytes(),
                256,
                align.durable_start(),
                align.durable_end(),
                last,
            ] {
                let r = align.reference(offset);
                assert!(
                    !r.is_i31() && align.offset(r) == offset,
                    "{align:?} {offset:#x}"
                );
                assert_eq!(r.is_durable(), offset >= align.durable_start());
            }
            assert_eq!(align.half_range((0, align.durable_start())), (0, 1 << 30));
        }
    }

    #[test]
    fn arrays_are_as_large_as_their_elements_need() {
        let align = ObjectAlign::default();
        let size = |element, length| align.array_size(element, length);
        assert_eq!((size(1, 0), size(1, 4), size(1, 5)), (16, 16, 24));
        assert_eq!((size(4, 1), size(4, 2)), (16, 24));
        assert_eq!((size(8, 0), size(8, 1)), (16, 24));
        assert_eq!(size(8, u32::MAX), 16 + 8 * u64::from(u32::MAX));
        let align = ObjectAlign::MOST;
        assert_eq!(
            (align.array_size(1, 244), align.array_size(1, 245)),
            (256, 512)
        );
        assert_eq!((align.object_size(0), align.object_size(8)), (0, 256));
    }
}
