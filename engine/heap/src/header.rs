//! An object's header as a value. Nothing here touches memory.

use crate::layout::*;
use crate::reference::Ref;

/// The 64 bits at an object's start. See [`layout`](crate::layout).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Header(pub u64);

impl Header {
    /// Index of the object's shape.
    #[inline(always)]
    pub const fn type_index(self) -> u32 {
        (self.0 >> TYPE_SHIFT) as u32 & ((1 << TYPE_BITS) - 1)
    }

    /// Allocation site; 0 is unknown.
    #[inline(always)]
    pub const fn site(self) -> u32 {
        (self.0 >> SITE_SHIFT) as u32 & ((1 << SITE_BITS) - 1)
    }

    /// The temperature byte.
    #[inline(always)]
    pub const fn temperature(self) -> u8 {
        (self.0 >> TEMPERATURE_SHIFT) as u8
    }

    /// The collector's byte.
    #[inline(always)]
    pub const fn collector(self) -> u8 {
        (self.0 >> COLLECTOR_SHIFT) as u8
    }

    /// Collections that the object survived by copying, up to 3.
    #[inline(always)]
    pub const fn age(self) -> u8 {
        (self.temperature() & AGE_MASK) >> AGE_SHIFT
    }

    /// Whether one of the collector bits `bits` is set.
    #[inline(always)]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & self::bits(bits) != 0
    }

    /// Whether the object is marked with `mark`, one of `MARK_A` and `MARK_B`, and did not move.
    #[inline(always)]
    pub const fn is_marked(self, mark: u8) -> bool {
        self.0 & bits(MARK_MASK | FORWARDED) == bits(mark)
    }

    /// The same header with the collector's byte replaced.
    #[inline(always)]
    pub const fn with_collector(self, byte: u8) -> Header {
        Header(self.0 & !bits(0xff) | bits(byte))
    }

    /// The same header with collector bits added.
    #[inline(always)]
    pub const fn with(self, bits: u8) -> Header {
        Header(self.0 | self::bits(bits))
    }

    /// The header of a live object that stays where it is. Its next store is logged again.
    #[inline(always)]
    pub const fn marked(self, mark: u8) -> Header {
        Header(self.0 & !bits(MARK_MASK | FORWARDING) | bits(mark | UNLOGGED))
    }

    /// The header that the copy of an object gets in its new space. `bits` are its collector bits there.
    #[inline(always)]
    pub const fn survived(self, bits: u8) -> Header {
        let older = if self.age() < 3 {
            1u64 << (TEMPERATURE_SHIFT + AGE_SHIFT)
        } else {
            0
        };
        Header(self.with_collector(bits).0 + older)
    }

    /// The same header of an object, with the written bit clear.
    #[inline(always)]
    pub const fn unwritten(self) -> Header {
        Header(self.0 & !((WRITTEN as u64) << TEMPERATURE_SHIFT))
    }

    /// The same header of an object that was written to.
    #[inline(always)]
    pub const fn written(self) -> Header {
        Header(self.0 | (WRITTEN as u64) << TEMPERATURE_SHIFT)
    }

    /// The header of an object that lives at `to` now.
    #[inline(always)]
    pub const fn forwarded(to: Ref) -> Header {
        Header(to.0 as u64).with(FORWARDED)
    }

    /// This header of an object whose durable copy is at `to`: type and collector bits stay.
    pub const fn became_durable(self, to: Ref) -> Header {
        let low = (to.0 as u64 & ((1 << SITE_BITS) - 1)) << SITE_SHIFT;
        let high = (to.0 as u64 >> SITE_BITS) << TEMPERATURE_SHIFT;
        let kept = self.0 & (((1 << TYPE_BITS) - 1) | bits(0xff));
        Header(kept | low | high).with(FORWARDED | DURABLE)
    }

    /// Where a forwarded object lives.
    #[inline(always)]
    pub const fn forwarded_to(self) -> Ref {
        if self.has(DURABLE) {
            return Ref(self.site() | (self.temperature() as u32) << SITE_BITS);
        }
        Ref(self.0 as u32)
    }
}

/// Collector bits where they are in the word.
#[inline(always)]
const fn bits(byte: u8) -> u64 {
    (byte as u64) << COLLECTOR_SHIFT
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.has(FORWARDED) {
            return write!(f, "forwarded to {:?}", self.forwarded_to());
        }
        let (kind, site) = (self.type_index(), self.site());
        write!(
            f,
            "type {kind} site {site} collector {:#04x} temperature {:#04x}",
            self.collector(),
            self.temperature()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_type_site_and_temperature_and_grows_older_up_to_three() {
        let mut header = Header(new_header(77, 99, HOT | 2));
        for age in [1, 2, 3, 3, 3] {
            header = header.with(FORWARDING).survived(UNLOGGED | MARK_B);
            assert_eq!(
                (header.type_index(), header.site(), header.age()),
                (77, 99, age)
            );
            assert_eq!(header.temperature() & !AGE_MASK, HOT | 2);
            assert_eq!(header.collector(), UNLOGGED | MARK_B);
        }
    }

    #[test]
    fn marks_flip() {
        let header = Header(new_header(1, 2, 0)).with(LARGE);
        let a = header.marked(MARK_A);
        assert!(a.is_marked(MARK_A) && !a.is_marked(MARK_B) && a.has(LARGE) && a.has(UNLOGGED));
        let b = a.marked(MARK_B);
        assert!(b.is_marked(MARK_B) && !b.is_marked(MARK_A));
    }

    #[test]
    fn an_object_that_became_durable_keeps_its_type() {
        let old = Header(new_header(0xabcdef, 99, HOT)).with(MARK_A | UNLOGGED | LARGE);
        for to in [0x8000_0000, 0xfedc_ba98, 0x8012_3456] {
            let header = old.became_durable(Ref(to));
            assert_eq!(header.forwarded_to(), Ref(to));
            assert_eq!(header.type_index(), 0xabcdef);
            assert!(header.has(FORWARDED) && header.has(DURABLE) && header.has(LARGE));
            assert!(!header.is_marked(MARK_A));
        }
    }

    #[test]
    fn a_forwarded_header_says_where() {
        let header = Header::forwarded(Ref(0xffff_fff0));
        assert!(header.has(FORWARDED) && header.has(PERSISTENCE_CHECK));
        assert_eq!(header.forwarded_to(), Ref(0xffff_fff0));
    }
}
