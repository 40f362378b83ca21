//! Effects of the alignment of objects: where they are, how large, and how far from the heap durable ones may be.

// The interpreter of undefined behaviour maps no files.
#![cfg(not(miri))]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use varve_heap::layout::{DURABLE, MARK_A, UNLOGGED, new_header};
use varve_heap::{Config, Header, Heap, Kind, Mutator, ObjectAlign, Ref, Shape, Shapes};

/// A number, two references.
const NODE: u32 = 0;
const BYTES: u32 = 1;
const LEFT: u64 = 16;
const RIGHT: u64 = 20;

fn config(align: ObjectAlign) -> Config {
    Config {
        max: 256 << 20,
        nursery: 1 << 20,
        nursery_max: 1 << 20,
        initial: 4 << 20,
        threads: 1,
        poison: true,
        align,
        ..Config::default()
    }
}

struct World {
    heap: Heap,
    mutator: Mutator,
    roots: Vec<Ref>,
}

impl World {
    fn new(config: Config) -> World {
        let mut shapes = Shapes::new();
        shapes
            .add(Shape::structure("node", 24, [LEFT as u32, RIGHT as u32]))
            .unwrap();
        let mut heap = Heap::new(config, shapes).unwrap();
        // Shapes that come later are those of the same heap.
        heap.shapes_mut().add(Shape::array("bytes", 1)).unwrap();
        let mutator = heap.attach();
        World {
            heap,
            mutator,
            roots: Vec::new(),
        }
    }

    fn node(&mut self, number: u64) -> Ref {
        let node = self
            .heap
            .alloc_struct(&mut self.mutator, NODE, 0, &mut self.roots)
            .unwrap();
        self.heap.write(node, 8, &number.to_ne_bytes());
        node
    }

    fn collect(&mut self, kind: Kind) {
        self.heap.collect(&mut self.mutator, kind, &mut self.roots);
        self.heap.verify(&self.mutator, &mut self.roots).unwrap();
    }
}

#[test]
fn objects_begin_and_end_at_multiples() {
    for align in ObjectAlign::all() {
        let mut world = World::new(config(align));
        for length in 0..600 {
            let node = world.node(u64::from(length));
            world.roots.push(node);
            let (heap, mutator) = (&mut world.heap, &mut world.mutator);
            let bytes = heap.alloc_array(mutator, BYTES, 0, length, &mut world.roots);
            world.roots.push(bytes.unwrap());
        }
        for kind in [Kind::Minor, Kind::Full] {
            let starts = world.roots.iter().map(|&r| world.heap.address(r));
            let ends = world.roots.iter().map(|&r| world.heap.object_size(r));
            for (start, bytes) in starts.zip(ends) {
                assert!(align.is_aligned(start) && align.is_aligned(bytes) && bytes > 0);
            }
            let [node, bytes] = [world.roots[1000], world.roots[1001]];
            assert_eq!(world.heap.object_size(node), align.object_size(24));
            assert_eq!(world.heap.object_size(bytes), align.object_size(12 + 500));
            world.collect(kind);
        }
    }
}

/// Only the durable range grows with the alignment: the collector's tables are as large as ever.
#[test]
fn tables_do_not_grow() {
    let tables = |align| {
        let ranges = World::new(config(align)).heap.ranges();
        let tables = ranges.into_iter().find(|space| space.name == "tables");
        let ranges = tables.unwrap().ranges;
        ranges.iter().map(|&(_, bytes)| bytes).collect::<Vec<_>>()
    };
    let usual = tables(ObjectAlign::default());
    assert!(ObjectAlign::all().all(|align| tables(align) == usual));
}

/// Beside durable objects there is room for 8 GiB at the usual alignment, and for all that a heap can have at others.
#[test]
fn the_heap_has_more_room_beside_a_larger_durable_range() {
    let refused = |align, max| {
        let config = Config {
            max,
            durable: true,
            ..config(align)
        };
        let refused = Heap::new(config, Shapes::new()).err();
        refused.map(|error| error.to_string())
    };
    let usual = ObjectAlign::default();
    assert_eq!(refused(usual, 3 << 30), None);
    let why = refused(usual, 6 << 30).unwrap();
    assert!(why.contains("begin 8 GiB from the heap's base"), "{why}");
    for align in ObjectAlign::all().skip(1) {
        assert_eq!(refused(align, 6 << 30), None);
        let why = refused(align, 20 << 30).unwrap();
        assert!(why.contains("there are addresses for 16 GiB"), "{why}");
    }
}

