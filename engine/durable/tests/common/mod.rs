//! A heap with a region beside it, without a language: the fixture for tests of the durable region.
#![allow(dead_code)]

pub mod nested;

use std::sync::{Arc, Mutex};
use varve_durable::domain::{Crash, Domain, Fence, Simulated};
use varve_durable::layout::FILE_START;
use varve_durable::*;
use varve_heap::{Config, Mutator, ObjectAlign, Ref, Shape, Shapes};

pub const NODE: u32 = 1;
pub const TABLE: u32 = 2;
pub const BYTES: u32 = 3;

/// Most bytes of a region in tests.
const ROOM: u64 = 8 << 20;

pub fn tables() -> Tables {
    let any = Storage::Ref(Target {
        nullable: true,
        to: Heap::Any,
    });
    let field = |name: &str, offset, storage| Field {
        name: name.into(),
        offset,
        storage,
    };
    let named = |name: &str, kind| Type {
        name: name.into(),
        supertype: None,
        kind,
        refused: None,
        named_by: None,
    };
    let node = Storage::Ref(Target {
        nullable: true,
        to: Heap::Type(NODE),
    });
    let fields = vec![
        field("a", 8, Storage::I64),
        field("b", 16, Storage::I64),
        field("next", 24, node),
        field("other", 28, any.clone()),
    ];
    Tables {
        types: vec![
            named("host", Kind::Opaque),
            named("node", Kind::Struct { size: 32, fields }),
            named("table", Kind::Array(any)),
            named("bytes", Kind::Array(Storage::I8)),
        ],
        ..Tables::default()
    }
}

fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    let all = [
        Shape::host("host"),
        Shape::structure("node", 32, [24, 28]),
        Shape::ref_array("table"),
        Shape::array("bytes", 1),
    ];
    for shape in all {
        shapes.add(shape).unwrap();
    }
    shapes
}

fn heap() -> varve_heap::Heap {
    let config = Config {
        durable: true,
        max: 16 << 20,
        threads: 1,
        ..Config::default()
    };
    varve_heap::Heap::new(config, shapes()).unwrap()
}

/// Addresses for a region in memory.
fn room(heap: &varve_heap::Heap) -> *mut u8 {
    let at = (heap.base_address() + FILE_START) as *mut u8;
    // SAFETY: the heap leaves that range to us.
    let failed =
        unsafe { libc::mprotect(at.cast(), ROOM as usize, libc::PROT_READ | libc::PROT_WRITE) };
    assert_eq!(failed, 0);
    at
}

/// A program: its heap and its region.
pub struct World {
    pub space: Option<Space>,
    pub heap: varve_heap::Heap,
    mutator: Mutator,
    /// References that the program holds.
    pub held: Vec<Ref>,
}

impl World {
    /// With a region on this domain, which is given the region's address.
    pub fn new(domain: impl FnOnce(*mut u8) -> Box<dyn Domain>) -> World {
        let mut heap = heap();
        let at = room(&heap);
        // SAFETY: the heap leaves that range to us; the world drops the region before the heap.
        let image = unsafe { Image::at(at, ROOM) };
        let space = Space::create("test", image, domain(at), tables(), ObjectAlign::LEAST).unwrap();
        let mutator = heap.attach();
        World {
            space: Some(space),
            heap,
            mutator,
            held: Vec::new(),
        }
    }

    /// With the region of a file.
    pub fn on_file(path: &std::path::Path, medium: Medium) -> Result<World> {
        World::on_opened(path, medium, |opened| opened.region(&tables()))
    }

    /// With the region that comes of a file that was opened.
    pub fn on_opened(
        path: &std::path::Path,
        medium: Medium,
        region: impl FnOnce(Opened) -> Result<Space>,
    ) -> Result<World> {
        let mut heap = heap();
        let at = (heap.base_address() + FILE_START) as *mut u8;
        // SAFETY: the heap leaves that range to us; the world drops the region before the heap.
        let space = region(unsafe { open_in_place(path, medium, at, ObjectAlign::LEAST) }?)?;
        let mutator = heap.attach();
        Ok(World {
            space: Some(space),
            heap,
            mutator,
            held: Vec::new(),
        })
    }

    /// Closes its region.
    pub fn close(&mut self) {
        self.space.take().unwrap().close().unwrap();
    }

    /// With a region's bytes, opened with `checked_first`.
    pub fn again(bytes: &[u8], checked_first: u64) -> Result<World> {
        let domain = |_| Box::new(varve_durable::domain::CacheLines::new("memory")) as Box<_>;
        World::on_bytes(bytes, checked_first, domain)
    }

    /// The same on this domain, which is given the region's address.
    pub fn on_bytes(
        bytes: &[u8],
        checked_first: u64,
        domain: impl FnOnce(*mut u8) -> Box<dyn Domain>,
    ) -> Result<World> {
        let mut heap = heap();
        let at = room(&heap);
        // SAFETY: the heap leaves that range to us; the world drops the region before the heap.
        let mut image = unsafe { Image::at(at, ROOM) };
        image.grow(bytes.len() as u64).unwrap();
        image.write(0, bytes);
        let tables = Some(tables());
        let space =
            Space::open_checked("again", image, domain(at), tables.as_ref(), checked_first)?;
        let mutator = heap.attach();
        Ok(World {
            space: Some(space),
            heap,
            mutator,
            held: Vec::new(),
        })
    }

    pub fn space(&mut self) -> &mut Space {
        self.space.as_mut().unwrap()
    }

