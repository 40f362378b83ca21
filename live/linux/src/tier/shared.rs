//! Objects that processes share: segments, memfds, mapped files. Each of their pages is one page in all processes, and is
//! moved through one of them.

use super::decide::{OBJECTS, Page};
use super::mapped::SharedObject;
use super::memory::SharedRun;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A page of an object as one of the processes has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Through {
    /// The process's number in this run.
    pub process: u32,
    /// The page's number in its memory.
    pub page: u64,
}

/// An object in this run.
pub(super) struct Shared {
    /// What it is.
    pub what: Rc<SharedObject>,
    /// Its pages of which a node is known, ascending.
    pub pages: Vec<u64>,
    /// How many of these are in fast memory.
    pub fast: u64,
    /// Its pages that are there, and a process that has each.
    there: BTreeMap<u64, Through>,
    /// The processes that have some of it.
    pub processes: BTreeSet<u32>,
    /// Pages of processes begin at their addresses, and not at places of the object: so far is the first that was seen from
    /// one.
    phase: u64,
}

/// Where some of a process's memory is in an object.
#[derive(Clone, Copy)]
struct Place {
    start: u64,
    end: u64,
    object: u32,
    /// Where `start` is in the object, in bytes, with its phase.
    at: u64,
}

/// The objects of a run.
pub(super) struct Objects {
    page_bytes: u64,
    numbers: BTreeMap<Rc<SharedObject>, u32>,
    /// By number.
    all: BTreeMap<u32, Shared>,
    /// By the number of a process: where its memory is in objects, ascending by address.
    places: BTreeMap<u32, Vec<Place>>,
    next: u32,
}

impl Objects {
    /// None yet.
    pub fn new(page_bytes: u64) -> Objects {
        Objects {
            page_bytes,
            numbers: BTreeMap::new(),
            all: BTreeMap::new(),
            places: BTreeMap::new(),
            next: OBJECTS,
        }
    }

    /// Forgets which process has what.
    pub fn begin(&mut self) {
        self.places.clear();
        for object in self.all.values_mut() {
            object.there.clear();
            object.processes.clear();
        }
    }

    /// A process has this.
    pub fn has(&mut self, process: u32, runs: &[SharedRun]) {
        let bytes = self.page_bytes;
        let mut places = Vec::with_capacity(runs.len());
        for run in runs {
            let number = self.number(run);
            let Some(object) = self.all.get_mut(&number) else {
                continue;
            };
            object.processes.insert(process);
            let place = Place {
                start: run.start,
                end: run.end,
                object: number,
                at: run.offset + object.phase,
            };
            for page in run.start / bytes..run.end.div_ceil(bytes) {
                if let Entry::Vacant(vacant) = object.there.entry(place.of(page, bytes)) {
                    vacant.insert(Through { process, page });
                }
            }
            places.push(place);
        }
        if !places.is_empty() {
            self.places.insert(process, places);
        }
    }

    fn number(&mut self, run: &SharedRun) -> u32 {
        if let Some(number) = self.numbers.get(&run.object) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        let object = Shared {
            what: run.object.clone(),
            pages: Vec::new(),
            fast: 0,
            there: BTreeMap::new(),
            processes: BTreeSet::new(),
            phase: run.start.wrapping_sub(run.offset) % self.page_bytes,
        };
        self.numbers.insert(run.object.clone(), number);
        self.all.insert(number, object);
        number
    }

    /// All have told what they have: numbers of objects and their pages now, ascending. Objects that no process has and of which no page
    /// is known are gone after this.
    pub fn told(&mut self) -> Vec<(u32, Vec<u64>)> {
        let numbers = &mut self.numbers;
        self.all.retain(|_, object| {
            let stays = !object.there.is_empty() || !object.pages.is_empty();
            if !stays {
                numbers.remove(&object.what);
            }
            stays
        });
        let pages = |(number, object): (&u32, &Shared)| {
            (*number, object.there.keys().copied().collect::<Vec<u64>>())
        };
        self.all.iter().map(pages).collect()
    }

    /// An object by its number.
    pub fn get(&mut self, number: u32) -> Option<&mut Shared> {
        self.all.get_mut(&number)
    }

