//! A region in memory and objects that were put together by hand, without a heap: what an interpreter of Rust (Miri) can follow from the copies
//! that `persist` makes to recovery. It reaches what `unsafe` reaches, with few objects.

use varve_durable::domain::CacheLines;
use varve_durable::*;
use varve_heap::layout::{ARRAY_LENGTH, new_header};
use varve_heap::{ObjectAlign, Ref};

const NODE: u32 = 1;
const TABLE: u32 = 2;
const ROOM: u64 = 512 << 10;

fn tables() -> Tables {
    let target = |to| Storage::Ref(Target { nullable: true, to });
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
    let fields = vec![
        field("number", 8, Storage::I64),
        field("next", 16, target(Heap::Type(NODE))),
        field("other", 20, target(Heap::Any)),
    ];
    Tables {
        types: vec![
            named("host", Kind::Opaque),
            named("node", Kind::Struct { size: 24, fields }),
            named("table", Kind::Array(target(Heap::Any))),
        ],
        ..Tables::default()
    }
}

/// Memory of objects that do not survive, one after the other.
struct Objects {
    words: Vec<u64>,
    /// Its own address in `words`, of which all accesses are made.
    base: *mut u8,
    end: usize,
}

impl Objects {
    fn new() -> Objects {
        let mut words = vec![0u64; 512];
        let base = words.as_mut_ptr().cast();
        Objects {
            words,
            base,
            end: 8,
        }
    }

    fn heap(&self) -> Volatile {
        // SAFETY: all objects lie in the words, which live as long as this.
        unsafe { Volatile::new(self.base, ObjectAlign::LEAST) }
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= 8 * self.words.len());
        // SAFETY: inside of the words, as was just seen.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at), bytes.len()) };
    }

    fn object(&mut self, ty: u32, bytes: usize) -> (Ref, usize) {
        let at = self.end;
        self.end += bytes.next_multiple_of(8);
        self.set(at, &new_header(ty, 7, 0).to_le_bytes());
        (Ref((at >> 2) as u32), at)
    }

    fn node(&mut self, number: i64, next: Ref, other: Ref) -> Ref {
        let (r, at) = self.object(NODE, 24);
        self.set(at + 8, &number.to_le_bytes());
        self.set(at + 16, &next.0.to_le_bytes());
        self.set(at + 20, &other.0.to_le_bytes());
        r
    }

    fn table(&mut self, elements: &[Ref]) -> Ref {
        let (r, at) = self.object(TABLE, 12 + 4 * elements.len());
        self.set(
            at + ARRAY_LENGTH as usize,
            &(elements.len() as u32).to_le_bytes(),
        );
        for (i, e) in elements.iter().enumerate() {
            self.set(at + 12 + 4 * i, &e.0.to_le_bytes());
        }
        r
    }
}

fn persist(space: &mut Space, heap: &Volatile, r: Ref) -> Ref {
    space.persist(heap, r, &mut Vec::new()).unwrap()
}

fn domain() -> Box<CacheLines> {
    Box::new(CacheLines::new("memory"))
}

fn created() -> Space {
    let image = Image::memory(&[], ROOM);
    Space::create("by hand", image, domain(), tables(), ObjectAlign::LEAST).unwrap()
}

fn opened(bytes: &[u8]) -> Space {
    let image = Image::memory(bytes, ROOM);
    let opened = Space::open("by hand", image, domain(), Some(&tables()));
    opened.ok().unwrap()
}

/// Field of a durable node.
fn at(node: Ref, field: u64) -> u64 {
    Space::offset_of(node.offset()) + field
}

#[test]
fn objects_move_once_and_are_there_after_a_crash() {
    let mut space = created();
    let mut objects = Objects::new();
    // A cycle, an array that refers into it, and a small integer.
    let a = objects.node(1, Ref::NULL, Ref(7));
    let b = objects.node(2, a, Ref::NULL);
    let table = objects.table(&[b, Ref::NULL, a, b]);
    objects.set((a.0 as usize) * 4 + 16, &b.0.to_le_bytes());
    let heap = objects.heap();
    let moved = persist(&mut space, &heap, table);
    space.set_root("table", moved).unwrap();
    assert_eq!(space.stats().moved, 3);
    assert_eq!(persist(&mut space, &heap, table), moved, "it moves once");
    let (a, b) = (heap.resolve(a), heap.resolve(b));
    assert_eq!(space.image().u32(at(a, 16)), b.0);
    assert_eq!(space.image().u32(at(a, 20)), 7);
    assert_eq!(space.image().u32(at(moved, 12 + 8)), a.0);

    // Stores of a region that has ended are there; those of an open one are rolled back.
    space.begin();
    space.store(at(a, 0), 8, &10i64.to_le_bytes()).unwrap();
    space.end().unwrap();
    space.begin();
    space.store(at(a, 0), 8, &99i64.to_le_bytes()).unwrap();
    space
        .store(at(b, 0), 16, &Ref::NULL.0.to_le_bytes())
        .unwrap();
    let crashed = space.image().to_vec();
    let again = opened(&crashed);
    assert_eq!(again.recovered().objects, Some(3));
    assert!(again.recovered().taken_back > 0);
    assert_eq!(again.image().u64(at(a, 8)), 10);
    assert_eq!(again.image().u32(at(b, 16)), a.0);

    space.roll_back_all().unwrap();
    assert_eq!(space.image().u64(at(a, 8)), 10);
    space.close().unwrap();
}

#[test]
fn what_nothing_reaches_is_room_for_others() {
    let mut space = created();
    let mut objects = Objects::new();
    let head = objects.node(0, Ref::NULL, Ref::NULL);
    let head = persist(&mut space, &objects.heap(), head);
    space.set_root("head", head).unwrap();
    for i in 0..20 {
        let node = objects.node(i, Ref::NULL, Ref::NULL);
        let node = persist(&mut space, &objects.heap(), node);
        space.store(at(head, 0), 16, &node.0.to_le_bytes()).unwrap();
    }
    let before = space.used();
    space.collect(&[]);
    assert!(space.used() < before);
    assert_eq!(space.check().objects.len(), 2);
    let mut lines = Vec::new();
    let image = Image::memory(&space.image().to_vec(), ROOM);
    Inspection::of(image, "by hand")
        .unwrap()
        .export(None, &mut lines)
        .unwrap();
    assert!(String::from_utf8(lines).unwrap().contains("\"number\":19"));
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let space = created();
    let whole = space.image().to_vec();
    for bytes in [0, 1, 9, 5000, 200_000] {
        let image = Image::memory(&whole[..bytes], bytes as u64);
        let refused = Space::open("by hand", image, domain(), None).err();
        assert!(refused.is_some(), "{bytes} bytes");
    }
}
