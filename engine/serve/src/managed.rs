//! Stores that are a managed program: `programs/store`, whose exports are called with keys and values in a part of its linear memory.

mod reclaim;

use crate::cache::OVERHEAD;
use crate::outside::{self, Outside};
use crate::store::{Cursor, MOST_KEY, Meta, Result, Store, StoreError, Totals, measure_one_by_one};
use reclaim::{Reclaim, is_heap_full, is_region_full};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use varve_runtime::host::{Console, Input, Output, State, Wasi, teavm};
use varve_runtime::{
    Clock, Config, Engine, Error as EngineError, GcKind, Memory, Module, Sink,
    Store as EngineStore, TypedFunc, WasmResults, WasmTypes,
};

/// The program, built from `programs/store`.
const PROGRAM: &[u8] = include_bytes!("../../../programs/dist/store.wasm");

/// Exit code of the program if the file holds the first of [`Kind::ALL`], and so on; see `Main.java`.
const HOLDS: i32 = 10;

/// Where things are in the mailbox; see `Mailbox.java`.
mod mailbox {
    pub const BUFFER: usize = 0;
    pub const CAPACITY: usize = 4;
    pub const LENGTH: usize = 8;
    pub const FLAGS: usize = 12;
    pub const EXPIRY: usize = 16;
    pub const UNIQUE: usize = 24;
    pub const KEY: usize = 32;
    pub const BYTES: usize = KEY + 256;
}

/// The data structures to choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A functional hash map of PCollections.
    #[default]
    FhMap,
    /// A B+ tree.
    PbTree,
    /// A B+ tree of which only the leaves are durable.
    HbTree,
    /// A B+ tree in native code, which keys and values are serialized for: the baseline for the others.
    Outside,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::FhMap, Kind::PbTree, Kind::HbTree, Kind::Outside];

    /// Its name on the command line, and for the program.
    pub fn name(self) -> &'static str {
        match self {
            Kind::FhMap => "fhmap",
            Kind::PbTree => "pbtree",
            Kind::HbTree => "hbtree",
            Kind::Outside => "outside",
        }
    }
}

/// An engine's settings for a store that is served: its memory stays near the size of its values. Programs that end soon have other ones.
pub fn served(config: Config) -> Config {
    Config {
        nursery_max: config.nursery,
        heap_growth: 1.3,
        heap_initial: 8 << 20,
        ..config
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(s: &str) -> Result<Kind, String> {
        let found = Kind::ALL.into_iter().find(|k| k.name() == s);
        found.ok_or_else(|| format!("no store {s:?}: fhmap, pbtree, hbtree or outside"))
    }
}

/// A program that keeps values.
pub struct Managed {
    kind: Kind,
    pub(crate) store: EngineStore<State>,
    pub(crate) memory: Memory,
    /// Offset of the mailbox in the memory.
    mailbox: usize,
    /// Bytes that the value's buffer has room for.
    capacity: usize,
    reserve: TypedFunc<i32, ()>,
    get: TypedFunc<i32, i32>,
    find: TypedFunc<i32, i32>,
    put: TypedFunc<i32, i32>,
    mark: TypedFunc<i32, i32>,
    remove: TypedFunc<i32, i32>,
    clear: TypedFunc<(), ()>,
    size: TypedFunc<(), i32>,
    scan: TypedFunc<i32, ()>,
    next: TypedFunc<i32, i32>,
    pub(crate) forget: TypedFunc<i32, ()>,
    flush_at: TypedFunc<(), i64>,
    set_flush_at: TypedFunc<i64, ()>,
    measure: TypedFunc<(), ()>,
    relieve: TypedFunc<(), ()>,
    restock: TypedFunc<(), ()>,
    room: Room,
    /// Values are in a region.
    durable: bool,
    pub(crate) reclaim: Reclaim,
    /// The native store, if it has the values in place of the program.
    pub(crate) outside: Option<Box<Outside>>,
}

/// The state of free room in the program's heap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// There may be some.
    Some,
    /// There was none for the last value; the spare room serves reads and removals.
    None,
    /// As `None`, but something was removed since.
    Perhaps,
}

