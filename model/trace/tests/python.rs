//! What the plugin reads of an interpreter of Python: from made-up memory, and from memory that makes no sense.

#[path = "../probe/python/mod.rs"]
#[allow(dead_code)]
mod python;

use python::Memory;
use python::code::{CodeObject, LineTable, identity};
use python::frames::{Interpreter, Place};
use python::layout::{Layout, layout};

/// Pieces of memory by their addresses.
#[derive(Default)]
struct Pieces(Vec<(u64, Vec<u8>)>);

impl Memory for Pieces {
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(into.len())?)
        });
        found.is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }
}

impl Pieces {
    /// A structure at an address: words by their offsets.
    fn put(&mut self, at: u64, words: &[(u64, u64)]) {
        let mut bytes = vec![0; 256];
        for &(offset, word) in words {
            let offset = offset as usize;
            bytes[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.0.push((at, bytes));
    }

    fn text(&mut self, l: &Layout, at: u64, text: &str) {
        self.put(
            at,
            &[(16, text.len() as u64), (32, 1 << 2 | 1 << 5 | 1 << 6)],
        );
        let (_, bytes) = self.0.last_mut().unwrap();
        bytes[l.ascii as usize..][..text.len()].copy_from_slice(text.as_bytes());
    }
}

/// Code and lines as CPython 3.11 and 3.13 make them of
///
/// ```text
/// def f(n):                    # line 5
///
///     for i in range(n):
///         try:
///             g(i,
///               n)
///         finally:
///             pass
/// ```
const F_OF_3_11: &str = "8000e50d12903189588c58f000050511f0000505118801f002040911dd0c0d8861d80e0ff103010d11f400010d11f000010d11f006000d11f88844884488448844f00b050511f000050511";
const F_OF_3_13: &str =
    "8000e40d1290318e588801f002040911dc0c0d8861d80e0ff403010d11f106000d11f20b000e16f8f00a000d11fa";

fn bytes(digits: &str) -> Vec<u8> {
    let two = digits.as_bytes().chunks(2);
    two.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn instructions_have_the_lines_that_python_says() {
    let lines = LineTable::of(&bytes(F_OF_3_11), 5);
    for (instruction, line) in [
        (0, 5),
        (1, 7),
        (17, 7),
        (18, 8),
        (19, 9),
        (25, 9),
        (26, 10),
        (28, 9),
        (35, 12),
        (36, 0),
        (42, 7),
        (43, 0),
    ] {
        assert_eq!(lines.line(instruction), line, "{instruction}");
    }
    let lines = LineTable::of(&bytes(F_OF_3_13), 5);
    for (instruction, line) in [
        (0, 5),
        (14, 7),
        (15, 8),
        (21, 9),
        (22, 10),
        (29, 12),
        (30, 7),
        (33, 0),
        (34, 12),
        (37, 0),
    ] {
        assert_eq!(lines.line(instruction), line, "{instruction}");
    }
}

const RUNTIME: u64 = 0x10000;
const THREAD: u64 = 0x7000_0040;

/// A process of CPython 3.11 with two threads, of which one is in a function, which the module has called.
fn process() -> (Interpreter, Pieces) {
    let mut memory = Pieces::default();
    let l = layout(0x030b_02f0, RUNTIME, &mut memory).unwrap();
    memory.put(RUNTIME, &[(l.interpreters, 0x20000)]);
    memory.put(0x20000, &[(l.threads, 0x30000)]);
    memory.put(
        0x30000,
        &[
            (l.next_thread, 0x31000),
            (l.interpreter, 0x20000),
            (l.thread, 1),
        ],
    );
    memory.put(
        0x31000,
        &[
            (l.previous_thread, 0x30000),
            (l.interpreter, 0x20000),
            (l.current, 0x40000),
            (l.thread, THREAD),
        ],
    );
    memory.put(0x40000, &[(l.in_between.unwrap(), 0x41000)]);
    let code = |number: u64| 0x50000 + number * 0x1000;
    let at = |number: u64, instruction: u64| code(number) + l.instructions + 2 * instruction;
    memory.put(
        0x41000,
        &[
            (l.code, code(0)),
            (l.previous, 0x42000),
            (l.instruction, at(0, 26)),
        ],
    );
    memory.put(0x42000, &[(l.code, code(1)), (l.instruction, at(1, 0))]);
    for (number, name) in [(0, "f"), (1, "<module>")] {
        let (name_at, lines_at) = (0x60000 + number * 0x1000, 0x70000);
        memory.put(
            code(number),
            &[
                (l.file, 0x80000),
                (l.name, name_at),
                (l.lines, lines_at),
                (l.first_line, 5),
            ],
        );
        memory.text(&l, name_at, name);
    }
    memory.text(&l, 0x80000, "/home/me/a.py");
    let lines = bytes(F_OF_3_11);
    memory.put(0x70000, &[(16, lines.len() as u64)]);
    memory.0.last_mut().unwrap().1[32..][..lines.len()].copy_from_slice(&lines);
    (
        Interpreter {
            layout: l,
            runtime: RUNTIME,
        },
        memory,
    )
}

#[test]
fn a_thread_is_in_the_lines_that_its_frames_say() {
    let (interpreter, mut memory) = process();
    let mut places = [Place::default(); 8];
    let mut known = 0;
    let count = interpreter.frames(THREAD, &mut known, &mut places, &mut memory);
    assert_eq!((count, known), (2, 0x31000));
    let l = &interpreter.layout;
    let said = places[..count].iter().map(|place| {
        let identity = identity(l, place.code, &mut memory).unwrap();
        let code = CodeObject::read(l, &identity, &mut memory).unwrap();
        let instruction = (place.instruction - place.code - l.instructions) / 2;
        format!(
            "{} {}:{}",
            code.name,
            code.file,
            code.lines.line(instruction as u32)
        )
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["f /home/me/a.py:10", "<module> /home/me/a.py:5"]
    );
    // The other thread runs no function, and a third is none of Python's.
    assert_eq!(interpreter.frames(1, &mut 0, &mut places, &mut memory), 0);
    assert_eq!(interpreter.frames(2, &mut 0, &mut places, &mut memory), 0);
    // A state that is in no list any more is not the thread's, whatever is left there.
    memory.put(
        0x39000,
        &[
            (l.previous_thread, 0x30000),
            (l.thread, THREAD),
            (l.current, 0x666),
        ],
    );
    let mut known = 0x39000;
    assert_eq!(
        interpreter.frames(THREAD, &mut known, &mut places, &mut memory),
        2
    );
    assert_eq!(known, 0x31000);
    assert_eq!(
        interpreter.frames(THREAD, &mut known, &mut places[..1], &mut memory),
        1
    );
}

#[test]
fn newer_versions_say_themselves_where_things_are() {
    // What CPython 3.13.0 begins with: the cookie, the version; the runtime, from the fourth word on, an interpreter, a thread, a
    // frame, a code object.
    let told: [u64; 44] = [
        0x7970677562656478,
        0x30d00f0,
        0,
        283320,
        608,
        632,
        194968,
        7272,
        7264,
        7344,
        7400,
        7656,
        7640,
        7648,
        16,
        7752,
        0,
        7768,
        7760,
        304,
        0,
        8,
        16,
        72,
        152,
        160,
        232,
        32,
        80,
        8,
        0,
        56,
        72,
        70,
        208,
        112,
        120,
        128,
        136,
        68,
        52,
        96,
        104,
        200,
    ];
    let table = |words: &[u64]| {
        let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        all.resize(1024, 0);
        Pieces(vec![(RUNTIME, all)])
    };
    let read = |words: &[u64]| layout(0x030d_00f0, RUNTIME, &mut table(words));
    let l = read(&told).unwrap();
    assert_eq!(
        (l.interpreters, l.next_interpreter, l.threads),
        (632, 7264, 7344)
    );
    assert_eq!((l.current, l.thread, l.in_between), (72, 152, None));
    assert_eq!((l.code, l.previous, l.instruction, l.owner), (0, 8, 56, 70));
    assert_eq!(
        (l.file, l.name, l.first_line, l.lines, l.instructions),
        (112, 128, 68, 136, 200)
    );
    // A later one may have words more in between.
    let thread = told
        .windows(3)
        .position(|three| three == [0, 8, 16])
        .unwrap();
    let mut more = told.to_vec();
    more.splice(thread + 14..thread + 14, [999]);
    more.splice(thread - 1..thread - 1, [999, 998]);
    assert_eq!(read(&more), Some(l));
    let mut free = told;
    free[2] = 1;
    assert_eq!(read(&free), None, "objects begin with other words there");
    assert_eq!(read(&[0; 96]), None);
    assert_eq!(layout(0x030d_00f0, 5, &mut Pieces::default()), None);
    assert_eq!(layout(0x030a_00f0, 5, &mut Pieces::default()), None);
}

/// Memory that has something at each address.
struct Noise(u64);

impl Memory for Noise {
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool {
        for (place, byte) in (at..).zip(into) {
            let mixed = (place ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // small numbers and pointers among the others
            *byte = if mixed >> 60 < 8 {
                0
            } else {
                (mixed >> 32) as u8
            };
        }
        self.0 & 7 != 0 || at & 15 != 0
    }
}

#[test]
fn memory_without_sense_has_an_end() {
    for seed in 0..150 {
        let mut memory = Noise(seed);
        for version in [0x030b_0000, 0x030c_0000, 0x030d_0000, 0x030e_0000] {
            let Some(layout) = layout(version, seed, &mut memory) else {
                continue;
            };
            let interpreter = Interpreter {
                layout,
                runtime: seed,
            };
            let mut places = [Place {
                code: seed,
                instruction: seed,
            }; 4];
            interpreter.frames(0, &mut 77, &mut places, &mut memory);
            for place in places {
                if let Some(identity) = identity(&layout, place.code, &mut memory) {
                    let _ = CodeObject::read(&layout, &identity, &mut memory);
                }
            }
        }
        let mut table = [0; 64];
        memory.read(seed, &mut table);
        LineTable::of(&table, seed as u32).line(seed as u32);
    }
}
