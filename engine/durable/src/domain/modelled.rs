//! A medium on a modelled machine: nothing is written back here, and each operation is reported to the model.

use super::{Domain, Fence};
use crate::layout::CACHE_LINE;
use std::io;

/// The operations of a region on its medium, in order. Addresses are those of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediumStep {
    /// Address and length of bytes that are the medium's from now on.
    Grown(u64, u64),
    /// Address and length of bytes that were stored to.
    Stored(u64, u64),
    /// The cache line at an address is written back.
    WrittenBack(u64),
    /// All bytes written back must be in the medium.
    Fenced(Fence),
}

/// Reports the region's operations. The medium survives the process as its file does, and so not at all if that is a
/// copy.
pub struct Modelled {
    base: u64,
    bytes: u64,
    tell: Box<dyn FnMut(MediumStep) + Send>,
}

impl Modelled {
    /// For a region whose first byte is at `base`.
    pub fn new(base: u64, tell: impl FnMut(MediumStep) + Send + 'static) -> Modelled {
        Modelled {
            base,
            bytes: 0,
            tell: Box::new(tell),
        }
    }
}

impl Domain for Modelled {
    fn name(&self) -> &'static str {
        "model"
    }

    fn grown(&mut self, bytes: u64) {
        if bytes > self.bytes {
            (self.tell)(MediumStep::Grown(
                self.base + self.bytes,
                bytes - self.bytes,
            ));
            self.bytes = bytes;
        }
    }

    fn write_back(&mut self, address: *const u8, bytes: u64) {
        // A region writes back what it has just stored, and stores nothing else: so the stores are known here.
        let at = address.addr() as u64;
        (self.tell)(MediumStep::Stored(at, bytes));
        let first = at - at % CACHE_LINE;
        for line in (first..at + bytes).step_by(CACHE_LINE as usize) {
            (self.tell)(MediumStep::WrittenBack(line));
        }
    }

    fn fence(&mut self, why: Fence) -> io::Result<()> {
        (self.tell)(MediumStep::Fenced(why));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn stores_lines_and_fences_are_told_in_their_order() {
        let (send, told) = channel();
        let mut domain = Modelled::new(1 << 20, move |step| send.send(step).unwrap());
        domain.grown(4096);
        domain.grown(4096);
        domain.grown(8192);
        let at = std::ptr::without_provenance::<u8>((1 << 20) + 60);
        domain.write_back(at, 8);
        domain.fence(Fence::Stored).unwrap();
        drop(domain);
        let base = 1 << 20;
        assert_eq!(
            told.iter().collect::<Vec<_>>(),
            [
                MediumStep::Grown(base, 4096),
                MediumStep::Grown(base + 4096, 4096),
                MediumStep::Stored(base + 60, 8),
                MediumStep::WrittenBack(base),
                MediumStep::WrittenBack(base + 64),
                MediumStep::Fenced(Fence::Stored),
            ]
        );
    }
}
