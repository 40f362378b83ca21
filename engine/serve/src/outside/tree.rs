//! A B+ tree whose leaves are in a pool and whose inner nodes are in memory alone: they are made anew from the leaves when the pool is opened. So
//! the trees are that studies of persistent memory compare with (Shull et al., VEE 2019, section 7.2: `kvtree3`).
//!
//! ```text
//! pool   0        64      128     4096           8192
//!        | magic  | head  | note  | log: leaf,   | leaves and records, in units of a cache line
//!        |        |       |       | its bytes    |
//! leaf   0 next   16 hashes of 48 keys   64 places of 48 records, 0: none
//! record 0 bytes of the key (4), of the value (4)   8 key, value
//! ```
//!
//! A record is written back and fenced before a leaf has its place, which is one number: so a value is there as a whole or not at all. Only a leaf
//! that is split changes in several places: its old contents are logged first, and put back when the pool is opened with a log.

use super::records::{Room, UNIT};
use crate::store::Cursor;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use varve_durable::domain::{Fence, Pool};

const MAGIC: u64 = u64::from_le_bytes(*b"VARVEKV1");
const HEAD: u64 = 64;
const NOTE: u64 = 128;
const LOG: u64 = 4096;
const LOGGED: u64 = LOG + UNIT;
const FIRST: u64 = 8192;

const SLOTS: usize = 48;
const HASHES: u64 = 16;
const PLACES: u64 = 64;
const LEAF: u64 = PLACES + 8 * SLOTS as u64;
const RECORD: u64 = 8;

/// See the module.
pub struct Tree {
    pool: Pool,
    room: Room,
    /// Leaves by the least key that they may have.
    index: BTreeMap<Vec<u8>, u64>,
    count: usize,
    /// Where cursors are: a leaf and its next slot.
    scans: [Option<(u64, usize)>; 2],
}

