//! Stores into a region in an ordinary file, each committed on its own, or many together; beside the limits of the file system: as many writes of 4
//! KiB, each with its `fdatasync`, in turns with them.
//!
//! ```text
//! cargo run --release -p varve-durable --example commits -- [FOLDER] [COMMITS]
//! ```
//!
//! `every fence` is a file without a journal, which is synced at each fence; `every commit` is one with a journal. A store goes to an object's
//! field, at random; an object is made and becomes the root's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use varve_durable::domain::{Domain, FileSync};
use varve_durable::layout::Addresses;
use varve_durable::*;
use varve_heap::{Config, Mutator, ObjectAlign, Ref, Shape, Shapes};

const ALIGN: ObjectAlign = ObjectAlign::LEAST;
const NODE: u32 = 1;
const TABLE: u32 = 2;
/// Elements of the table that stores go to: 4 MiB.
const ELEMENTS: u64 = 1 << 19;

fn tables() -> Tables {
    let any = Storage::Ref(Target {
        nullable: true,
        to: Heap::Any,
    });
    let named = |name: &str, kind| Type {
        name: name.into(),
        supertype: None,
        kind,
        refused: None,
        named_by: None,
    };
    let field = |name: &str, offset, storage| Field {
        name: name.into(),
        offset,
        storage,
    };
    let fields = vec![field("number", 8, Storage::I64), field("next", 16, any)];
    Tables {
        types: vec![
            named("host", Kind::Opaque),
            named("node", Kind::Struct { size: 24, fields }),
            named("table", Kind::Array(Storage::I64)),
        ],
        ..Tables::default()
    }
}

struct World {
    space: Option<Space>,
    heap: varve_heap::Heap,
    mutator: Mutator,
    table: u64,
    turn: u64,
}

impl World {
    /// With a journal, or synced at each fence.
    fn new(path: &Path, journal: bool) -> World {
        let mut shapes = Shapes::new();
        let all = [
            Shape::host("host"),
            Shape::structure("node", 24, [16]),
            Shape::array("table", 8),
        ];
        for shape in all {
            shapes.add(shape).expect("three shapes");
        }
        let config = Config {
            durable: true,
            max: 64 << 20,
            ..Config::default()
        };
        let mut heap = varve_heap::Heap::new(config, shapes).expect("addresses for a heap");
        let mutator = heap.attach();
        let at = (heap.base_address() + Addresses(ALIGN).file_start()) as *mut u8;
        let open = |medium| {
            // SAFETY: the heap leaves that range to its owner, and outlives the region.
            unsafe { open_in_place(path, medium, at, ALIGN) }?.region(&tables())
        };
        let mut world = World {
            space: Some(open(Medium::File(None)).expect("a new region")),
            heap,
            mutator,
            table: 0,
            turn: 0,
        };
        let table = world
            .heap
            .alloc_array(&mut world.mutator, TABLE, 0, ELEMENTS as u32, &mut vec![])
            .expect("room for a table");
        let table = world.publish("table", table);
        world.table = Space::offset_of(table.offset()) + 16;
        if !journal {
            world.space.take().expect("opened").close().expect("closed");
            let file = || File::options().read(true).write(true).open(path);
            let capacity = Addresses(ALIGN).max_file();
            // SAFETY: as above; the region that was there is closed.
            let image = unsafe { Image::map(file().expect("it is there"), at, capacity, false) };
            let domain = FileSync::new(file().expect("it is there"), None).expect("no thread");
            let domain: Box<dyn Domain> = Box::new(domain);
            let space = Space::open("fences", image.expect("mapped"), domain, Some(&tables()));
            world.space = Some(space.expect("it was closed"));
        }
        world
    }

    fn space(&mut self) -> &mut Space {
        self.space.as_mut().expect("open")
    }

    fn publish(&mut self, name: &str, r: Ref) -> Ref {
        // SAFETY: the heap lives as long, and does nothing meanwhile.
        let volatile = unsafe { Volatile::new(self.heap.base_address() as *mut u8, ALIGN) };
        let space = self.space();
        let placed = space.persist(&volatile, r, &mut Vec::new()).expect("room");
        space.set_root(name, placed).expect("room for a root");
        placed
    }

