use super::super::coder::{Coder, Expander};
use super::super::ring::{DERIVED, FIRST, NEXT, NO_REGISTER, NONE, SiteAccess, UNKNOWN};
use super::super::ring::{EVENT_RANGE, EVENT_START, EVENT_UNMAP, EVENT_WORK, LINE};
use super::events::PAGE_BYTES;
use super::front::estimate;
use super::*;
use crate::spaces::space_of;
use crate::{FileHeader, TraceReader, TraceWriter};
use proptest::prelude::*;
use std::path::Path;

const READ: u64 = 1 << 48;
const WRITE: u64 = 2 << 48;

fn access(source: u8, leader: u8, offset: i32, kind: u8) -> SiteAccess {
    SiteAccess {
        offset,
        source,
        leader,
        size: 8,
        kind,
    }
}

/// Block 0 has 5 instructions: 1 loads register 0 through register 0, 3 stores a vector; nothing is known of them.
/// Block 5 has 4: 0 leads, 1 is 16 behind it, 2 leads.
fn sites() -> Vec<Site> {
    let site = |number: u32| Site {
        pc: 0x1000 + u64::from(number),
        block: if number < 5 { 0 } else { 5 },
        count: if number < 5 { 5 } else { 4 },
        vector: if number == 3 { 16 } else { 0 },
        base: if number == 1 { 0 } else { NO_REGISTER },
        index: NO_REGISTER,
        loads: if number == 1 { 0 } else { NO_REGISTER },
        non_temporal: 0,
        accesses: [
            match number {
                1 | 3 => access(UNKNOWN, 0, 0, 0),
                5 => access(FIRST, 0, 0, 0),
                6 => access(DERIVED, 0, 16, 1),
                7 => access(NEXT, 1, 0, 2),
                _ => access(NONE, 0, 0, 0),
            },
            SiteAccess::default(),
        ],
    };
    (0..9).map(site).collect()
}

/// The head of a run of block 5, which has two leaders.
const RUN_5: u64 = RUN | 5 | 2 << RUN_COUNT_SHIFT;

fn single(site: u64, rw: u64, shift: u64, addr: u64) -> [u64; 2] {
    [SINGLE | site | shift << 36 | rw, addr]
}

fn expand(chunks: &[&[u64]], compiled: bool) -> Vec<Op> {
    let (mut walker, mut registry, mut out) =
        (Walker::default(), Registry::default(), Expander::default());
    for words in chunks {
        walker.walk(words, &sites(), compiled, &mut registry, &mut out);
    }
    out.ops
}

/// The same through a trace; its bytes.
fn code(chunks: &[&[u64]], compiled: bool) -> Vec<u8> {
    let (mut walker, mut registry, mut coder) =
        (Walker::default(), Registry::default(), Coder::default());
    let mut writer =
        TraceWriter::new(Vec::new(), Path::new("memory"), &FileHeader::default()).unwrap();
    for words in chunks {
        walker.walk(words, &sites(), compiled, &mut registry, &mut coder);
    }
    coder.close();
    registry.templates.encode(1, writer.templates());
    for piece in std::mem::take(&mut coder.done) {
        let mut content = writer.spare();
        content.runs = piece.columns;
        writer
            .push_runs(0, piece.ops, piece.instructions, content)
            .unwrap();
    }
    writer.finish(Default::default()).unwrap().0
}

fn read(bytes: &[u8]) -> Vec<Op> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    std::fs::write(&path, bytes).unwrap();
    let reader = TraceReader::open(&path).unwrap();
    reader
        .thread(0)
        .flat_map(|block| block.unwrap().ops)
        .collect()
}

#[test]
fn a_stack_may_have_lines_of_a_script_behind_its_calls() {
    let of = |words: &[u64]| {
        let (callers, lines) = events::stack(words);
        (callers.to_vec(), lines.to_vec())
    };
    assert_eq!(of(&[1, 2]), (vec![1, 2], vec![]));
    let code = u64::MAX;
    assert_eq!(
        of(&[1, LINE | 7, code, LINE | 9, 3]),
        (vec![1], vec![(code, 7), (3, 9)])
    );
    assert_eq!(of(&[LINE | 7]), (vec![], vec![]), "broken off");
    assert_eq!(of(&[]), (vec![], vec![]));
}

#[test]
fn a_run_has_the_accesses_that_follow_from_its_addresses() {
    let run = [RUN_5, 0x100, 0x900];
    let ops = expand(&[&[run, run].concat()], false);
    let seen: Vec<_> = ops
        .iter()
        .map(|op| (op.kind, op.addr, op.instructions))
        .collect();
    let first = [
        (Kind::Read, 0x100, 1),
        (Kind::Write, 0x110, 1),
        (Kind::Update, 0x900, 1),
    ];
    // the instruction after the last access belongs to the next run
    assert_eq!((&seen[..3], seen[3]), (&first[..], (Kind::Read, 0x100, 2)));
}