impl Managed {
    /// Starts the program.
    ///
    /// # Errors
    /// The engine's error, such as that there is no memory for the heap.
    pub fn new(kind: Kind, config: Config) -> Result<Managed, EngineError> {
        Managed::with(kind, config, EngineStore::new)
    }

    /// The same, and all accesses of the program are reported to `sink`. Accesses of the host to keys and values are not, nor are those of a store
    /// outside of the program.
    ///
    /// # Errors
    /// As [`Managed::new`].
    pub fn observed(
        kind: Kind,
        config: Config,
        sink: Box<dyn Sink>,
    ) -> Result<Managed, EngineError> {
        Managed::with(kind, config, |engine, state| {
            EngineStore::observed(engine, state, sink)
        })
    }

    fn with(
        kind: Kind,
        config: Config,
        open: impl FnOnce(&Engine, State) -> Result<EngineStore<State>, EngineError>,
    ) -> Result<Managed, EngineError> {
        let (config, tree) = match kind {
            Kind::Outside => {
                let (config, tree) = outside::open(config)?;
                (config, Some(tree))
            }
            _ => (config, None),
        };
        let file = config.durable.as_ref().map(|file| file.path.clone());
        // The server evicts values if there is no room; the program must not handle that.
        let config = Config {
            throw_exhaustion: false,
            ..config
        };
        let engine = Engine::new(config);
        let module = Module::new(&engine, PROGRAM)?;
        let state = State {
            console: Console {
                input: Input::new(Box::new(std::io::empty())),
                out: Output::new(Box::new(std::io::stderr())),
                err: Output::new(Box::new(std::io::stderr())),
            },
            wasi: Wasi::new().arg("store").arg(kind.name()),
            clock: Clock::default(),
        };
        let mut store = open(&engine, state)?;
        let started = teavm::start(&mut store, &module, &[kind.name().into()])?;
        match started.code {
            0 => {}
            code => return Err(not_opened(code, kind, file)),
        }
        let program = started.instance;
        let mailbox = program.get_typed_func::<(), i32>(&mut store, "mailbox")?;
        let mailbox = mailbox.call(&mut store, ())? as u32 as usize;
        let mut managed = Managed {
            kind,
            memory: started.memory,
            mailbox,
            capacity: 0,
            reserve: program.get_typed_func(&mut store, "reserve")?,
            get: program.get_typed_func(&mut store, "get")?,
            find: program.get_typed_func(&mut store, "find")?,
            put: program.get_typed_func(&mut store, "put")?,
            mark: program.get_typed_func(&mut store, "mark")?,
            remove: program.get_typed_func(&mut store, "remove")?,
            clear: program.get_typed_func(&mut store, "clear")?,
            size: program.get_typed_func(&mut store, "size")?,
            scan: program.get_typed_func(&mut store, "scan")?,
            next: program.get_typed_func(&mut store, "next")?,
            forget: program.get_typed_func(&mut store, "forget")?,
            flush_at: program.get_typed_func(&mut store, "flushAt")?,
            set_flush_at: program.get_typed_func(&mut store, "setFlushAt")?,
            measure: program.get_typed_func(&mut store, "measure")?,
            relieve: program.get_typed_func(&mut store, "relieve")?,
            restock: program.get_typed_func(&mut store, "restock")?,
            room: Room::Some,
            durable: store.durable_stats().is_some(),
            reclaim: Reclaim::default(),
            outside: None,
            store,
        };
        if let Some(tree) = tree {
            let outside = Outside::new(tree, &program, &mut managed.store)?;
            managed.outside = Some(Box::new(outside));
        }
        managed.capacity = managed.number(mailbox::CAPACITY)? as usize;
        match managed.set_aside() {
            // There is what there is: reads and removals work.
            Err(e) if !is_region_full(&e) => Err(e),
            _ => Ok(managed),
        }
    }

