//! How long it takes from opening a region of many objects to its first object.
//!
//! ```text
//! cargo run --release -p varve-durable --example open -- 10000000
//! ```

use std::path::Path;
use std::time::Instant;
use varve_durable::layout::Addresses;
use varve_durable::*;
use varve_heap::{Config, Mutator, ObjectAlign, Ref, Shape, Shapes};

const NODE: u32 = 1;
const ALIGN: ObjectAlign = ObjectAlign::LEAST;

fn tables() -> Tables {
    let node = Storage::Ref(Target {
        nullable: true,
        to: Heap::Type(NODE),
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
    let fields = vec![
        field("number", 8, Storage::I64),
        field("next", 16, node.clone()),
        field("other", 20, node),
    ];
    Tables {
        types: vec![
            named("host", Kind::Opaque),
            named("node", Kind::Struct { size: 24, fields }),
        ],
        ..Tables::default()
    }
}

fn heap() -> (varve_heap::Heap, Mutator) {
    let mut shapes = Shapes::new();
    for shape in [Shape::host("host"), Shape::structure("node", 24, [16, 20])] {
        shapes.add(shape).expect("two shapes");
    }
    let config = Config {
        durable: true,
        max: 256 << 20,
        ..Config::default()
    };
    let mut heap = varve_heap::Heap::new(config, shapes).expect("addresses for a heap");
    let mutator = heap.attach();
    (heap, mutator)
}

fn open(heap: &varve_heap::Heap, path: &Path) -> Result<Space> {
    let at = (heap.base_address() + Addresses(ALIGN).file_start()) as *mut u8;
    // SAFETY: the heap leaves that range to its owner, and outlives the region.
    unsafe { open_in_place(path, Medium::Memory, at, ALIGN) }?.region(&tables())
}

fn fill(path: &Path, objects: u64) -> Result<()> {
    let (mut heap, mut mutator) = heap();
    let mut space = open(&heap, path)?;
    let mut head = Ref::NULL;
    for made in 0..objects {
        let mut roots = vec![head];
        let node = heap
            .alloc_struct(&mut mutator, NODE, 0, &mut roots)
            .expect("room for a chain");
        heap.write(node, 8, &made.to_le_bytes());
        heap.write_ref(&mut mutator, node, 16, roots[0]);
        head = node;
        if made % 10_000 == 9_999 || made + 1 == objects {
            // SAFETY: the heap lives as long, and does nothing meanwhile.
            let volatile = unsafe { Volatile::new(heap.base_address() as *mut u8, ALIGN) };
            head = space.persist(&volatile, head, &mut Vec::new())?;
            space.set_root("list", head)?;
        }
    }
    space.close()
}

fn main() -> Result<()> {
    let objects = std::env::args().nth(1);
    let objects = objects.map_or(Ok(10_000_000), |n| n.parse());
    let objects: u64 = objects.expect("the number of objects");
    let folder = std::env::temp_dir().join(format!("varve-open-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let path = folder.join("open.region");
    fill(&path, objects)?;
    let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
    println!("{objects} objects, {bytes} bytes");
    for (i, how) in ["closed in order", "killed", "killed"].iter().enumerate() {
        let (heap, _mutator) = heap();
        let begun = Instant::now();
        let mut space = open(&heap, &path)?;
        let list = space.root("list").expect("it was kept");
        let object = space.addresses().offset(list);
        let newest = space.image().u64(object + 8);
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(newest, objects - 1);
        println!("first object after {:.1} ms, {how} before", 1e3 * seconds);
        space.store(object, 8, &newest.to_le_bytes())?;
        if i == 2 {
            space.close()?;
        }
    }
    let begun = Instant::now();
    let damages = Inspection::of_file(&path)?.walk.damages.len();
    let seconds = begun.elapsed().as_secs_f64();
    println!("checked as a whole in {seconds:.1} s, {damages} damages");
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