#[test]
fn a_run_that_a_fault_broke_off_ends_there_and_the_next_is_whole() {
    let ops = expand(&[&[RUN_5, 0x100, RUN_5, 0x200, 0x900]], false);
    let seen: Vec<_> = ops.iter().map(|op| op.addr).collect();
    assert_eq!(seen, [0x100, 0x110, 0x200, 0x210, 0x900]);
}

/// After enough whole ones that the fast path takes them, in the first process and in another.
#[test]
fn a_run_that_a_fault_broke_off_is_seen_among_many_that_are_whole() {
    for process in [0, 3] {
        let start = [EVENT | EVENT_START | 2 << 8, 0, process];
        let whole = |at: u64| [RUN_5, 0x1000 + at * at, 0x9000 + 8 * at];
        let mut words = start.to_vec();
        words.extend((0..50).flat_map(whole));
        words.extend([RUN_5, 0x77]);
        words.extend((50..100).flat_map(whole));
        let places: Vec<u64> = expand(&[&words], false).iter().map(|op| op.addr).collect();
        let space = space_of(process as u32);
        let wanted = (0..100).flat_map(|at| {
            let [_, first, second] = whole(at);
            let broken = (at == 50).then_some([0x77, 0x87]);
            let all = [first, first + 16, second];
            broken.into_iter().flatten().chain(all)
        });
        // an address that follows from another counts from that, as it is in the process
        let wanted: Vec<u64> = wanted.map(|addr| addr ^ space).collect();
        assert_eq!(places, wanted);
        assert_eq!(read(&code(&[&words], false)), expand(&[&words], false));
    }
}

#[test]
fn instructions_add_up_to_those_of_the_blocks() {
    let run = [
        single(1, READ, 3, 0x100),
        single(3, READ, 3, 0x200),
        single(3, READ, 3, 0x208),
    ]
    .concat();
    let ops = expand(&[&[run.clone(), run.clone(), run].concat()], false);
    assert_eq!(
        ops.iter().map(|op| op.instructions).collect::<Vec<_>>(),
        [2, 2, 3, 2, 3, 2]
    );
}

#[test]
fn pieces_and_loads_with_stores_are_put_together_where_they_are_one() {
    let vectors: Vec<u64> = (0..4)
        .flat_map(|piece| single(3, WRITE, 3, 0x200 + 8 * piece))
        .collect();
    let sizes: Vec<_> = expand(&[&vectors], false)
        .iter()
        .map(|op| (op.addr, op.size))
        .collect();
    assert_eq!(sizes, [(0x200, 16), (0x210, 16)]);
    let update = [single(1, READ, 2, 0x100), single(1, WRITE, 2, 0x100)].concat();
    assert_eq!(
        expand(&[&update], false),
        [Op::new(Kind::Update, 0x100, 4, 2)]
    );
    let apart = [single(1, READ, 3, 0x100), single(1, WRITE, 3, 0x900)].concat();
    assert_eq!(
        expand(&[&apart], false),
        [Op::read(0x100, 8, 2), Op::write(0x900, 8, 0)]
    );
}

#[test]
fn a_load_through_a_loaded_pointer_waits_for_it() {
    let ops = expand(
        &[&[single(1, READ, 3, 0x100), single(1, READ, 3, 0x500)].concat()],
        false,
    );
    assert_eq!(
        ops.iter().map(|op| op.dependent).collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn compiled_code_counts_instructions_by_distance_and_merges_updates() {
    let at = |caller: u64, kind: u64, addr: u64| [kind | 8 << 2 | caller << 18, addr];
    let words = [
        at(1000, 0, 0x100),
        at(1017, 1, 0x100),
        at(1034, 0, 0x200),
        at(9000, 1, 0x300),
    ]
    .concat();
    let seen: Vec<_> = expand(&[&words], true)
        .iter()
        .map(|op| (op.kind, op.addr, op.instructions))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::Update, 0x100, 6),
            (Kind::Read, 0x200, 2),
            (Kind::Write, 0x300, 4)
        ]
    );
}

#[test]
fn unmapped_ranges_of_any_length_become_ops() {
    let bytes = 70_000 * PAGE_BYTES;
    let ops = expand(&[&[EVENT | EVENT_UNMAP | 2 << 8, 0x10_0000, bytes]], false);
    assert_eq!(ops.iter().map(|op| u64::from(op.size)).sum::<u64>(), 70_000);
    assert_eq!(ops[1].addr, 0x10_0000 + 65_535 * PAGE_BYTES);
}