    /// All objects, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Shared)> {
        self.all.iter().map(|(number, object)| (*number, object))
    }

    /// A process that has a page of an object.
    pub fn through(&self, number: u32, page: u64) -> Option<Through> {
        self.all.get(&number)?.there.get(&page).copied()
    }

    /// Pages of a process in which objects are, ascending.
    pub fn pages_of(&self, process: u32) -> Vec<u64> {
        let mut pages: Vec<u64> = Vec::new();
        for place in self.places.get(&process).into_iter().flatten() {
            let first = place.start / self.page_bytes;
            let first = pages.last().map_or(first, |last| first.max(last + 1));
            pages.extend(first..place.end.div_ceil(self.page_bytes));
        }
        pages
    }

    /// The page of an object that a page of a process is.
    pub fn page(&self, process: u32, page: u64) -> Option<Page> {
        let bytes = self.page_bytes;
        let places = self.places.get(&process)?;
        let next = places.partition_point(|place| place.end <= page * bytes);
        let place = places
            .get(next)
            .filter(|place| place.start < (page + 1) * bytes)?;
        Some(Page::new(place.object, place.of(page, bytes)))
    }
}

impl Place {
    /// The page of the object that a page of the process begins in.
    fn of(&self, page: u64, bytes: u64) -> u64 {
        let first = (page * bytes).max(self.start);
        (self.at + (first - self.start)) / bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapped::SharedKind;
    use super::*;

    const KIB: u64 = 1024;

    fn object(name: &str) -> Rc<SharedObject> {
        Rc::new(SharedObject {
            kind: SharedKind::Memory,
            name: name.into(),
            file: ("00:01".into(), 7),
        })
    }

    fn run(object: &Rc<SharedObject>, start: u64, pages: u64, offset: u64) -> SharedRun {
        SharedRun {
            object: object.clone(),
            start: start * 4 * KIB,
            end: (start + pages) * 4 * KIB,
            offset: offset * 4 * KIB,
        }
    }

    #[test]
    fn a_page_is_one_in_all_processes_and_at_all_addresses() {
        let (one, two) = (object("one"), object("two"));
        let mut objects = Objects::new(4 * KIB);
        objects.begin();
        objects.has(0, &[run(&one, 100, 4, 0), run(&two, 200, 1, 9)]);
        objects.has(1, &[run(&one, 500, 4, 2)]);
        let told = objects.told();
        let (first, second) = (OBJECTS, OBJECTS + 1);
        assert_eq!(told, [(first, vec![0, 1, 2, 3, 4, 5]), (second, vec![9])]);
        let through = |page| objects.through(first, page).unwrap();
        let (of_0, of_1) = (through(3), through(4));
        assert_eq!((of_0.process, of_0.page), (0, 103), "the first that has it");
        assert_eq!((of_1.process, of_1.page), (1, 502));
        assert_eq!(objects.page(1, 500), Some(Page::new(first, 2)));
        assert_eq!(objects.page(0, 102), Some(Page::new(first, 2)));
        assert_eq!(objects.page(0, 104), None);
        assert_eq!(objects.pages_of(0), [100, 101, 102, 103, 200]);
        // The first has ended: the other one has what is left.
        objects.get(first).unwrap().pages = vec![0, 1, 2, 3, 4, 5];
        objects.begin();
        objects.has(1, &[run(&one, 500, 4, 2)]);
        assert_eq!(objects.told(), [(first, vec![2, 3, 4, 5])]);
        assert_eq!(objects.page(0, 102), None);
    }

    /// Mappings begin anywhere, and larger pages of processes do not begin where such pages of the object would.
    #[test]
    fn large_pages_are_those_of_the_first_process() {
        let one = object("one");
        let mut objects = Objects::new(64 * KIB);
        objects.begin();
        // 3 pages of 4 KiB behind a large one's beginning; the object's own beginning.
        objects.has(0, &[run(&one, 16 * 10 + 3, 64, 0)]);
        objects.has(1, &[run(&one, 16 * 20 + 3, 64, 0)]);
        let [(number, pages)] = &objects.told()[..] else {
            panic!("one object");
        };
        assert_eq!(
            pages.len(),
            5,
            "64 pages, of which the first large one has 13"
        );
        for (at, page) in pages.iter().enumerate() {
            let through = objects.through(*number, *page).unwrap();
            assert_eq!((through.process, through.page), (0, 10 + at as u64));
            let same = objects.page(1, 20 + at as u64);
            assert_eq!(same, Some(Page::new(*number, *page)));
        }
    }
}