/// A file without content that is as long as the durable range, mapped where the heap leaves room for it.
struct Durable {
    file: File,
    start: u64,
    base: u64,
    align: ObjectAlign,
}

impl Durable {
    fn new(heap: &Heap) -> Durable {
        let align = heap.align();
        let path =
            std::env::temp_dir().join(format!("varve-heap-align-{}-{align}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let bytes = align.durable_end() - align.durable_start();
        file.set_len(bytes).unwrap();
        let (base, start) = (heap.base_address(), align.durable_start());
        // SAFETY: the heap leaves this range to its owner, which is this test.
        let at = unsafe {
            libc::mmap(
                std::ptr::with_exposed_provenance_mut((base + start) as usize),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Durable {
            file,
            start,
            base,
            align,
        }
    }

    /// A node in the file, whose left reference is to the object given.
    fn node(&self, in_file: u64, number: u64, left: Ref) -> Ref {
        let offset = self.start + in_file;
        let header = Header(new_header(NODE, 0, 0)).with(DURABLE | UNLOGGED | MARK_A);
        let words = [header.0, number, u64::from(left.0)];
        let at = std::ptr::with_exposed_provenance_mut::<[u64; 3]>((self.base + offset) as usize);
        // SAFETY: in the mapped file, where nothing else is.
        unsafe { at.write(words) };
        self.align.reference(offset)
    }

    fn words(&self, node: Ref) -> [u64; 3] {
        let at = self.base + self.align.offset(node);
        // SAFETY: a node in the mapped file.
        unsafe { std::ptr::with_exposed_provenance::<[u64; 3]>(at as usize).read() }
    }
}

/// Objects of the heap refer to durable ones at the beginning, in the middle and at the end of a range of up to 256 GiB. The
/// collector keeps the references as they are, reports which objects are referred to, and touches nothing there.
#[test]
fn durable_objects_may_be_far_away() {
    for align in ObjectAlign::all() {
        let mut world = World::new(Config {
            durable: true,
            ..config(align)
        });
        let durable = Durable::new(&world.heap);
        let last = align.durable_end() - align.durable_start() - align.object_size(24);
        let mut nodes = vec![Ref::NULL];
        let far = |part| align.round_down(last / 3 * part);
        for in_file in [0, align.object_size(24), far(1), far(2), last] {
            let node = durable.node(in_file, in_file, *nodes.last().unwrap());
            assert!(node.is_object() && node.is_durable());
            nodes.push(node);
        }
        let end = align.offset(nodes[5]);
        assert_eq!(end > 16 << 30, align > ObjectAlign::default());
        let before: Vec<_> = nodes[1..].iter().map(|&node| durable.words(node)).collect();

        // A list in the heap, each node of which knows one of them.
        for number in 0..20_000 {
            let node = world.node(number);
            let list = world.roots.first().copied().unwrap_or(Ref::NULL);
            world.heap.write_ref(&mut world.mutator, node, LEFT, list);
            let known = nodes[number as usize % 3 + 3];
            world.heap.write_ref(&mut world.mutator, node, RIGHT, known);
            world.roots = vec![node];
        }
        world.roots.push(nodes[1]);
        world.collect(Kind::Minor);
        world.collect(Kind::Full);
        world.heap.evacuate(&mut world.mutator, &mut world.roots);
        let marks = world
            .heap
            .collect_durable(&mut world.mutator, &mut world.roots);
        let mut found = marks.into_refs();
        found.sort();
        found.dedup();
        assert_eq!(found, [nodes[1], nodes[3], nodes[4], nodes[5]], "{align:?}");

        assert_eq!(world.roots[1], nodes[1]);
        let (mut node, mut number) = (world.roots[0], 20_000);
        while node.is_object() {
            number -= 1;
            let known = nodes[number as usize % 3 + 3];
            assert_eq!(world.heap.read_ref(node, RIGHT), known);
            node = world.heap.read_ref(node, LEFT);
        }
        assert_eq!(number, 0);
        let after: Vec<_> = nodes[1..].iter().map(|&node| durable.words(node)).collect();
        assert_eq!(after, before);
        let held = durable.file.metadata().unwrap().blocks() * 512;
        assert!(held <= 1 << 20, "{held} bytes of the file are in use");
    }
}
