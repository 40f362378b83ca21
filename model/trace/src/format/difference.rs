//! Addresses as differences to addresses before them, in the fewest bytes that hold them: shared by ops and runs.

/// Regions, since there are 3 bits for them.
pub(super) const REGIONS: usize = 8;
/// Addresses that differ only in this many low bits are in one region.
const REGION_BITS: u32 = 20;
/// An odd constant with well-mixed bits (the golden ratio in 64 bits) for multiplicative hashing.
pub(super) const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes of difference by mode. 0: the entry's last address plus its stride. 1-3: a difference to the entry's last
/// address. 4-7: a difference to the region's last address.
pub(super) const BYTES_BY_MODE: [u8; 8] = [0, 1, 2, 4, 1, 2, 4, 8];

#[inline(always)]
pub(super) fn region_of(addr: u64) -> u8 {
    ((addr >> REGION_BITS).wrapping_mul(MIX) >> 61) as u8
}

/// By leading zeros of a number without its sign, as many bytes as hold it with its sign, as 0, 1, 2, 3 for 1, 2, 4, 8.
const CLASSES: [u8; 64] = {
    let mut classes = [0; 64];
    let mut zeros = 0;
    while zeros < 64 {
        let bits = 65 - zeros;
        classes[zeros] = (bits > 8) as u8 + (bits > 16) as u8 + (bits > 32) as u8;
        zeros += 1;
    }
    classes
};

/// The smallest of 1, 2, 4, 8 bytes that hold `value` as a signed number, as 0, 1, 2, 3.
#[inline(always)]
pub(super) fn width_class(value: i64) -> u8 {
    // the lowest bit makes no difference, and numbers that are not 0 have fewer leading zeros than there are bits
    let zeros = ((value ^ (value >> 63)) | 1).leading_zeros();
    CLASSES[zeros as usize % 64]
}

/// Why coded ops cannot be read: the block claims more than it holds, or names a kind that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadOps;