    /// A store to some element.
    fn store(&mut self) {
        self.turn += 1;
        let element = self.turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (at, turn) = (self.table + 8 * (element % (ELEMENTS - 1)), self.turn);
        self.space()
            .store(at, 0, &turn.to_le_bytes())
            .expect("stored");
    }

    /// A new object that a root stands for.
    fn object(&mut self) {
        let made = self
            .heap
            .alloc_struct(&mut self.mutator, NODE, 0, &mut vec![])
            .expect("room for a node");
        self.publish("node", made);
        if self.space().wants_collection() {
            self.space().collect(&[]);
        }
    }

    /// Eight stores that are over together.
    fn region(&mut self) {
        self.space().begin();
        (0..8).for_each(|_| self.store());
        self.space().end().expect("stored");
    }

    fn commit(&mut self) {
        self.space().commit_now().expect("committed");
    }
}

/// A measurement: its name, the operations of a commit, and one commit.
struct Row {
    name: String,
    operations: u64,
    work: Box<dyn FnMut()>,
    times: Vec<Duration>,
}

fn rows(folder: &Path) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |name: &str, operations, work: Box<dyn FnMut()>| {
        rows.push(Row {
            name: name.into(),
            operations,
            work,
            times: Vec::new(),
        });
    };
    let by_hand = File::create(folder.join("by-hand")).expect("a file");
    let pages = 4096u64;
    for page in 0..pages {
        let written = by_hand.write_all_at(&[1; 4096], 4096 * page);
        written.expect("room for 16 MiB");
    }
    by_hand.sync_all().expect("a medium");
    let mut turn = 0;
    let limit = move || {
        turn += 1;
        let written = by_hand.write_all_at(&[turn as u8; 4096], 4096 * (turn % pages));
        written.expect("written");
        by_hand.sync_data().expect("synced");
    };
    add("limit: pwrite of 4 KiB, fdatasync", 1, Box::new(limit));
    for journal in [false, true] {
        let how = if journal {
            "every commit"
        } else {
            "every fence"
        };
        let world = |name: &str| World::new(&folder.join(name), journal);
        let mut stores = world(&format!("{how} store"));
        let name = format!("{how}: a store");
        add(&name, 1, Box::new(move || stores.store()));
        let mut regions = world(&format!("{how} region"));
        let name = format!("{how}: a failure-atomic region of 8 stores");
        add(&name, 8, Box::new(move || regions.region()));
        let mut objects = world(&format!("{how} object"));
        let name = format!("{how}: an object and its root");
        add(&name, 1, Box::new(move || objects.object()));
    }
    for together in [1, 8, 128] {
        let mut world = World::new(&folder.join(format!("group {together}")), true);
        world.space().set_grouped(true).expect("a journal");
        let work = move || {
            (0..together).for_each(|_| world.store());
            world.commit();
        };
        add(
            &format!("{together} stores a commit"),
            together,
            Box::new(work),
        );
    }
    rows
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let commits: usize = arguments
        .next()
        .map_or(1000, |n| n.parse().expect("commits"));
    let folder = folder.join(format!("varve-commits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut rows = rows(&folder);
    // In turns of twenty: other activity of the machine affects all of them alike.
    for _ in 0..commits.div_ceil(20) {
        for row in &mut rows {
            for _ in 0..20 {
                let begun = Instant::now();
                (row.work)();
                row.times.push(begun.elapsed());
            }
        }
    }
    let mean = |row: &Row| {
        let all: Duration = row.times.iter().sum();
        all.as_secs_f64() / row.times.len() as f64
    };
    let median = |row: &mut Row| {
        row.times.sort_unstable();
        row.times[row.times.len() / 2].as_secs_f64()
    };
    let limit = median(&mut rows[0]);
    println!("| | median | times the limit | mean | stores/s, by the median |");
    println!("|---|--:|--:|--:|--:|");
    for row in &mut rows {
        let median = median(row);
        println!(
            "| {} | {:.0} us | {:.2} | {:.0} us | {:.0} |",
            row.name,
            1e6 * median,
            median / limit,
            1e6 * mean(row),
            row.operations as f64 / median,
        );
    }
    drop(rows);
    let _ = std::fs::remove_dir_all(&folder);
}
