//! The loops of IS over keys and buckets.

use varve_access::{Kind, Op};

use super::Is;
use crate::loops::{LINE, Work};
use varve_access::random::mix;

/// Keys per step.
const STEP: u64 = 256;
/// Bytes of `is.ranks` per step.
const BLOCK: u64 = 4096;
/// Counting a key's bucket: load, shift, increment in memory, loop.
const PER_COUNT: u32 = 5;
/// Placing a key: load, shift, load and bump the pointer, store, loop.
const PER_PLACE: u32 = 7;
/// Ranking a key: load, increment in memory, loop.
const PER_RANK: u32 = 4;
/// Summing a rank: load, add, store, loop.
const PER_SUM: u32 = 4;
/// Adding one thread's count of one bucket to a pointer.
const PER_POINTER: u32 = 3;

impl Is {
    pub(super) fn step_count(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let end = (work.at + STEP).min(work.end);
        let table = thread as u64 * self.buckets;
        for index in work.at..end {
            let bucket = self.key(thread, index) >> self.shift;
            self.counts[(table + bucket) as usize] += 1;
        }
        let size = self.key_array.size;
        let per_line = PER_COUNT * (LINE / size) as u32;
        crate::loops::run(
            out,
            Kind::Read,
            self.key_array.at(work.at),
            (end - work.at) * size,
            per_line,
        );
        work.at = end;
    }

    /// Sums every thread's counts into this thread's pointers; an item is one thread's table.
    pub(super) fn step_point(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let other = work.at;
        let (buckets, size) = (self.buckets, self.counts_array.size);
        let per_line = PER_POINTER * 16;
        crate::loops::run(
            out,
            Kind::Read,
            self.counts_array.at(other * buckets),
            buckets * size,
            per_line,
        );
        work.at += 1;
        if work.at < work.end {
            return;
        }
        let mut before = 0;
        for bucket in 0..buckets {
            for other in 0..self.threads as u64 {
                let slot = (other * buckets + bucket) as usize;
                if other == thread as u64 {
                    self.pointers[slot] = before;
                }
                before += self.counts[slot];
            }
        }
        let own = self.pointers_array.at(thread as u64 * buckets);
        crate::loops::run(out, Kind::Write, own, buckets * size, 16);
    }

    pub(super) fn step_place(&mut self, thread: usize, work: &mut Work, out: &mut Vec<Op>) {
        let end = (work.at + STEP).min(work.end);
        let (table, size) = (thread as u64 * self.buckets, self.key_array.size);
        let mut index = work.at;
        while index < end {
            let line_end = ((index * size / LINE + 1) * LINE / size).min(end);
            let bytes = ((line_end - index) * size) as u16;
            out.push(Op::read(self.key_array.at(index), bytes, 1));
            for index in index..line_end {
                let key = self.key(thread, index);
                let pointer = &mut self.pointers[(table + (key >> self.shift)) as usize];
                out.push(Op::write(
                    self.bucketed_array.at(*pointer),
                    size as u16,
                    PER_PLACE,
                ));
                if let Some(data) = &mut self.data {
                    data.bucketed[*pointer as usize] = key as u32;
                }
                *pointer += 1;
            }
            index = line_end;
        }
        work.at = end;
    }

    /// A bucket: clear its part of the ranks, count its keys, sum. `within` counts blocks of each in turn.
    pub(super) fn step_rank(&mut self, work: &mut Work, out: &mut Vec<Op>) {
        let bucket = work.at;
        let (first, last) = self.bounds(bucket);
        let size = self.rank_array.size;
        let (low, part) = (bucket << self.shift, 1u64 << self.shift);
        let per_block = BLOCK / size;
        let blocks = part.div_ceil(per_block);
        let key_blocks = (last - first).div_ceil(STEP);
        if work.within < blocks {
            let (from, to) = (
                work.within * per_block,
                ((work.within + 1) * per_block).min(part),
            );
            crate::loops::run(
                out,
                Kind::Write,
                self.rank_array.at(low + from),
                (to - from) * size,
                3,
            );
            if let Some(data) = &mut self.data {
                data.ranks[(low + from) as usize..(low + to) as usize].fill(0);
            }
        } else if work.within < blocks + key_blocks {
            let from = first + (work.within - blocks) * STEP;
            let to = (from + STEP).min(last);
            self.rank_keys(low, part, from, to, out);
        } else {
            let block = work.within - blocks - key_blocks;
            let (from, to) = (
                low + block * per_block,
                low + ((block + 1) * per_block).min(part),
            );
            let per_line = PER_SUM * (LINE / size) as u32;
            crate::loops::run(
                out,
                Kind::Update,
                self.rank_array.at(from),
                (to - from) * size,
                per_line,
            );
            if let Some(data) = &mut self.data {
                let mut sum = if from == low {
                    first as u32
                } else {
                    data.ranks[from as usize - 1]
                };
                for rank in &mut data.ranks[from as usize..to as usize] {
                    sum += *rank;
                    *rank = sum;
                }
            }
        }
        work.within += 1;
        if work.within == 2 * blocks + key_blocks {
            (work.at, work.within) = (work.at + 1, 0);
        }
    }

    fn rank_keys(&mut self, low: u64, part: u64, from: u64, to: u64, out: &mut Vec<Op>) {
        let size = self.rank_array.size;
        let mut index = from;
        while index < to {
            let line_end = ((index * size / LINE + 1) * LINE / size).min(to);
            let bytes = ((line_end - index) * size) as u16;
            out.push(Op::read(self.bucketed_array.at(index), bytes, 1));
            for index in index..line_end {
                let key = match &self.data {
                    Some(data) => u64::from(data.bucketed[index as usize]),
                    None => low + (mix(index) & (part - 1)),
                };
                out.push(Op::new(
                    Kind::Update,
                    self.rank_array.at(key),
                    size as u16,
                    PER_RANK,
                ));
                if let Some(data) = &mut self.data {
                    data.ranks[key as usize] += 1;
                }
            }
            index = line_end;
        }
    }
}