    /// The same, with stores in the medium from the next [`Store::commit`] on, and not from the end of each operation on.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn grouped(mut self) -> Result<Managed, EngineError> {
        self.store.group_durable(true)?;
        Ok(self)
    }

    /// The engine's store, for its statistics of collections and compilers.
    pub fn engine(&self) -> &EngineStore<State> {
        &self.store
    }

    /// Calls the program. An exception is reported by its class.
    pub(crate) fn call<P: WasmTypes, R: WasmResults>(
        &mut self,
        function: TypedFunc<P, R>,
        with: P,
    ) -> Result<R, EngineError> {
        let outcome = function.call(&mut self.store, with);
        let Err(EngineError::Exception { exception, .. }) = &outcome else {
            return outcome;
        };
        let object = exception.field(&mut self.store, 1)?.rooted();
        let class = match object {
            Some(object) => object.type_name(&mut self.store)?,
            None => None,
        };
        let class = class.unwrap_or_else(|| "an exception".into());
        Err(EngineError::Host(format!("it threw {class}").into()))
    }

    /// The mailbox.
    pub(crate) fn mailbox(&mut self) -> Result<&mut [u8], EngineError> {
        let at = self.mailbox;
        Ok(&mut self.memory.data(&mut self.store)?[at..at + mailbox::BYTES])
    }

    fn number(&mut self, at: usize) -> Result<u32, EngineError> {
        Ok(u32_at(self.mailbox()?, at))
    }

    /// Writes a key where the program finds it; its length.
    pub(crate) fn address(&mut self, key: &[u8]) -> Result<i32, EngineError> {
        if key.len() > MOST_KEY {
            return Err(EngineError::Usage(format!(
                "a key of {} bytes: {MOST_KEY} is the most",
                key.len()
            )));
        }
        put_key(self.mailbox()?, key);
        Ok(key.len() as i32)
    }

    /// Makes room for a value of `bytes` bytes, and a little more: whole words are read.
    fn make_room(&mut self, bytes: usize) -> Result<(), EngineError> {
        if bytes > self.capacity {
            self.call(self.reserve, bytes as i32)?;
            self.capacity = self.number(mailbox::CAPACITY)? as usize;
        }
        Ok(())
    }

    /// Writes a key and a value where the program finds them; the key's length.
    pub(crate) fn post(
        &mut self,
        key: &[u8],
        meta: Meta,
        value: &[u8],
    ) -> Result<i32, EngineError> {
        self.make_room(value.len())?;
        let key = self.address(key)?;
        let mailbox = self.mailbox()?;
        put_head(mailbox, meta, value.len());
        let buffer = u32_at(mailbox, mailbox::BUFFER) as usize;
        let memory = self.memory.data(&mut self.store)?;
        memory[buffer..buffer + value.len()].copy_from_slice(value);
        Ok(key)
    }

    /// The value that the program has answered with.
    pub(crate) fn answered(&mut self) -> Result<(Meta, &[u8]), EngineError> {
        let at = self.mailbox;
        let memory = &*self.memory.data(&mut self.store)?;
        let mailbox = &memory[at..at + mailbox::BYTES];
        let (meta, length) = head_at(mailbox);
        let buffer = u32_at(mailbox, mailbox::BUFFER) as usize;
        // The program makes its buffer larger for a value that needs it.
        self.capacity = u32_at(mailbox, mailbox::CAPACITY) as usize;
        Ok((meta, &memory[buffer..buffer + length]))
    }

    pub(crate) fn try_put(
        &mut self,
        key: &[u8],
        meta: Meta,
        value: &[u8],
    ) -> Result<Option<usize>, EngineError> {
        let key = self.post(key, meta, value)?;
        Ok(length(self.call(self.put, key)?))
    }

    fn removed(&mut self) {
        if self.room == Room::None {
            self.room = Room::Perhaps;
        }
    }
}

