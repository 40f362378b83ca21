//! Traces survive the accidents of files: they are cut, damaged, streamed, and written to full disks.

use proptest::prelude::*;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use varve_access::{Kind, Op, Program};
use varve_trace::{
    BLOCK_OPS, CallSite, End, Event, FileHeader, TraceError, TraceInfo, TraceProgram, TraceReader,
    TraceStream, TraceWriter,
};

/// Ops like a program's: a loop with two streams and some pointers.
fn ops(count: usize) -> Vec<Op> {
    let mut state = 1u64;
    (0..count as u64)
        .map(|i| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match i % 4 {
                0 => Op::read(0x10_0000 + 8 * i, 8, 3),
                1 => Op::write(0x7fff_0000 - 64 * i, 4, 2),
                2 => Op::read(state >> 24, 8, 5).after_load(),
                _ => Op::new(
                    Kind::Update,
                    0x20_0000 + (state >> 50),
                    1,
                    (state >> 60) as u32,
                ),
            }
        })
        .collect()
}

fn header() -> FileHeader {
    FileHeader {
        command: vec!["program".into(), "--option".into()],
        source: "qemu".into(),
        ..FileHeader::default()
    }
}

#[test]
fn processes_that_allocate_through_the_same_calls_share_a_site() {
    let call = |offset| CallSite {
        module: "/bin/program".into(),
        offset,
        ..CallSite::default()
    };
    let stack = |callers: &[u64]| CallSite {
        callers: callers.iter().map(|&offset| call(offset)).collect(),
        ..call(0x1234)
    };
    let mut writer = TraceWriter::new(Vec::new(), Path::new("memory"), &header()).unwrap();
    let sites = [&[1, 2][..], &[1], &[1, 2], &[]].map(|callers| writer.site(stack(callers)));
    assert_eq!(sites, [0, 1, 0, 2]);
    let (bytes, _) = writer.finish(End::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let reader = TraceReader::open(&file(&folder, &bytes)).unwrap();
    assert_eq!(*reader.sites(), [stack(&[1, 2]), stack(&[1]), stack(&[])]);
}

/// A trace of two threads that take turns, with allocations. Returns its bytes and the ops of both.
fn two_threads(count: usize) -> (Vec<u8>, [Vec<Op>; 2]) {
    let all = [ops(count), ops(count / 2)];
    let mut writer = TraceWriter::new(Vec::new(), Path::new("memory"), &header()).unwrap();
    let site = writer.site(CallSite {
        module: "/bin/program".into(),
        offset: 0x1234,
        symbol: Some("make+0x4".into()),
        ..CallSite::default()
    });
    writer.event(0, Event::Start { tick: 0 }).unwrap();
    writer
        .event(
            0,
            Event::Alloc {
                site,
                addr: 0x10_0000,
                bytes: 1 << 30,
            },
        )
        .unwrap();
    writer.event(1, Event::Start { tick: 1 }).unwrap();
    for piece in 0..10 {
        for (thread, ops) in all.iter().enumerate() {
            let (from, to) = (ops.len() * piece / 10, ops.len() * (piece + 1) / 10);
            writer.push(thread as u32, &ops[from..to]).unwrap();
        }
    }
    let end = End {
        exit_code: Some(3),
        ..End::default()
    };
    let (bytes, end) = writer.finish(end).unwrap();
    assert_eq!(end.ops, (all[0].len() + all[1].len()) as u64);
    (bytes, all)
}

fn file(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("a.trace");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn thread_ops(reader: &TraceReader, thread: u32) -> Vec<Op> {
    reader
        .thread(thread)
        .flat_map(|block| block.unwrap().ops)
        .collect()
}

/// Everything a program does, in turns.
fn replay(program: &mut TraceProgram) -> Vec<Vec<Op>> {
    let mut all = vec![Vec::new(); program.threads()];
    let mut alive = vec![true; all.len()];
    let mut turns = 0;
    while alive.iter().any(|&alive| alive) {
        for thread in 0..all.len() {
            if alive[thread] {
                let mut out = Vec::with_capacity(1000);
                alive[thread] = program.fill(thread, 0, &mut out);
                assert!(!alive[thread] || !out.is_empty());
                all[thread].extend(out.into_iter().filter(|op| op.kind != Kind::Sleep));
            }
        }
        turns += 1;
        assert!(turns < 1_000_000, "the threads wait for each other");
    }
    all
}

#[test]
fn what_was_written_is_read_by_thread_in_order_and_on_replay() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, all) = two_threads(3 * BLOCK_OPS + 17);
    let path = file(&folder, &bytes);
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.threads(), 2);
    assert_eq!(reader.cut(), None);
    assert_eq!(reader.end().unwrap().exit_code, Some(3));
    assert_eq!(thread_ops(&reader, 0), all[0]);
    assert_eq!(thread_ops(&reader, 1), all[1]);
    let mut program = TraceProgram::open(&path).unwrap();
    assert_eq!(program.name(), "program");
    assert_eq!(replay(&mut program), all);
    assert_eq!(program.failure(), None);
}

