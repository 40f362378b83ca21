use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Four threads, each of which may become the first of a process.
const THREADS: usize = 4;
/// Pages that tests use.
const PAGES: u64 = 6;

#[derive(Clone, Debug)]
enum Step {
    /// A process of a thread forks into the next thread that has none.
    Fork(usize),
    End(usize),
    Read(usize, u64),
    Write(usize, u64),
    MapOwn(usize, u64, u64),
    /// Pages of one of two objects, from a page of it on.
    MapShared(usize, u64, u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (thread, page) = (0..THREADS, 0..PAGES);
    let range = (page.clone(), 1u64..4);
    let step = prop_oneof![
        2 => thread.clone().prop_map(Step::Fork),
        1 => thread.clone().prop_map(Step::End),
        6 => (thread.clone(), page.clone()).prop_map(|(t, p)| Step::Read(t, p)),
        6 => (thread.clone(), page.clone()).prop_map(|(t, p)| Step::Write(t, p)),
        1 => (thread.clone(), range.clone()).prop_map(|(t, (p, n))| Step::MapOwn(t, p, n)),
        1 => (thread, range, 0u64..2).prop_map(|(t, (p, n), object)| Step::MapShared(t, p, n, object)),
    ];
    prop::collection::vec(step, 0..40)
}

/// A frame, and whether writes go to all that have it.
type Frame = (Rc<RefCell<()>>, bool);

/// The obvious way: each process has a table of frames; a fork copies the table, and a write to a frame that others have takes
/// a new one.
struct Reference {
    tables: Vec<Option<HashMap<u64, Frame>>>,
    objects: HashMap<(u64, u64), Frame>,
}

impl Reference {
    fn new() -> Reference {
        let mut tables: Vec<_> = (0..THREADS).map(|_| None).collect();
        tables[0] = Some(Self::fresh());
        Reference {
            tables,
            objects: HashMap::new(),
        }
    }

    fn frame(shared: bool) -> Frame {
        (Rc::new(RefCell::new(())), shared)
    }

    fn fresh() -> HashMap<u64, Frame> {
        (0..PAGES + 4)
            .map(|page| (page, Self::frame(false)))
            .collect()
    }