    fn volatile(&self) -> Volatile {
        // SAFETY: the heap lives as long as the world, whose methods run one at a time.
        unsafe { Volatile::new(self.heap.base_address() as *mut u8, ObjectAlign::LEAST) }
    }

    /// A volatile node.
    pub fn node(&mut self, a: i64, b: i64, next: Ref, other: Ref) -> Ref {
        self.held.extend([next, other]);
        let r = self
            .heap
            .alloc_struct(&mut self.mutator, NODE, 0, &mut self.held)
            .unwrap();
        let other = self.held.pop().unwrap();
        let next = self.held.pop().unwrap();
        self.heap.write(r, 8, &a.to_le_bytes());
        self.heap.write(r, 16, &b.to_le_bytes());
        self.heap.write_ref(&mut self.mutator, r, 24, next);
        self.heap.write_ref(&mut self.mutator, r, 28, other);
        r
    }

    pub fn table(&mut self, length: u32) -> Ref {
        self.heap
            .alloc_array(&mut self.mutator, TABLE, 0, length, &mut self.held)
            .unwrap()
    }

    /// A volatile array of `length` bytes, all the same.
    pub fn bytes(&mut self, length: u32, byte: u8) -> Ref {
        let r = self
            .heap
            .alloc_array(&mut self.mutator, BYTES, 0, length, &mut self.held)
            .unwrap();
        self.heap.write(r, 12, &vec![byte; length as usize]);
        r
    }

    pub fn persist(&mut self, r: Ref) -> Result<Ref> {
        let volatile = self.volatile();
        let mut classes = Vec::new();
        let placed = self.space().persist(&volatile, r, &mut classes)?;
        assert!(classes.is_empty());
        Ok(placed)
    }

    pub fn publish(&mut self, name: &str, r: Ref) -> Ref {
        let r = self.persist(r).unwrap();
        self.space().set_root(name, r).unwrap();
        r
    }

    /// As compiled code stores a number.
    pub fn store(&mut self, object: Ref, at: u64, value: i64) {
        let object = Space::offset_of(object.offset());
        self.space()
            .store(object, at, &value.to_le_bytes())
            .unwrap();
    }

    /// As compiled code stores a reference.
    pub fn store_ref(&mut self, object: Ref, at: u64, value: Ref) {
        let value = self.persist(value).unwrap();
        let object = Space::offset_of(object.offset());
        let bytes = value.0.to_le_bytes();
        self.space().store(object, at, &bytes).unwrap();
    }

    /// As compiled code loads a number.
    pub fn load(&mut self, object: Ref, at: u64) -> i64 {
        let offset = Space::offset_of(object.offset()) + at;
        self.space().image().u64(offset) as i64
    }

    pub fn load_ref(&mut self, object: Ref, at: u64) -> Ref {
        let offset = Space::offset_of(object.offset()) + at;
        Ref(self.space().image().u32(offset))
    }

    pub fn root(&mut self, name: &str) -> Ref {
        self.space().root(name).unwrap_or(Ref::NULL)
    }

    /// Everything that is reachable now, as text.
    pub fn state(&mut self) -> String {
        let bytes = self.space().image().to_vec();
        let mut shown =
            inspect(&bytes).expect("the region is intact while no thread stores into it");
        if self.space().in_region() {
            shown.push_str("in a region");
        }
        shown
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.space = None;
    }
}

/// The contents of an image once it is opened, as text; or the error.
pub fn inspect(bytes: &[u8]) -> std::result::Result<String, String> {
    let image = Image::memory(bytes, bytes.len() as u64);
    let region = Inspection::of(image, "crashed").map_err(|e| e.to_string())?;
    if let Some(damage) = region.walk.damages.first() {
        return Err(damage.to_string());
    }
    let mut text = Vec::new();
    region.export(None, &mut text).unwrap();
    Ok(String::from_utf8(text).unwrap())
}

/// The contents of all images that a crash could have left, since this was last read.
#[derive(Clone, Default)]
pub struct Seen {
    pub states: Arc<Mutex<std::collections::BTreeMap<std::result::Result<String, String>, String>>>,
    pub images: Arc<std::sync::atomic::AtomicU64>,
}

impl Seen {
    /// A domain that inspects every image a crash could leave: all subsets of the pending lines if they are few, else a sample.
    pub fn domain(&self, at: *mut u8, without: Option<Fence>, mut seed: u64) -> Box<dyn Domain> {
        let seen = self.clone();
        let look = move |crash: &Crash<'_>| {
            let n = crash.pending.len();
            let open = |image: Vec<u8>, which: String| {
                seen.images
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                // Before there is a region there is nothing to lose.
                if image.len() < 8 || image[..8] == [0; 8] {
                    return;
                }
                let state = inspect(&image);
                let mut states = seen.states.lock().unwrap();
                states
                    .entry(state)
                    .or_insert_with(|| format!("at {:?}, lines {which}", crash.at));
            };
            if n <= 6 {
                for subset in 0..1u64 << n {
                    open(
                        crash.image(|i| subset >> i & 1 == 1),
                        format!("{subset:#b} of {n}"),
                    );
                }
                return;
            }
            open(crash.image(|_| true), "all".into());
            for _ in 0..48 {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let mut bits = seed;
                open(
                    crash.image(|_| {
                        bits ^= bits << 13;
                        bits ^= bits >> 7;
                        bits ^= bits << 17;
                        bits >> 40 & 1 == 1
                    }),
                    format!("a sample of {n}"),
                );
            }
        };
        let simulated = Simulated::new(at, look);
        match without {
            None => Box::new(simulated),
            Some(fence) => Box::new(simulated.without(fence)),
        }
    }
}
