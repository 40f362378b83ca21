//! Optimistic concurrency control as Silo does it: the read and write sets of a transaction, and the accesses of its
//! commit.

use varve_access::{Kind, Op};

use crate::node::{LOCK, UNLOCK};

/// Bytes before a row: TID word and pointer to the previous version.
pub const HEADER: u64 = 16;

/// Instructions of reading a record: TID before and after (load, compare, branch: 6), its entry in the read set
/// (4), a call.
const READ: u32 = 15;

/// Instructions per 16 bytes of a row that is copied.
const PER_16: u32 = 2;

/// Instructions of validating one record at commit: load, compare with the read set, look it up in the write set.
const VALIDATE: u32 = 8;

/// The read and write sets of the transaction under way.
#[derive(Clone, Debug, Default)]
pub struct Tx {
    reads: Vec<u64>,
    writes: Vec<(u64, u16)>,
}

impl Tx {
    /// Reads the record at `address`, which an index search led to, with a row of `row` bytes.
    pub fn read(&mut self, address: u64, row: u64, out: &mut Vec<Op>) {
        let bytes = (HEADER + row) as u16;
        out.push(Op::read(address, bytes, READ + PER_16 * u32::from(bytes) / 16).after_load());
        self.reads.push(address);
    }

    /// Will write `bytes` bytes of the record at `address`, read before.
    pub fn write(&mut self, address: u64, bytes: u64) {
        self.writes.push((address, bytes as u16));
    }

    /// Fills a fresh record with a row of `row` bytes; no other thread can see it before the commit.
    pub fn insert(&mut self, address: u64, row: u64, out: &mut Vec<Op>) {
        let bytes = (HEADER + row) as u16;
        out.push(Op::write(address, bytes, PER_16 * u32::from(bytes) / 16));
    }

    /// Locks the write set, validates the read set, writes and unlocks.
    pub fn commit(&mut self, out: &mut Vec<Op>) {
        for &(address, _) in &self.writes {
            out.push(Op::new(Kind::Update, address, 8, LOCK));
        }
        for &address in &self.reads {
            out.push(Op::read(address, 8, VALIDATE));
        }
        for &(address, bytes) in &self.writes {
            let work = PER_16 * u32::from(bytes).div_ceil(16);
            out.push(Op::write(address + HEADER, bytes, work));
            out.push(Op::write(address, 8, UNLOCK));
        }
        self.abort();
    }

    /// Forgets the transaction: nothing was written yet.
    pub fn abort(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_locks_validates_writes_and_unlocks() {
        let (mut tx, mut out) = (Tx::default(), Vec::new());
        tx.read(0x1000, 95, &mut out);
        tx.read(0x2000, 24, &mut out);
        tx.write(0x1000, 8);
        tx.commit(&mut out);
        let kinds: Vec<(Kind, u64, u16)> =
            out.iter().map(|op| (op.kind, op.addr, op.size)).collect();
        let want = [
            (Kind::Read, 0x1000, 111),
            (Kind::Read, 0x2000, 40),
            (Kind::Update, 0x1000, 8),
            (Kind::Read, 0x1000, 8),
            (Kind::Read, 0x2000, 8),
            (Kind::Write, 0x1010, 8),
            (Kind::Write, 0x1000, 8),
        ];
        assert_eq!(kinds, want);
        out.clear();
        tx.commit(&mut out);
        assert!(out.is_empty(), "a new transaction starts empty");
    }
}