    /// The frame of a page, as a number that differs between frames that are there.
    fn access(&mut self, thread: usize, page: u64, writes: bool) -> usize {
        let table = self.tables[thread].as_mut().expect("it runs");
        let (frame, shared) = table.get_mut(&page).expect("a page of the tests");
        if writes && !*shared && Rc::strong_count(frame) > 1 {
            *frame = Self::frame(false).0;
        }
        Rc::as_ptr(frame) as usize
    }
}

fn addr(thread: usize, page: u64) -> u64 {
    (page * PAGE) ^ space_of(thread as u32)
}

proptest! {
    /// Pages of two processes are one page of memory here if they are one frame there, and only then.
    #[test]
    fn memory_is_as_with_tables_of_frames(all in steps()) {
        let mut story = Story::new();
        let mut reference = Reference::new();
        let mut next = 1;
        // Pages at whose addresses objects have their memory.
        let mut objects = HashSet::new();
        for step in all {
            let runs = |thread: usize| reference.tables[thread].is_some();
            // What is mapped anew where relatives have something is not told apart: see the module.
            let alone = next == 1 && reference.tables[0].is_some();
            let free = |page: u64, pages: u64| (page..page + pages).all(|page| !objects.contains(&page));
            match step {
                Step::Fork(parent) if runs(parent) && next < THREADS => {
                    reference.tables[next] = reference.tables[parent].clone();
                    story.fork(parent, next);
                    next += 1;
                }
                Step::End(thread) if runs(thread) => {
                    reference.tables[thread] = None;
                    story.tell(thread, Event::Exit { tick: 0 });
                }
                Step::Read(thread, page) if runs(thread) => {
                    story.read(thread, page);
                }
                Step::Write(thread, page) if runs(thread) => {
                    story.write(thread, page);
                    reference.access(thread, page, true);
                }
                Step::MapOwn(0, page, pages) if alone && free(page, pages) => {
                    story.map(0, page, pages);
                    let frames = (page..page + pages).map(|page| (page, Reference::frame(false)));
                    reference.tables[0].as_mut().unwrap().extend(frames);
                }
                Step::MapShared(0, page, pages, object) if alone && free(page, pages) => {
                    objects.extend(page..page + pages);
                    story.share(0, page, pages, object);
                    for at in 0..pages {
                        let frame = reference.objects.entry((object, at));
                        let frame = frame.or_insert_with(|| Reference::frame(true)).clone();
                        reference.tables[0].as_mut().unwrap().insert(page + at, frame);
                    }
                }
                _ => continue,
            }
            let mut frames: HashMap<u64, usize> = HashMap::new();
            let mut memories: HashMap<usize, u64> = HashMap::new();
            for thread in 0..next {
                if reference.tables[thread].is_none() {
                    continue;
                }
                for page in 0..PAGES {
                    let memory = story.0.read(thread, page);
                    let frame = reference.access(thread, page, false);
                    prop_assert_eq!(*frames.entry(memory).or_insert(frame), frame);
                    prop_assert_eq!(*memories.entry(frame).or_insert(memory), memory);
                }
            }
            // What is there is what those who live have, but for objects' pages.
            let lives = reference.tables.iter().any(Option::is_some);
            let owned: HashSet<u64> = (story.0.processes.iter())
                .flat_map(|process| process.present.iter().map(|page| process.own(*page)))
                .collect();
            let had: HashSet<u64> = memories.into_values().collect();
            prop_assert!(!lives || owned.is_subset(&had), "{:?} {:?}", owned, had);
            let shared: HashSet<u64> = story.0.objects.values().copied().collect();
            prop_assert!(had.iter().all(|page| owned.contains(page) != shared.contains(page)));
        }
    }
}

/// Events of a damaged trace.
fn damaged() -> impl Strategy<Value = Event> {
    let number = prop_oneof![0u32..3, any::<u32>()];
    let addr = prop_oneof![0u64..8 * PAGE, any::<u64>()];
    let bytes = prop_oneof![0u64..8 * PAGE, any::<u64>()];
    prop_oneof![
        Just(Event::Start { tick: 0 }),
        Just(Event::Exit { tick: 0 }),
        Just(Event::Replaced),
        number.clone().prop_map(|number| Event::Process { number }),
        number.prop_map(|parent| Event::Forked { parent }),
        (addr.clone(), bytes.clone()).prop_map(|(addr, bytes)| Event::Map { addr, bytes }),
        (addr.clone(), bytes.clone()).prop_map(|(addr, bytes)| Event::Unmap { addr, bytes }),
        (addr.clone(), bytes, addr, any::<bool>()).prop_map(|(addr, bytes, offset, private)| {
            Event::Shared {
                addr,
                bytes,
                object: 1,
                offset,
                private,
            }
        }),
    ]
}

proptest! {
    #[test]
    fn a_damaged_trace_takes_neither_memory_nor_the_program(
        all in prop::collection::vec((0..THREADS, damaged(), 0u64..8), 0..40)
    ) {
        let mut story = Story::new();
        for (thread, event, page) in all {
            story.tell(thread, event);
            story.write(thread, page);
            story.read(thread, page + 1);
        }
        prop_assert!(story.0.processes.len() <= 1 + 40);
    }
}

/// A program of a parent and its children, told thread by thread.
struct Story(Spaces, Vec<Copied>, Vec<Event>);

impl Story {
    fn new() -> Story {
        let mut story = Story(Spaces::new(THREADS, true), Vec::new(), Vec::new());
        story.tell(0, Event::Start { tick: 0 });
        story
    }

    fn tell(&mut self, thread: usize, event: Event) {
        self.0.event(thread, &event, &mut self.1, &mut self.2);
    }

