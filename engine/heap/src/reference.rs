//! References as programs hold them: 32 bits.

use crate::layout::{DURABLE_BIT, I31_TAG};

/// A reference: null, a 31-bit integer, or an object of the heap. See [`layout`](crate::layout) for the bits, and
/// [`ObjectAlign`](crate::ObjectAlign) for where the object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Ref(pub u32);

impl Ref {
    /// The null reference.
    pub const NULL: Ref = Ref(0);

    /// A 31-bit integer; the highest bit of `value` is lost.
    pub const fn i31(value: u32) -> Ref {
        Ref(value << 1 | I31_TAG)
    }

    /// Whether this is the null reference.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Whether this is a 31-bit integer.
    #[inline(always)]
    pub const fn is_i31(self) -> bool {
        self.0 & I31_TAG != 0
    }

    /// Whether this refers to an object.
    #[inline(always)]
    pub const fn is_object(self) -> bool {
        self.is_object_in(1, u32::MAX >> 1)
    }

    /// Whether this leads into the range that heaps leave to durable objects, if they do: it has [`DURABLE_BIT`] and is no
    /// integer.
    #[inline(always)]
    pub const fn is_durable(self) -> bool {
        self.0 & (DURABLE_BIT | I31_TAG) == DURABLE_BIT
    }

    /// Whether this refers to an object of a range, given as half of its first reference and half of how many
    /// references it spans.
    ///
    /// Rotation puts the tag of integers on top, so that one comparison does it: collections ask this for every
    /// field.
    #[inline(always)]
    pub(crate) const fn is_object_in(self, half_start: u32, half_span: u32) -> bool {
        self.0.rotate_right(1).wrapping_sub(half_start) < half_span
    }

    /// The integer that [`Ref::i31`] made this from, sign-extended from 31 bits.
    #[inline(always)]
    pub const fn as_i31(self) -> i32 {
        self.0 as i32 >> 1
    }
}

impl std::fmt::Debug for Ref {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            r if r.is_null() => f.write_str("null"),
            r if r.is_i31() => write!(f, "i31({})", r.as_i31()),
            r => write!(f, "@{:#x}", r.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ref;

    #[test]
    fn integers_keep_31_bits_and_their_sign() {
        for value in [0, 1, -1, 12345, -12345, (1 << 30) - 1, -(1 << 30)] {
            let r = Ref::i31(value as u32);
            assert!(r.is_i31() && !r.is_object() && !r.is_null());
            assert_eq!(r.as_i31(), value);
        }
        assert!(Ref::NULL.is_null() && !Ref::NULL.is_object());
        assert!(Ref(2).is_object() && Ref(u32::MAX - 1).is_object() && !Ref(u32::MAX).is_object());
        for (r, inside) in [
            (98, false),
            (100, true),
            (101, false),
            (118, true),
            (119, false),
            (120, false),
        ] {
            assert_eq!(Ref(r).is_object_in(50, 10), inside);
        }
    }
}
