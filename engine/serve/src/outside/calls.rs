//! The program's side and the tree's, put together.

use super::tree::Tree;
use super::{head, set_head, wire};
use crate::managed::{Managed, key_of};
use crate::store::{Cursor, Meta, Result, StoreError};
use std::io;
use varve_durable::domain::Pool;
use varve_runtime::host::State;
use varve_runtime::{Config, Error as EngineError, Instance, Store as EngineStore, TypedFunc};

/// Most bytes of a file.
const MOST: u64 = 64 << 30;

/// Values that a program's requests are serialized for.
pub struct Outside {
    tree: Tree,
    /// Where serialized keys and values are in the linear memory.
    wire: usize,
    /// Bytes of a value that there is room for.
    capacity: usize,
    reserve: TypedFunc<i32, i32>,
    pack_key: TypedFunc<i32, ()>,
    pack: TypedFunc<i32, i32>,
    unpack: TypedFunc<(), ()>,
    /// A key as the tree has it.
    key: Vec<u8>,
    /// A value in the making.
    scratch: Vec<u8>,
}

/// The tree that the settings say, and the settings for a program that keeps nothing itself: a file is the tree's alone, and there is nothing to
/// check.
///
/// # Errors
/// A file that cannot be used.
pub fn open(config: Config) -> Result<(Config, Tree), EngineError> {
    let (pool, path) = match &config.durable {
        None => (Pool::volatile(config.heap_max), "memory".into()),
        Some(file) => (
            Pool::open(&file.path, file.medium, MOST),
            file.path.display().to_string(),
        ),
    };
    let tree = pool.and_then(Tree::open);
    let tree = tree.map_err(|source| {
        EngineError::Durable(varve_durable::Error::Io {
            path,
            what: "the store's file cannot be used",
            source,
        })
    })?;
    let config = Config {
        durable: None,
        checks: None,
        ..config
    };
    Ok((config, tree))
}

fn failed(e: io::Error) -> StoreError {
    match e.kind() {
        io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Failed(EngineError::Host(e.into())),
    }
}

impl Outside {
    pub(crate) fn new(
        tree: Tree,
        program: &Instance,
        store: &mut EngineStore<State>,
    ) -> Result<Outside, EngineError> {
        let reserve = program.get_typed_func::<i32, i32>(&mut *store, "wire")?;
        let wire = reserve.call(&mut *store, 0)? as u32 as usize;
        Ok(Outside {
            tree,
            wire,
            capacity: 0,
            reserve,
            pack_key: program.get_typed_func(&mut *store, "packKey")?,
            pack: program.get_typed_func(&mut *store, "pack")?,
            unpack: program.get_typed_func(&mut *store, "unpack")?,
            key: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Takes the key out of its serialized form.
    fn take_key(&mut self, memory: &[u8]) {
        let wire = &memory[self.wire..];
        let length = u32::from_le_bytes(std::array::from_fn(|i| wire[wire::KEY_LENGTH + i]));
        key_of(
            &wire[wire::KEY..wire::FLAGS],
            length as usize,
            &mut self.key,
        );
    }

    // Requests that need no value are answered without the program.

    pub(crate) fn find(&self, key: &[u8]) -> Option<(Meta, usize)> {
        self.tree.get(key).map(head)
    }

    pub(crate) fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        let Some(value) = self.tree.get(key) else {
            return Ok(());
        };
        self.scratch.clear();
        self.scratch.extend_from_slice(value);
        set_head(&mut self.scratch, meta);
        self.tree.put(key, &self.scratch).map_err(failed)?;
        Ok(())
    }

    pub(crate) fn clear(&mut self) -> Result<()> {
        self.tree.clear().map_err(failed)
    }

    pub(crate) fn count(&self) -> usize {
        self.tree.count()
    }

    pub(crate) fn flush_at(&self) -> i64 {
        self.tree.note()
    }

    pub(crate) fn set_flush_at(&mut self, at: i64) -> Result<()> {
        self.tree.set_note(at).map_err(failed)
    }

    pub(crate) fn scan(&mut self, cursor: Cursor) {
        self.tree.begin_scan(cursor);
    }

    pub(crate) fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Option<(Meta, usize)> {
        let (found, value) = self.tree.next(cursor)?;
        key.clear();
        key.extend_from_slice(found);
        Some(head(value))
    }
}

impl Managed {
    /// Does something with the tree and the program.
    fn with_outside<T>(
        &mut self,
        work: impl FnOnce(&mut Managed, &mut Outside) -> Result<T>,
    ) -> Result<T> {
        let mut outside = self.outside.take().expect("asked where there is one");
        let done = work(self, &mut outside);
        self.outside = Some(outside);
        done
    }

    pub(crate) fn get_outside(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>> {
        let found = self.with_outside(|managed, o| {
            let length = managed.address(key)?;
            managed.call(o.pack_key, length)?;
            o.take_key(managed.memory.data(&mut managed.store)?);
            let Some(value) = o.tree.get(&o.key) else {
                return Ok(false);
            };
            let bytes = value.len() - wire::HEAD;
            if bytes > o.capacity {
                o.wire = managed.call(o.reserve, bytes as i32)? as u32 as usize;
                o.capacity = bytes;
            }
            let memory = managed.memory.data(&mut managed.store)?;
            memory[o.wire + wire::FLAGS..][..value.len()].copy_from_slice(value);
            managed.call(o.unpack, ())?;
            Ok(true)
        })?;
        match found {
            true => Ok(Some(self.answered()?)),
            false => Ok(None),
        }
    }

    pub(crate) fn put_outside(
        &mut self,
        key: &[u8],
        meta: Meta,
        value: &[u8],
    ) -> Result<Option<usize>> {
        self.with_outside(|managed, o| {
            let length = managed.post(key, meta, value)?;
            o.wire = managed.call(o.pack, length)? as u32 as usize;
            o.capacity = o.capacity.max(value.len());
            let memory = &*managed.memory.data(&mut managed.store)?;
            o.take_key(memory);
            let bytes = &memory[o.wire + wire::FLAGS..][..wire::HEAD + value.len()];
            let before = o.tree.put(&o.key, bytes).map_err(failed)?;
            Ok(before.map(|bytes| bytes - wire::HEAD))
        })
    }

    pub(crate) fn remove_outside(&mut self, key: &[u8]) -> Result<Option<usize>> {
        self.with_outside(|managed, o| {
            let length = managed.address(key)?;
            managed.call(o.pack_key, length)?;
            o.take_key(managed.memory.data(&mut managed.store)?);
            let before = o.tree.remove(&o.key).map_err(failed)?;
            Ok(before.map(|bytes| bytes - wire::HEAD))
        })
    }
}