/// What a thread did last has to be done, and not only handed over, before one that waited for its end goes on: with its end its
/// memory goes.
#[test]
fn a_thread_waits_until_the_last_ops_of_another_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let all = [ops(10), ops(20)];
    let mut writer = TraceWriter::new(Vec::new(), Path::new("memory"), &header()).unwrap();
    writer.event(0, Event::Start { tick: 0 }).unwrap();
    writer.event(1, Event::Start { tick: 1 }).unwrap();
    for (thread, ops) in all.iter().enumerate() {
        writer.push(thread as u32, ops).unwrap();
    }
    let (bytes, _) = writer.finish(End::default()).unwrap();
    let mut program = TraceProgram::open(&file(&folder, &bytes)).unwrap();
    let mut fill = |thread| {
        let mut out = Vec::with_capacity(1000);
        let goes_on = program.fill(thread, 0, &mut out);
        out.retain(|op| op.kind != Kind::Sleep);
        (goes_on, out)
    };
    assert_eq!(fill(1), (true, vec![]), "it waits for the first");
    assert_eq!(fill(0), (true, all[0].clone()));
    assert_eq!(fill(1), (true, vec![]), "these are not done yet");
    assert_eq!(fill(0), (false, vec![]));
    assert_eq!(fill(1), (true, all[1].clone()));
    assert_eq!(fill(1), (false, vec![]));
}

#[test]
fn a_pipe_is_read_as_it_comes() {
    let (bytes, all) = two_threads(2 * BLOCK_OPS);
    let mut stream = TraceStream::new(&bytes[..], Path::new("pipe")).unwrap();
    let mut seen = [Vec::new(), Vec::new()];
    for block in &mut stream {
        let block = block.unwrap();
        seen[block.thread as usize].extend(block.ops);
    }
    assert_eq!(seen, all);
    assert_eq!(stream.end().unwrap().exit_code, Some(3));
    assert_eq!(stream.sites().len(), 1);
}

#[test]
fn without_its_index_a_trace_is_walked_through() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, all) = two_threads(2 * BLOCK_OPS);
    let reader = TraceReader::open(&file(&folder, &bytes[..bytes.len() - 16])).unwrap();
    assert_eq!(reader.cut(), None, "only the trailer is missing");
    assert_eq!(thread_ops(&reader, 0), all[0]);
}

#[test]
fn a_cut_trace_is_replayed_up_to_the_last_whole_block_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, all) = two_threads(4 * BLOCK_OPS);
    let whole = TraceReader::open(&file(&folder, &bytes)).unwrap();
    let third = whole.blocks()[2];
    let path = file(&folder, &bytes[..third.offset as usize + 100]);
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(reader.cut().unwrap().offset, third.offset);
    assert_eq!(reader.blocks().len(), 2);
    let mut program = TraceProgram::open(&path).unwrap();
    let seen = replay(&mut program);
    assert_eq!(seen[0], all[0][..seen[0].len()]);
    assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), 2 * BLOCK_OPS);
    let failure = program.failure().unwrap();
    assert!(
        failure.contains(&format!("byte {}", third.offset)) && failure.contains("131072 ops"),
        "{failure}"
    );
}

#[test]
fn a_damaged_block_is_named_by_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bytes, _) = two_threads(4 * BLOCK_OPS);
    let whole = TraceReader::open(&file(&folder, &bytes)).unwrap();
    let second = whole.blocks()[1].offset;
    bytes[second as usize + 500] ^= 1;
    let path = file(&folder, &bytes);
    let reader = TraceReader::open(&path).unwrap();
    let error = reader.iter_from(0).nth(1).unwrap().unwrap_err().to_string();
    assert!(
        error.contains(&format!("byte {second}")) && error.contains("checksum"),
        "{error}"
    );
    let mut program = TraceProgram::open(&path).unwrap();
    replay(&mut program);
    assert!(program.failure().unwrap().contains("checksum"));
}

