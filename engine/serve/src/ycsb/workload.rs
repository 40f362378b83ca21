//! The core workloads: which operation comes next, and on which record.

use crate::hash::fnv1a;
use std::fmt;
use std::str::FromStr;
use varve_access::random::{Rng, xorshift};
use varve_access::zipf::Zipf;

/// YCSB's skew: how much more popular a number is than the next.
const THETA: f64 = 0.99;
/// Numbers that scrambled ones are drawn from, whatever the number of records.
const SCRAMBLED: u64 = 10_000_000_000;

/// A workload of YCSB. E, which scans, is not among them: a cache has no order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of recently inserted records, 5 % insertions.
    D,
    /// Half reads, half read-modify-writes.
    F,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 5] = [
        Workload::A,
        Workload::B,
        Workload::C,
        Workload::D,
        Workload::F,
    ];

    /// The share of reads. The rest is of one other kind.
    fn reads(self) -> f64 {
        match self {
            Workload::A | Workload::F => 0.5,
            Workload::B | Workload::D => 0.95,
            Workload::C => 1.0,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Workload::A => "A",
            Workload::B => "B",
            Workload::C => "C",
            Workload::D => "D",
            Workload::F => "F",
        })
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(s: &str) -> Result<Workload, String> {
        let found = Workload::ALL
            .into_iter()
            .find(|w| w.to_string().eq_ignore_ascii_case(s));
        found.ok_or_else(|| format!("no workload {s:?}: a, b, c, d or f"))
    }
}

/// The operation on a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Its value is read.
    Read(u64),
    /// Its value is written anew.
    Update(u64),
    /// It is written for the first time.
    Insert(u64),
    /// Its value is read, and written anew.
    ReadModifyWrite(u64),
}

/// How records are chosen.
#[derive(Clone, Debug)]
enum Choice {
    /// The popular ones are spread over this number of records.
    Scrambled(Zipf, u64),
    /// The latest are the popular ones.
    Latest(Zipf),
}

/// Operations without end.
#[derive(Clone, Debug)]
pub struct Operations {
    workload: Workload,
    choice: Choice,
    records: u64,
    rng: Rng,
}

impl Operations {
    /// Operations on `records` records.
    pub fn new(workload: Workload, records: u64, seed: u64) -> Operations {
        let choice = match workload {
            Workload::D => Choice::Latest(Zipf::new(records, THETA)),
            // YCSB counts the record after the last one, and draws again where it comes to that.
            _ => Choice::Scrambled(Zipf::new(SCRAMBLED, THETA), records + 1),
        };
        Operations {
            workload,
            choice,
            records,
            rng: Rng::new(seed, 0),
        }
    }

    /// The next operation.
    pub fn draw(&mut self) -> Operation {
        if self.rng.unit() >= self.workload.reads() {
            return match self.workload {
                Workload::D => {
                    self.records += 1;
                    Operation::Insert(self.records - 1)
                }
                Workload::F => Operation::ReadModifyWrite(self.record()),
                _ => Operation::Update(self.record()),
            };
        }
        Operation::Read(self.record())
    }

    fn record(&mut self) -> u64 {
        match &mut self.choice {
            Choice::Scrambled(zipf, among) => loop {
                let record = fnv(zipf.draw(&mut self.rng)) % *among;
                if record < self.records {
                    break record;
                }
            },
            Choice::Latest(zipf) => {
                // The last one is as popular as the first one is elsewhere.
                let last = self.records - 1;
                zipf.grow(last);
                last - zipf.draw(&mut self.rng)
            }
        }
    }
}

/// YCSB's hash of a number, made positive.
fn fnv(number: u64) -> u64 {
    (fnv1a(&number.to_le_bytes()) as i64).unsigned_abs()
}

/// The key of a record: adjacent records get keys that are far apart.
pub fn key(record: u64, to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(b"user");
    crate::words::put_number(to, fnv(record));
}

/// The value of a record, after `version` writes: letters that are hard to guess and cheap to make.
pub fn value(record: u64, version: u64, bytes: usize, to: &mut Vec<u8>) {
    to.clear();
    let mut state = fnv(record) ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while to.len() < bytes {
        to.extend(xorshift(&mut state).to_le_bytes().map(|b| b' ' + b % 95));
    }
    to.truncate(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_ycsb() {
        // Printed by site.ycsb 0.17.0: CoreWorkload.buildKeyName with its default settings.
        let mut name = Vec::new();
        for (record, expected) in [
            (0, "user6284781860667377211"),
            (1, "user8517097267634966620"),
            (999_999, "user2744965632448235251"),
        ] {
            key(record, &mut name);
            assert_eq!(String::from_utf8_lossy(&name), expected);
        }
    }

    #[test]
    fn operations_come_in_their_shares_on_records_that_are_there() {
        for workload in Workload::ALL {
            let mut operations = Operations::new(workload, 1000, 7);
            let (mut reads, mut there) = (0, 1000);
            for _ in 0..100_000 {
                match operations.draw() {
                    Operation::Read(record) => {
                        reads += 1;
                        assert!(record < there, "{workload}: {record}");
                    }
                    Operation::Update(record) | Operation::ReadModifyWrite(record) => {
                        assert!(record < there && workload != Workload::D);
                    }
                    Operation::Insert(record) => {
                        assert_eq!((record, workload), (there, Workload::D));
                        there += 1;
                    }
                }
            }
            let share = f64::from(reads) / 1e5;
            assert!(
                (share - workload.reads()).abs() < 0.01,
                "{workload}: {share}"
            );
        }
    }

    #[test]
    fn the_latest_records_are_read_most() {
        let mut operations = Operations::new(Workload::D, 10_000, 3);
        let (mut late, mut all, mut last) = (0, 0, 9_999);
        for _ in 0..100_000 {
            match operations.draw() {
                Operation::Read(record) => {
                    all += 1;
                    late += u32::from(last - record < 100);
                }
                Operation::Insert(record) => last = record,
                _ => unreachable!("D reads and inserts"),
            }
        }
        assert!(
            late * 2 > all,
            "{late} of {all} reads are of the last hundred records"
        );
    }
}