/// The error if the program does not open its store: the file has another one.
fn not_opened(code: i32, kind: Kind, file: Option<PathBuf>) -> EngineError {
    let held = Kind::ALL.into_iter().find(|k| HOLDS + *k as i32 == code);
    match (held, file) {
        (Some(held), Some(file)) => EngineError::Usage(format!(
            "{}: this file has the values of --store {held}, and none of {kind}: open it with --store {held}, or name another file",
            file.display()
        )),
        _ => EngineError::Exit(code),
    }
}

/// Keys are words of the program in the order of their bytes: the first one highest. The last word ends with zeros.
fn put_key(mailbox: &mut [u8], key: &[u8]) {
    let words = mailbox[mailbox::KEY..].chunks_exact_mut(8);
    for (word, bytes) in words.zip(key.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        word.copy_from_slice(&u64::from_be_bytes(whole).to_le_bytes());
    }
}

fn key_at(mailbox: &[u8], length: usize, key: &mut Vec<u8>) {
    key_of(&mailbox[mailbox::KEY..], length, key);
}

/// The key that such words are.
pub(crate) fn key_of(words: &[u8], length: usize, key: &mut Vec<u8>) {
    key.clear();
    for word in words.chunks_exact(8) {
        key.extend(word.iter().rev());
        if key.len() >= length {
            break;
        }
    }
    key.truncate(length);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn head_at(mailbox: &[u8]) -> (Meta, usize) {
    let expiry = u64_at(mailbox, mailbox::EXPIRY) as i64;
    let unique = u64_at(mailbox, mailbox::UNIQUE);
    let meta = Meta::unpacked(u32_at(mailbox, mailbox::FLAGS), expiry, unique);
    (meta, u32_at(mailbox, mailbox::LENGTH) as usize)
}

fn put_head(mailbox: &mut [u8], meta: Meta, length: usize) {
    let mut put = |at: usize, bytes: &[u8]| mailbox[at..at + bytes.len()].copy_from_slice(bytes);
    put(mailbox::LENGTH, &(length as u32).to_le_bytes());
    put(mailbox::FLAGS, &meta.flags.to_le_bytes());
    put(mailbox::EXPIRY, &meta.packed_expiry().to_le_bytes());
    put(mailbox::UNIQUE, &meta.cas.to_le_bytes());
}

/// A length that the program gave back; none if it is negative.
fn length(n: i32) -> Option<usize> {
    usize::try_from(n).ok()
}

impl Store for Managed {
    fn get(&mut self, key: &[u8]) -> Result<Option<(Meta, &[u8])>> {
        if self.outside.is_some() {
            return self.get_outside(key);
        }
        let key = self.address(key)?;
        if self.call(self.get, key)? == 0 {
            return Ok(None);
        }
        Ok(Some(self.answered()?))
    }

    fn find(&mut self, key: &[u8]) -> Result<Option<(Meta, usize)>> {
        if let Some(outside) = &self.outside {
            return Ok(outside.find(key));
        }
        let key = self.address(key)?;
        if self.call(self.find, key)? == 0 {
            return Ok(None);
        }
        Ok(Some(head_at(self.mailbox()?)))
    }

    fn put(&mut self, key: &[u8], meta: Meta, value: &[u8]) -> Result<Option<usize>> {
        if self.outside.is_some() {
            return self.put_outside(key, meta, value);
        }
        match self.room {
            Room::Some => {}
            Room::None => return Err(StoreError::Full),
            Room::Perhaps => {
                self.room = Room::None;
                self.call(self.restock, ())?;
                self.room = Room::Some;
            }
        }
        let outcome = match self.durable {
            true => self.put_with_room(key, meta, value),
            false => self.try_put(key, meta, value),
        };
        if matches!(&outcome, Err(e) if is_heap_full(e)) {
            self.call(self.relieve, ())?;
            self.room = Room::None;
        }
        Ok(outcome?)
    }

    fn mark(&mut self, key: &[u8], meta: Meta) -> Result<()> {
        if let Some(outside) = &mut self.outside {
            return outside.mark(key, meta);
        }
        let small = |_: &i32| OVERHEAD;
        self.freeing(small, |managed| {
            let key = managed.address(key)?;
            put_head(managed.mailbox()?, meta, 0);
            managed.call(managed.mark, key)
        })?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<usize>> {
        if self.outside.is_some() {
            return self.remove_outside(key);
        }
        let bytes = |removed: &Option<usize>| removed.map_or(0, |n| n as u64 + OVERHEAD);
        let removed = self.freeing(bytes, |managed| {
            let key = managed.address(key)?;
            Ok(length(managed.call(managed.remove, key)?))
        })?;
        self.removed();
        Ok(removed)
    }

    fn clear(&mut self) -> Result<()> {
        if let Some(outside) = &mut self.outside {
            return outside.clear();
        }
        let all = self.store.durable_used();
        self.freeing(|()| all, |managed| managed.call(managed.clear, ()))?;
        self.removed();
        Ok(())
    }

    fn count(&mut self) -> Result<usize> {
        if let Some(outside) = &self.outside {
            return Ok(outside.count());
        }
        Ok(self.call(self.size, ())? as usize)
    }

    fn measure(&mut self) -> Result<Totals> {
        if self.outside.is_some() {
            return measure_one_by_one(self);
        }
        self.call(self.measure, ())?;
        let mailbox = self.mailbox()?;
        Ok(Totals {
            count: u32_at(mailbox, mailbox::LENGTH).into(),
            bytes: u64_at(mailbox, mailbox::EXPIRY),
            last_unique: u64_at(mailbox, mailbox::UNIQUE),
            expiring: u32_at(mailbox, mailbox::FLAGS) != 0,
        })
    }

    fn scan(&mut self, cursor: Cursor) -> Result<()> {
        if let Some(outside) = &mut self.outside {
            outside.scan(cursor);
            return Ok(());
        }
        Ok(self.call(self.scan, cursor as i32)?)
    }

    fn next(&mut self, cursor: Cursor, key: &mut Vec<u8>) -> Result<Option<(Meta, usize)>> {
        if let Some(outside) = &mut self.outside {
            return Ok(outside.next(cursor, key));
        }
        let Some(length) = length(self.call(self.next, cursor as i32)?) else {
            return Ok(None);
        };
        let mailbox = self.mailbox()?;
        key_at(mailbox, length, key);
        Ok(Some(head_at(mailbox)))
    }

    fn flush_at(&mut self) -> Result<i64> {
        match &self.outside {
            Some(outside) => Ok(outside.flush_at()),
            None => Ok(self.call(self.flush_at, ())?),
        }
    }

    fn set_flush_at(&mut self, at: i64) -> Result<()> {
        match &mut self.outside {
            Some(outside) => outside.set_flush_at(at),
            None => self.freeing(
                |()| OVERHEAD,
                |managed| managed.call(managed.set_flush_at, at),
            ),
        }
    }

    fn uncommitted(&self) -> bool {
        self.store.uncommitted()
    }

    fn commit(&mut self) -> Result<()> {
        Ok(self.store.commit_durable()?)
    }

    fn describe(&self) -> Vec<(&'static str, String)> {
        let gc = self.store.gc_stats();
        let pause = gc.any_pause(100.0).unwrap_or_default();
        let pause = pause.max(self.store.longest_durable_pause());
        let durable = self.store.durable_stats();
        vec![
            ("store", self.kind.to_string()),
            ("gc_minor", gc.count(GcKind::Minor).to_string()),
            ("gc_full", gc.count(GcKind::Full).to_string()),
            (
                "gc_durable",
                durable.map_or(0, |(d, _)| d.collections).to_string(),
            ),
            ("gc_longest_pause_us", pause.as_micros().to_string()),
        ]
    }
}