    fn fork(&mut self, parent: usize, child: usize) {
        self.tell(child, Event::Start { tick: 0 });
        self.tell(
            child,
            Event::Process {
                number: child as u32,
            },
        );
        self.tell(
            child,
            Event::Forked {
                parent: parent as u32,
            },
        );
    }

    fn map(&mut self, thread: usize, page: u64, pages: u64) {
        let (addr, bytes) = (addr(thread, page), pages * PAGE);
        self.tell(thread, Event::Map { addr, bytes });
    }

    fn share(&mut self, thread: usize, page: u64, pages: u64, object: u64) {
        self.map(thread, page, pages);
        let event = Event::Shared {
            addr: addr(thread, page),
            bytes: pages * PAGE,
            object,
            offset: 0,
            private: false,
        };
        self.tell(thread, event);
    }

    fn at(&mut self, thread: usize, page: u64, kind: Kind) -> u64 {
        let op = Op::new(kind, addr(self.0.of_thread[thread], page), 8, 1);
        let mut out = Vec::new();
        self.0.ops(thread, &[op], &mut out, &mut self.1);
        out[0].addr
    }

    fn read(&mut self, thread: usize, page: u64) -> u64 {
        self.at(thread, page, Kind::Read)
    }

    fn write(&mut self, thread: usize, page: u64) -> u64 {
        self.at(thread, page, Kind::Write)
    }
}

#[test]
fn what_was_inherited_is_one_page_until_one_of_them_writes_it() {
    let mut story = Story::new();
    story.write(0, 1);
    story.fork(0, 1);
    story.fork(0, 2);
    assert_eq!(story.read(1, 1), addr(0, 1));
    assert_eq!(story.read(2, 1), addr(0, 1));
    // A child has a copy, the other has what the parent has.
    assert_eq!(story.write(1, 1), addr(1, 1));
    assert_eq!(story.1, [(addr(0, 1), addr(1, 1))]);
    assert_eq!(story.read(2, 1), addr(0, 1));
    // The parent writes: what it had stays for the second child.
    assert_eq!(story.write(0, 1), addr(0, 1));
    assert_eq!(story.read(2, 1), addr(2, 1));
    assert_eq!(story.1.len(), 2);
    // From then on each has its own.
    story.write(0, 1);
    story.write(2, 1);
    assert_eq!(story.1.len(), 2);
}

#[test]
fn grandchildren_have_what_their_parent_had_at_the_fork() {
    let mut story = Story::new();
    story.write(0, 1);
    story.fork(0, 1);
    story.fork(1, 2);
    // The parent in the middle has a copy; its child has what came from above.
    story.write(1, 1);
    assert_eq!(story.read(2, 1), addr(0, 1));
    assert_eq!(story.read(1, 1), addr(1, 1));
}

#[test]
fn shared_mappings_are_one_memory_for_all_and_writes_make_no_copy() {
    let mut story = Story::new();
    story.share(0, 1, 2, 1 << 63);
    story.fork(0, 1);
    let memory = story.write(1, 2);
    assert_eq!(story.read(0, 2), memory);
    assert_eq!(story.write(0, 2), memory);
    assert!(story.1.is_empty());
}

#[test]
fn files_are_one_memory_where_they_are_read_and_written_ones_are_copies() {
    let mut story = Story::new();
    story.tell(1, Event::Start { tick: 0 });
    story.tell(1, Event::Process { number: 1 });
    for (thread, offset) in [(0, 0), (1, PAGE)] {
        let (addr, bytes) = (addr(thread, 4), 2 * PAGE);
        story.tell(thread, Event::Map { addr, bytes });
        story.tell(
            thread,
            Event::Shared {
                addr,
                bytes,
                object: 9,
                offset,
                private: true,
            },
        );
    }
    // The second page of the file is the first of the other mapping.
    assert_eq!(story.read(0, 5), addr(0, 5));
    assert_eq!(story.read(1, 4), addr(0, 5));
    assert_eq!(story.write(1, 4), addr(1, 4));
    assert_eq!(story.1, [(addr(0, 5), addr(1, 4))]);
}

#[test]
fn a_process_is_never_its_own_ancestor() {
    let mut story = Story::new();
    story.fork(0, 1);
    story.fork(1, 2);
    story.tell(0, Event::Forked { parent: 2 });
    story.tell(1, Event::Forked { parent: 1 });
    assert_eq!(story.read(2, 1), addr(0, 1));
}

#[test]
fn another_program_has_nothing_of_what_was_there() {
    let mut story = Story::new();
    story.write(0, 1);
    story.fork(0, 1);
    story.tell(1, Event::Replaced);
    assert_eq!(story.read(1, 1), addr(1, 1));
    // Nor has the parent anything to copy.
    story.write(0, 1);
    assert!(story.1.is_empty());
}

#[test]
fn an_access_over_two_pages_goes_where_both_are() {
    let mut story = Story::new();
    story.write(0, 1);
    story.write(0, 2);
    story.fork(0, 1);
    story.write(1, 2);
    let mut out = Vec::new();
    let op = Op::new(Kind::Read, addr(1, 1) + PAGE - 4, 8, 3);
    story.0.ops(1, &[op], &mut out, &mut story.1);
    let places: Vec<_> = out.iter().map(|op| (op.addr, op.size)).collect();
    assert_eq!(places, [(addr(0, 1) + PAGE - 4, 4), (addr(1, 2), 4)]);
    let op = Op::new(Kind::Read, addr(0, 1) + PAGE - 4, 8, 3);
    out.clear();
    story.0.ops(0, &[op], &mut out, &mut story.1);
    assert_eq!(out.len(), 1);
}

#[test]
fn what_a_process_had_goes_with_it() {
    let mut story = Story::new();
    story.write(0, 1);
    story.fork(0, 1);
    for (page, site) in [(4, 0), (5, 0)] {
        let (addr, bytes) = (addr(1, page) + 8, 100);
        story.tell(1, Event::Alloc { site, addr, bytes });
        story.write(1, page);
    }
    story.read(1, 1);
    story.fork(1, 2);
    story.read(2, 5);
    // Its child has the second object, and is the last that has it after the end of the child's own child.
    story.write(2, 4);
    let end = || Event::Exit { tick: 0 };
    story.tell(1, end());
    let first = addr(1, 4);
    let unmap = |addr| Event::Unmap { addr, bytes: PAGE };
    assert_eq!(story.2, [Event::Free { addr: first + 8 }, unmap(first)]);
    assert_eq!(story.write(2, 5), addr(1, 5));
    story.2.clear();
    story.tell(2, end());
    let mut gone = story.2.clone();
    gone.sort_by_key(|event| format!("{event:?}"));
    let second = addr(1, 5);
    assert_eq!(
        gone,
        [
            Event::Free { addr: second + 8 },
            unmap(second),
            unmap(addr(2, 4))
        ]
    );
    // The first one goes with all.
    story.2.clear();
    story.tell(0, end());
    assert!(story.2.is_empty());
}

#[test]
fn another_program_leaves_what_the_first_one_had() {
    let mut story = Story::new();
    story.fork(0, 1);
    story.write(1, 2);
    story.write(1, 3);
    story.tell(1, Event::Replaced);
    let (addr, bytes) = (addr(1, 2), 2 * PAGE);
    assert_eq!(story.2, [Event::Unmap { addr, bytes }]);
    // The thread that asked for it has no end of its own: the other program's only thread is the last.
    story.2.clear();
    story.tell(2, Event::Start { tick: 0 });
    story.tell(2, Event::Process { number: 1 });
    story.tell(2, Event::Replaced);
    story.write(2, 2);
    story.tell(2, Event::Exit { tick: 0 });
    let bytes = PAGE;
    assert_eq!(story.2, [Event::Unmap { addr, bytes }]);
}