fn hash(key: &[u8]) -> u8 {
    // FNV-1a (public domain, Fowler, Noll, Vo), folded.
    let all = key.iter().fold(0x811c_9dc5u32, |h, &b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    (all ^ all >> 8 ^ all >> 16 ^ all >> 24) as u8
}

impl Tree {
    /// The tree in a pool; an empty one if the pool is new.
    ///
    /// # Errors
    /// If the pool cannot be used, or holds something else.
    pub fn open(mut pool: Pool) -> io::Result<Tree> {
        if pool.len() == 0 {
            return Tree::create(pool);
        }
        if pool.len() < FIRST || pool.u64(0) != MAGIC {
            return Err(foreign());
        }
        let logged = pool.u64(LOG);
        if logged != 0 {
            let held = pool.bytes(LOGGED, LEAF).to_vec();
            pool.write(logged, &held);
            pool.write_back(logged, LEAF);
            pool.fence(Fence::TakenBack)?;
            set(&mut pool, LOG, 0, Fence::Committed)?;
        }
        let mut tree = Tree {
            pool,
            room: Room::default(),
            index: BTreeMap::new(),
            count: 0,
            scans: [None; 2],
        };
        tree.find_all()?;
        Ok(tree)
    }

    fn create(mut pool: Pool) -> io::Result<Tree> {
        pool.grow(FIRST)?;
        let mut tree = Tree {
            room: Room::around(FIRST, Vec::new()),
            pool,
            index: BTreeMap::new(),
            count: 0,
            scans: [None; 2],
        };
        tree.clear()?;
        // With this it is a tree: last.
        set(&mut tree.pool, 0, MAGIC, Fence::Header)?;
        Ok(tree)
    }

    /// Finds leaves and records, and the free room between them.
    fn find_all(&mut self) -> io::Result<()> {
        let mut used = Vec::new();
        let mut leaf = self.pool.u64(HEAD);
        while leaf != 0 {
            if !leaf.is_multiple_of(UNIT) || leaf < FIRST || leaf + LEAF > self.pool.len() {
                return Err(damaged());
            }
            if used.len() as u64 > self.pool.len() / UNIT {
                return Err(damaged()); // A ring of leaves.
            }
            used.push((leaf, LEAF));
            let mut least: Option<Vec<u8>> = None;
            for slot in 0..SLOTS {
                let place = self.place(leaf, slot);
                if place == 0 {
                    continue;
                }
                if place < FIRST || place + RECORD > self.pool.len() {
                    return Err(damaged());
                }
                let (key, value) = self.sizes(place);
                if place + RECORD + key + value > self.pool.len() {
                    return Err(damaged());
                }
                used.push((place, RECORD + key + value));
                self.count += 1;
                let key = self.key(place);
                if least.as_deref().is_none_or(|least| key < least) {
                    least = Some(key.to_vec());
                }
            }
            // A leaf without keys stays in the list and is not found any more.
            if self.index.is_empty() {
                self.index.insert(Vec::new(), leaf);
            } else if let Some(least) = least {
                self.index.insert(least, leaf);
            }
            leaf = self.pool.u64(leaf);
        }
        if self.index.is_empty() {
            return Err(damaged());
        }
        self.room = Room::around(FIRST, used);
        Ok(())
    }

    fn place(&self, leaf: u64, slot: usize) -> u64 {
        self.pool.u64(leaf + PLACES + 8 * slot as u64)
    }

    /// Bytes of a record's key and value.
    fn sizes(&self, record: u64) -> (u64, u64) {
        let both = self.pool.u64(record);
        (both & 0xffff_ffff, both >> 32)
    }

    fn key(&self, record: u64) -> &[u8] {
        let (key, _) = self.sizes(record);
        self.pool.bytes(record + RECORD, key)
    }

    fn value(&self, record: u64) -> &[u8] {
        let (key, value) = self.sizes(record);
        self.pool.bytes(record + RECORD + key, value)
    }

    fn leaf(&self, key: &[u8]) -> u64 {
        let below = (Bound::Unbounded, Bound::Included(key));
        let found = self.index.range::<[u8], _>(below).next_back();
        *found.expect("the first leaf may have any key").1
    }

    /// The slot of a key in its leaf, and its record.
    fn find(&self, leaf: u64, key: &[u8]) -> Option<(usize, u64)> {
        let hash = hash(key);
        let hashes = self.pool.bytes(leaf + HASHES, SLOTS as u64);
        for (slot, _) in hashes.iter().enumerate().filter(|(_, h)| **h == hash) {
            let record = self.place(leaf, slot);
            if record != 0 && self.key(record) == key {
                return Some((slot, record));
            }
        }
        None
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let (_, record) = self.find(self.leaf(key), key)?;
        Some(self.value(record))
    }

    /// Keeps a value; the bytes of the one that was there.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no room, and errors of the medium.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> io::Result<Option<usize>> {
        let (key_bytes, value_bytes) = (key.len() as u64, value.len() as u64);
        let record = self
            .room
            .take(&mut self.pool, RECORD + key_bytes + value_bytes)?;
        let mut leaf = self.leaf(key);
        let found = self.find(leaf, key);
        let empty = |tree: &Tree, leaf| (0..SLOTS).find(|&slot| tree.place(leaf, slot) == 0);
        let slot = match found.map(|(slot, _)| slot).or_else(|| empty(self, leaf)) {
            Some(slot) => slot,
            None => {
                if let Err(e) = self.split(leaf) {
                    self.room.give(record, RECORD + key_bytes + value_bytes);
                    return Err(e);
                }
                leaf = self.leaf(key);
                empty(self, leaf).expect("half of the leaf is empty")
            }
        };
        self.pool.set_u64(record, value_bytes << 32 | key_bytes);
        self.pool.write(record + RECORD, key);
        self.pool.write(record + RECORD + key_bytes, value);
        self.pool
            .write_back(record, RECORD + key_bytes + value_bytes);
        if found.is_none() {
            // Of an empty slot, which no reader uses yet.
            let at = leaf + HASHES + slot as u64;
            self.pool.write(at, &[hash(key)]);
            self.pool.write_back(at, 1);
        }
        self.pool.fence(Fence::Copied)?;
        let at = leaf + PLACES + 8 * slot as u64;
        set(&mut self.pool, at, record, Fence::Stored)?;
        Ok(match found {
            Some((_, before)) => Some(self.forget(before)),
            None => {
                self.count += 1;
                None
            }
        })
    }

    /// Gives back the room of a record that no leaf has any more; the bytes of its value.
    fn forget(&mut self, record: u64) -> usize {
        let (key, value) = self.sizes(record);
        self.room.give(record, RECORD + key + value);
        value as usize
    }

    /// Has a new leaf take the upper half of a full one.
    fn split(&mut self, full: u64) -> io::Result<()> {
        let mut order: Vec<usize> = (0..SLOTS).collect();
        order.sort_by(|&a, &b| {
            let key = |slot| self.key(self.place(full, slot));
            key(a).cmp(key(b))
        });
        let upper = &order[SLOTS / 2..];
        let least = self.key(self.place(full, upper[0])).to_vec();
        let right = self.room.take(&mut self.pool, LEAF)?;
        let mut bytes = vec![0; LEAF as usize];
        bytes[..8].copy_from_slice(self.pool.bytes(full, 8));
        for (i, &slot) in upper.iter().enumerate() {
            bytes[HASHES as usize + i] = self.pool.bytes(full + HASHES + slot as u64, 1)[0];
            let at = PLACES as usize + 8 * i;
            bytes[at..at + 8].copy_from_slice(&self.place(full, slot).to_le_bytes());
        }
        self.pool.write(right, &bytes);
        self.pool.write_back(right, LEAF);
        // The contents of the full one, before it is overwritten.
        let held = self.pool.bytes(full, LEAF).to_vec();
        self.pool.write(LOGGED, &held);
        self.pool.write_back(LOGGED, LEAF);
        self.pool.fence(Fence::Logged)?;
        set(&mut self.pool, LOG, full, Fence::Logged)?;
        self.pool.set_u64(full, right);
        for &slot in upper {
            self.pool.set_u64(full + PLACES + 8 * slot as u64, 0);
        }
        self.pool.write_back(full, LEAF);
        self.pool.fence(Fence::Finished)?;
        set(&mut self.pool, LOG, 0, Fence::Committed)?;
        self.index.insert(least, right);
        Ok(())
    }

    /// Forgets a value; the bytes that it had.
    ///
    /// # Errors
    /// The medium's error.
    pub fn remove(&mut self, key: &[u8]) -> io::Result<Option<usize>> {
        let leaf = self.leaf(key);
        let Some((slot, record)) = self.find(leaf, key) else {
            return Ok(None);
        };
        let at = leaf + PLACES + 8 * slot as u64;
        set(&mut self.pool, at, 0, Fence::Stored)?;
        self.count -= 1;
        Ok(Some(self.forget(record)))
    }

    /// Forgets all.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn clear(&mut self) -> io::Result<()> {
        let leaf = self.room.take(&mut self.pool, LEAF)?;
        self.pool.write(leaf, &[0; LEAF as usize]);
        self.pool.write_back(leaf, LEAF);
        self.pool.fence(Fence::Copied)?;
        set(&mut self.pool, HEAD, leaf, Fence::Stored)?;
        self.room = Room::around(FIRST, vec![(leaf, LEAF)]);
        self.index.clear();
        self.index.insert(Vec::new(), leaf);
        self.count = 0;
        self.scans = [None; 2];
        Ok(())
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A number that is kept besides the values; 0 in the beginning.
    pub fn note(&self) -> i64 {
        self.pool.u64(NOTE) as i64
    }

    /// Keeps that number.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn set_note(&mut self, note: i64) -> io::Result<()> {
        set(&mut self.pool, NOTE, note as u64, Fence::Stored)
    }

    /// Has a cursor begin to go over all values anew.
    pub fn begin_scan(&mut self, cursor: Cursor) {
        self.scans[cursor as usize] = Some((self.pool.u64(HEAD), 0));
    }

    /// A cursor's next key with its value; none after the last one.
    pub fn next(&mut self, cursor: Cursor) -> Option<(&[u8], &[u8])> {
        let (mut leaf, mut slot) = self.scans[cursor as usize].take()?;
        while leaf != 0 {
            while slot < SLOTS {
                let record = self.place(leaf, slot);
                slot += 1;
                if record != 0 {
                    self.scans[cursor as usize] = Some((leaf, slot));
                    return Some((self.key(record), self.value(record)));
                }
            }
            (leaf, slot) = (self.pool.u64(leaf), 0);
        }
        None
    }
}

