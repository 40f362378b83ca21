//! Room in a pool: the free ranges are known in memory alone, and rebuilt by scanning the records in use.

use std::collections::BTreeMap;
use std::io;
use varve_durable::domain::Pool;

/// Room is given in units of a cache line, so that no two records share one.
pub const UNIT: u64 = 64;
/// The step by which the file grows.
const GROWTH: u64 = 16 << 20;

/// Free room by its bytes.
#[derive(Default)]
pub struct Room {
    free: BTreeMap<u64, Vec<u64>>,
    /// From here on nothing was ever used.
    end: u64,
}

impl Room {
    /// All room but the sorted ranges in use, from `first` on.
    pub fn around(first: u64, mut used: Vec<(u64, u64)>) -> Room {
        used.sort_unstable();
        let mut room = Room {
            end: first,
            ..Room::default()
        };
        for (at, bytes) in used {
            if at > room.end {
                room.give(room.end, at - room.end);
            }
            room.end = at + bytes.next_multiple_of(UNIT);
        }
        room
    }

    /// Room for `bytes` bytes.
    ///
    /// # Errors
    /// If the pool cannot grow.
    pub fn take(&mut self, pool: &mut Pool, bytes: u64) -> io::Result<u64> {
        let bytes = bytes.next_multiple_of(UNIT);
        if let Some((&size, places)) = self.free.range_mut(bytes..).next() {
            let at = places.pop().expect("sizes without places are taken out");
            if places.is_empty() {
                self.free.remove(&size);
            }
            if size > bytes {
                self.give(at + bytes, size - bytes);
            }
            return Ok(at);
        }
        let at = self.end;
        if at + bytes > pool.len() {
            let some = (at + bytes).next_multiple_of(GROWTH);
            // The last bytes before the limit count, too.
            pool.grow(some).or_else(|_| pool.grow(at + bytes))?;
        }
        self.end += bytes;
        Ok(at)
    }

    /// Takes room back.
    pub fn give(&mut self, at: u64, bytes: u64) {
        let bytes = bytes.next_multiple_of(UNIT);
        self.free.entry(bytes).or_default().push(at);
    }
}