/// Words as a probe could write them, and some that it could not.
fn any_words() -> impl Strategy<Value = Vec<u64>> {
    let addr = || prop_oneof![0x1000u64..0x1100, any::<u64>().prop_map(|addr| addr >> 17)];
    let piece = prop_oneof![
        4 => (addr(), addr(), 0u64..3).prop_map(|(a, b, pending)| vec![RUN_5 | (pending * 60) << 32, a, b]),
        1 => addr().prop_map(|a| vec![RUN_5, a]),
        2 => (prop_oneof![Just(1u64), Just(3)], addr(), 1u64..4).prop_map(|(site, a, rw)| single(site, rw << 48, 3, a).to_vec()),
        1 => (0u64..300).prop_map(|work| vec![EVENT | EVENT_WORK | 1 << 8, work]),
        1 => (addr(), 0u64..2000).prop_map(|(a, bytes)| vec![EVENT | EVENT_RANGE | 3 << 8, a, bytes, 1]),
        1 => any::<u64>().prop_map(|word| vec![word & !(0xff << 8)]),
    ];
    prop::collection::vec(piece, 0..300).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_trace_has_the_ops_that_a_live_program_has(chunks in prop::collection::vec(any_words(), 1..4)) {
        let chunks: Vec<&[u64]> = chunks.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read(&code(&chunks, false)), expand(&chunks, false));
    }

    /// One access after the other, with nothing remembered but the last one's call. A loop comes often enough for the quick way.
    #[test]
    fn compiled_accesses_are_what_an_obvious_reader_says(
        body in prop::collection::vec((0u64..3, 0u64..5, 0u64..3), 0..20),
        iterations in 0u64..40,
        stride in 0u64..3,
    ) {
        let accesses: Vec<(u64, u64, u64)> = (0..iterations)
            .flat_map(|i| body.iter().map(move |&(kind, call, at)| (kind, call, at + i * stride)))
            .collect();
        let words: Vec<u64> = accesses.iter().flat_map(|&(kind, call, at)| [kind | 8 << 2 | (call * 20) << 18, at * 8]).collect();
        let (mut wanted, mut last, mut left) = (Vec::new(), 0, &accesses[..]);
        while let [(kind, call, at), rest @ ..] = left {
            let here = *call as u32 * 20;
            let mut access = (*kind, at * 8, estimate(last, here));
            (last, left) = (here, rest);
            if let (0, Some((1, later, place))) = (kind, rest.first())
                && place == at
                && later >= call
            {
                last = *later as u32 * 20;
                access = (2, at * 8, access.2 + estimate(here, last));
                left = &rest[1..];
            }
            wanted.push(access);
        }
        let ops = expand(&[&words], true);
        let kinds = [Kind::Read, Kind::Write, Kind::Update];
        let seen: Vec<_> = ops.iter().map(|op| (kinds.iter().position(|kind| *kind == op.kind).unwrap() as u64, op.addr, op.instructions)).collect();
        prop_assert_eq!(seen, wanted);
    }

    #[test]
    fn compiled_words_go_the_same_way(accesses in prop::collection::vec((0u64..4, 0u64..8, 0u64..64), 0..400)) {
        let words: Vec<u64> = accesses.iter().flat_map(|&(kind, caller, at)| [kind.min(2) | 8 << 2 | (caller * 20) << 18, at * 8]).collect();
        prop_assert_eq!(read(&code(&[&words], true)), expand(&[&words], true));
    }
}

/// Fuzzing as an ordinary test: thousands of traces with changed bytes, changed behind the checksums too, and cut ones
/// are read or refused.
#[test]
fn thousands_of_damaged_traces_are_read_or_refused() {
    let run = [RUN_5, 0x100, 0x900];
    let words: Vec<u64> = (0..200u64)
        .flat_map(|i| {
            [run[0], run[1] + i * (i % 3), run[2] ^ i << (i % 40)]
                .into_iter()
                .chain(single(1, READ, 3, i))
        })
        .collect();
    let whole = code(&[&words], false);
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let header = crate::format::BLOCK_HEADER_BYTES;
    let content = |at: usize| {
        let block =
            crate::format::BlockHeader::from_bytes(whole[at..at + header].try_into().ok()?).ok()?;
        let stored = whole.get(at + header..at + header + block.stored_bytes as usize)?;
        let raw = lz4_flex::block::decompress(stored, block.raw_bytes as usize).ok()?;
        Some((at, block, raw))
    };
    let blocks: Vec<_> = (0..whole.len() - header).filter_map(content).collect();
    assert!(blocks.len() >= 3, "templates, runs, end");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    for round in 0..6000 {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(random(whole.len()));
        } else if round % 4 == 1 {
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                bytes[at] = random(256) as u8;
            }
        } else {
            // a block's own content, with everything else right
            let (at, block, mut raw) = blocks[random(blocks.len())].clone();
            let end = at + header + block.stored_bytes as usize;
            for _ in 0..1 + random(3) {
                let at = random(raw.len());
                raw[at] = random(256) as u8;
            }
            let stored = lz4_flex::block::compress(&raw);
            let block = crate::format::BlockHeader {
                stored_bytes: stored.len() as u32,
                ..block
            };
            let mut changed = bytes[..at].to_vec();
            changed.extend_from_slice(&block.to_bytes(&stored));
            changed.extend_from_slice(&stored);
            changed.extend_from_slice(&bytes[end..]);
            bytes = changed;
        }
        if let Ok(stream) = crate::TraceStream::new(&bytes[..], Path::new("pipe")) {
            stream.for_each(drop);
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(reader) = TraceReader::open(&path) {
            (0..reader.threads()).for_each(|thread| reader.thread(thread).for_each(drop));
        }
    }
}
