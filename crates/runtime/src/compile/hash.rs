//! Maps of the compilers, whose keys are numbers of their own: nobody chooses them so that they collide, and the usual hash would be a
//! twentieth of what baseline code costs.

use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies, and takes the upper half. The factor is 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, 6.4).
#[derive(Clone, Copy, Default)]
pub(crate) struct Multiplied(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Multiplied {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(FACTOR);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn finish(&self) -> u64 {
        // Tables look at both ends of it.
        self.0.rotate_left(26)
    }
}

type Build = BuildHasherDefault<Multiplied>;
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, Build>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, Build>;