#[test]
fn foreign_files_and_other_versions_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |bytes: &[u8]| {
        TraceReader::open(&file(&folder, bytes))
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refuse(b"").contains("empty"));
    assert!(refuse(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).contains("gunzip"));
    assert!(refuse(b"==123== Lackey, an example Valgrind tool").contains("import"));
    assert!(
        refuse(&[b"VARVETRC".as_slice(), &[9, 0, 0, 0, 2, 0, 0, 0], b"{}"].concat())
            .contains("version 9")
    );
}

#[test]
fn the_trace_in_the_repository_is_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/sqlite-join.trace");
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(
        (reader.cut(), reader.header().command[0].as_str()),
        (None, "sqlite3")
    );
    let info = TraceInfo::read(&reader).unwrap();
    assert_eq!(info.ops, reader.end().unwrap().ops);
    assert_eq!(info.instructions, reader.end().unwrap().instructions);
    assert!(
        info.footprint_bytes() > 10 << 20 && info.file_bytes < 4 << 20,
        "{info:?}"
    );
}

/// A disk with room for some bytes.
struct SmallDisk {
    room: usize,
    bytes: Vec<u8>,
}

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let now = bytes.len().min(self.room - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..now]);
        if now == 0 {
            Err(ErrorKind::StorageFull.into())
        } else {
            Ok(now)
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn on_a_full_disk_what_was_recorded_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = SmallDisk {
        room: 500_000,
        bytes: Vec::new(),
    };
    let mut writer = TraceWriter::new(&mut disk, Path::new("small.trace"), &header()).unwrap();
    let all = ops(20 * BLOCK_OPS);
    let error = all
        .chunks(1000)
        .find_map(|piece| writer.push(0, piece).err())
        .expect("the disk is too small");
    drop(writer);
    let TraceError::DiskFull { ops, .. } = error else {
        panic!("{error}")
    };
    assert!(
        ops > 0 && error.to_string().contains("disk is full"),
        "{error}"
    );
    let reader = TraceReader::open(&file(&folder, &disk.bytes)).unwrap();
    assert_eq!(thread_ops(&reader, 0), all[..ops as usize]);
    assert!(reader.cut().is_some());
}

#[test]
fn a_trace_in_numbers_counts_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, all) = two_threads(BLOCK_OPS);
    let info = TraceInfo::read(&TraceReader::open(&file(&folder, &bytes)).unwrap()).unwrap();
    let both = || all.iter().flatten();
    let touched = |op: &&Op| matches!(op.kind, Kind::Read | Kind::Write | Kind::Update);
    assert_eq!(
        info.reads,
        both().filter(|op| op.kind != Kind::Write).count() as u64
    );
    assert_eq!(
        info.writes,
        both().filter(|op| op.kind != Kind::Read).count() as u64
    );
    let pages: std::collections::HashSet<u64> = both()
        .filter(touched)
        .flat_map(|op| op.addr / 4096..=(op.addr + u64::from(op.size) - 1) / 4096)
        .collect();
    assert_eq!(info.pages, pages.len() as u64);
    let site = &info.sites[0];
    assert_eq!(
        (site.allocations, site.bytes, site.peak_bytes),
        (1, 1 << 30, 1 << 30)
    );
    let inside = |op: &&Op| (0x10_0000..0x10_0000 + (1 << 30)).contains(&op.addr);
    // the second thread's ops before the first block was written come later in the file: all are counted
    assert_eq!(
        site.reads,
        both()
            .filter(inside)
            .filter(|op| op.kind != Kind::Write)
            .count() as u64
    );
    assert_eq!(site.site.to_string(), "program!make+0x4");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_trace_with_any_bytes_changed_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        let (mut bytes, _) = two_threads(3000);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok(mut program) = TraceProgram::open(&file(&folder, &bytes)) {
            replay(&mut program);
        }
        if let Ok(stream) = TraceStream::new(&bytes[..], Path::new("pipe")) {
            stream.for_each(drop);
        }
    }

    #[test]
    fn a_trace_cut_anywhere_gives_a_prefix_of_every_thread(cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let (bytes, all) = two_threads(3000);
        let cut = cut.index(bytes.len());
        if let Ok(mut program) = TraceProgram::open(&file(&folder, &bytes[..cut])) {
            for (thread, ops) in replay(&mut program).into_iter().enumerate() {
                prop_assert_eq!(&ops[..], &all[thread][..ops.len()]);
            }
        }
    }
}
