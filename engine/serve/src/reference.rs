//! A store that is a map of the host: the baseline for the managed ones in tests and benchmarks.

use crate::store::{Cursor, Meta, Result, Store};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Values in a map.
#[derive(Debug, Default)]
pub struct Reference {
    map: BTreeMap<Vec<u8>, (Meta, Vec<u8>)>,
    /// The last keys that cursors gave.
    at: [Option<Vec<u8>>; 2],
    flush_at: i64,
}

impl Store for Reference {
    fn get(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>> {
        Ok(self.map.get(key).map(|(meta, value)| (*meta, &value[..])))
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        Ok(self.map.get(key).map(|(meta, value)| (*meta, value.len())))
    }

    fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<Option<usize>> {
        let before = self.map.insert(key.to_vec(), (meta, value.to_vec()));
        Ok(before.map(|(_, value)| value.len()))
    }

    fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        if let Some((kept, _)) = self.map.get_mut(key) {
            *kept = meta;
        }
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<usize>> {
        Ok(self.map.remove(key).map(|(_, value)| value.len()))
    }

    fn clear(&mut self) -> Result<()> {
        self.map.clear();
        Ok(())
    }

    fn count(&mut self) -> Result<usize> {
        Ok(self.map.len())
    }

    fn scan(&mut self, cursor: Cursor) -> Result<()> {
        self.at[cursor as usize] = None;
        Ok(())
    }

    fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Result<Option<(Meta, usize)>> {
        let at = &mut self.at[cursor as usize];
        let from = at.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut after = self.map.range::<Vec<u8>, _>((from, Bound::Unbounded));
        let Some((next, (meta, value))) = after.next() else {
            return Ok(None);
        };
        key.clone_from(next);
        *at = Some(next.clone());
        Ok(Some((*meta, value.len())))
    }

    fn flush_at(&mut self) -> Result<i64> {
        Ok(self.flush_at)
    }

    fn set_flush_at(&mut self, at: i64) -> Result<()> {
        self.flush_at = at;
        Ok(())
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        vec![("store", "reference".into())]
    }
}