/// Writes a number, and waits until it is in the medium.
fn set(pool: &mut Pool, at: u64, value: u64, why: Fence) -> io::Result<()> {
    pool.set_u64(at, value);
    pool.write_back(at, 8);
    pool.fence(why)
}

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file holds something else")
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use varve_durable::Medium;

    fn volatile() -> Tree {
        Tree::open(Pool::volatile(64 << 20).unwrap()).unwrap()
    }

    fn all(tree: &mut Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
        tree.begin_scan(Cursor::Sweep);
        let mut all = BTreeMap::new();
        while let Some((key, value)) = tree.next(Cursor::Sweep) {
            all.insert(key.to_vec(), value.to_vec());
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn does_what_a_map_does(steps in prop::collection::vec((0u8..20, 0u32..400, 0usize..200), 1..2000)) {
            let (mut tree, mut map) = (volatile(), BTreeMap::new());
            for (what, number, bytes) in steps {
                let key = number.wrapping_mul(0x9e37_79b9).to_string().into_bytes();
                match what {
                    0 if bytes == 0 => {
                        tree.clear().unwrap();
                        map.clear();
                    }
                    0..5 => prop_assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).map(|v: Vec<u8>| v.len())),
                    _ => {
                        let value = vec![what; bytes];
                        let before = tree.put(&key, &value).unwrap();
                        prop_assert_eq!(before, map.insert(key.clone(), value).map(|v| v.len()));
                    }
                }
                prop_assert_eq!(tree.get(&key), map.get(&key).map(Vec::as_slice));
                prop_assert_eq!(tree.count(), map.len());
            }
            prop_assert_eq!(all(&mut tree), map);
        }
    }

    #[test]
    fn values_are_there_when_the_file_is_opened_again_and_their_room_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        let open = || Tree::open(Pool::open(&path, Medium::Memory, 1 << 30).unwrap()).unwrap();
        let key = |i: u32| format!("key {i}").into_bytes();
        for round in 0..3u8 {
            let mut tree = open();
            assert_eq!(tree.count(), if round == 0 { 0 } else { 5000 });
            for i in 0..5000 {
                let before = tree.put(&key(i), &[round; 1000]).unwrap();
                assert_eq!(before, (round > 0).then_some(1000));
            }
        }
        let tree = open();
        for i in 0..5000 {
            assert_eq!(tree.get(&key(i)), Some(&[2; 1000][..]));
        }
        let bytes = path.metadata().unwrap().len();
        assert!(bytes <= 16 << 20, "{bytes} bytes for 5 MB of values");
    }

    /// A split that is cut off after any of its fences leaves the old contents.
    #[test]
    fn a_leaf_whose_split_was_not_over_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        let pool = || Pool::open(&path, Medium::Memory, 1 << 30).unwrap();
        let key = |i: u32| format!("{i:04}").into_bytes();
        let mut tree = Tree::open(pool()).unwrap();
        for i in 0..SLOTS as u32 {
            tree.put(&key(i), b"value").unwrap();
        }
        let leaf = tree.leaf(&key(0));
        let held = tree.pool.bytes(leaf, LEAF).to_vec();
        tree.put(&key(99), b"value").unwrap();
        assert_eq!(tree.index.len(), 2);
        // As if the log had not been ended.
        assert_eq!(tree.pool.bytes(LOGGED, LEAF), held);
        tree.pool.set_u64(LOG, leaf);
        drop(tree);
        let mut tree = Tree::open(pool()).unwrap();
        assert_eq!(tree.count(), SLOTS, "without the one that wanted the room");
        assert_eq!(all(&mut tree).len(), SLOTS);
        assert_eq!(tree.pool.u64(LOG), 0);
    }

    #[test]
    fn files_with_something_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        for content in [&b"short"[..], &[1; 10_000]] {
            std::fs::write(&path, content).unwrap();
            let refused = Tree::open(Pool::open(&path, Medium::Memory, 1 << 30).unwrap());
            assert!(refused.is_err());
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn no_room_is_an_error_that_changes_nothing() {
        let mut tree = Tree::open(Pool::volatile(1 << 20).unwrap()).unwrap();
        let mut kept = 0u32;
        let full = loop {
            match tree.put(&kept.to_le_bytes(), &[1; 1000]) {
                Ok(_) => kept += 1,
                Err(e) => break e,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::OutOfMemory);
        assert!(kept > 800 && tree.count() == kept as usize);
        assert!(all(&mut tree).values().all(|v| v == &[1; 1000]));
        tree.remove(&7u32.to_le_bytes()).unwrap();
        tree.put(&kept.to_le_bytes(), &[1; 900]).unwrap();
    }
}
