//! Memory is where it was bound to, by the kernel's word. On a machine with memory alone on some node; elsewhere these
//! tests say that they are skipped (`tests/guest/run --node 512M --node 32M -- COMMAND` has such nodes).

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use varve_live::Mapped;
use varve_live::nodes::{Kinds, NodeError, NodeMemory, positions};
use varve_live::probe::{Node, Topology};

const CHUNK: usize = 2 << 20;
const PAGE: usize = 4096;

fn topology() -> Topology {
    Topology::read(Path::new("/")).0
}

/// One test at a time: they read how full nodes are.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of this machine, if it has two kinds that this process may use.
fn memory() -> Option<NodeMemory> {
    match Kinds::probe(&topology()) {
        Ok(kinds) => Some(NodeMemory::new(kinds).expect("nodes can be used")),
        Err(why) => {
            varve_skip::skip!("{why}");
            None
        }
    }
}

/// Some chunks, aligned, none of them touched.
struct Chunks(Mapped, usize);

impl Chunks {
    fn new(count: usize) -> Chunks {
        let mapped = Mapped::new((count + 1) * CHUNK).unwrap();
        Chunks(mapped, count * CHUNK)
    }

    fn all(&mut self) -> &mut [u8] {
        let start = self.0.start();
        let at = start.next_multiple_of(CHUNK) - start;
        &mut self.0.all()[at..][..self.1]
    }

    fn range(&mut self) -> (u64, u64) {
        let all = self.all();
        (all.as_ptr().addr() as u64, all.len() as u64)
    }
}

#[test]
fn chunks_are_on_the_nodes_at_once_and_move_with_what_they_hold() {
    let _turn = turn();
    let Some(memory) = memory() else { return };
    let mut chunks = Chunks::new(3);
    let (start, bytes) = chunks.range();
    let kinds = memory.kinds().clone();
    for (moves, tier) in [0, 1, 0].into_iter().enumerate() {
        memory.bind(start, bytes, tier).unwrap();
        let found = positions(&[(start, bytes)]).unwrap();
        assert_eq!(found.total(), bytes, "all is in memory");
        assert_eq!(found.outside(kinds.of_tier(tier)), 0, "{found:?}");
        assert!(memory.holds(&[(start, bytes)], tier).unwrap());
        assert!(!memory.holds(&[(start, bytes)], 1 - tier).unwrap());
        for (page, bytes) in chunks.all().chunks_mut(PAGE).enumerate() {
            assert_eq!(usize::from(bytes[0]), moves, "page {page}");
            bytes[0] += 1;
        }
    }
}

/// As the collector's tables: somewhere between other things, and in use.
#[test]
fn a_range_that_is_no_chunk_is_bound_page_by_page() {
    let _turn = turn();
    let Some(memory) = memory() else { return };
    let mut chunks = Chunks::new(1);
    let (start, _) = chunks.range();
    memory.bind(start, CHUNK as u64, 0).unwrap();
    chunks.all().fill(7);
    let (from, len) = (start + 100, 3 * PAGE as u64);
    memory.bind(from, len, 1).unwrap();
    let inner = (start + PAGE as u64, 2 * PAGE as u64);
    let on = |range| positions(&[range]).unwrap();
    assert_eq!(on(inner).outside(memory.kinds().of_tier(1)), 0);
    // Others come along if they are in one large page with them; what they hold stays.
    assert!(chunks.all().iter().all(|&byte| byte == 7));
    // Bytes within one page are not placed.
    memory.bind(start + 10, 20, 1).unwrap();
}

#[test]
fn what_nobody_touched_is_nowhere_until_it_is_touched() {
    let _turn = turn();
    let Some(memory) = memory() else { return };
    let mut chunks = Chunks::new(1);
    let (start, _) = chunks.range();
    let range = (start, 5 * PAGE as u64);
    memory.bind(range.0, range.1, 1).unwrap();
    assert_eq!(positions(&[range]).unwrap().total(), 0);
    chunks.all()[..5 * PAGE].fill(1);
    let found = positions(&[range]).unwrap();
    assert_eq!(found.total(), range.1);
    assert_eq!(found.outside(memory.kinds().of_tier(1)), 0);
}

/// With MPOL_BIND the kernel would kill a process here.
#[test]
fn a_full_node_is_an_error_that_names_it_and_loses_nothing() {
    let _turn = turn();
    let Some(small) = small_node() else { return };
    let kinds = Kinds::parse(&format!("fast=0,slow={}", small.id), &topology()).unwrap();
    let memory = NodeMemory::new(kinds).unwrap();
    let mut chunks = Chunks::new(32);
    let (start, bytes) = chunks.range();
    chunks.all()[5] = 5;
    match memory.bind(start, bytes, 1).unwrap_err() {
        NodeError::Full {
            kind,
            nodes,
            elsewhere,
            asked,
            free,
        } => {
            assert_eq!(
                (kind, nodes, asked),
                ("slow", small.id.to_string(), bytes >> 10)
            );
            assert!(
                0 < elsewhere && elsewhere < asked,
                "some found room: {elsewhere}"
            );
            assert!(free < small.bytes >> 20);
        }
        other => panic!("{other}"),
    }
    assert_eq!(positions(&[(start, bytes)]).unwrap().total(), bytes);
    assert_eq!(chunks.all()[5], 5);
    // The rest of the machine is as usable as before.
    let mut other = Chunks::new(1);
    let (start, bytes) = other.range();
    memory.bind(start, bytes, 0).unwrap();
}

/// Files that the kernel keeps in memory because it has nothing better to do with it are no reason to call a node full.
#[test]
fn cached_files_make_room() {
    let _turn = turn();
    let Some(small) = small_node() else { return };
    let kinds = Kinds::parse(&format!("fast=0,slow={}", small.id), &topology()).unwrap();
    let memory = NodeMemory::new(kinds).unwrap();
    // What is read while this thread gets memory of that node alone.
    insist(Some(small.id));
    let folder = std::env::current_exe().unwrap();
    let folder = folder.parent().unwrap().read_dir().unwrap();
    let mut read = 0;
    for file in folder.flatten().filter_map(|f| File::open(f.path()).ok()) {
        // SAFETY: advice about a descriptor of ours. Files that are in memory already are read again.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        read += std::io::copy(&mut file.take(16 << 20), &mut std::io::sink()).unwrap_or(0);
        if read > 4 * small.bytes {
            break;
        }
    }
    insist(None);
    let mut chunks = Chunks::new(4);
    let (start, bytes) = chunks.range();
    let free = small_node().unwrap().free_bytes;
    if free >= bytes {
        return varve_skip::skip!("{free} bytes of node {} are still free", small.id);
    }
    memory.bind(start, bytes, 1).unwrap();
    assert!(memory.holds(&[(start, bytes)], 1).unwrap());
}

/// A node of memory alone that is small enough to be filled.
fn small_node() -> Option<Node> {
    let small = |n: &Node| n.cpus.is_empty() && (1..64 << 20).contains(&n.bytes);
    let found = topology().nodes.into_iter().find(small);
    if found.is_none() {
        varve_skip::skip!("no node of memory alone has less than 64 MiB");
    }
    found
}

/// Has this thread get memory of one node alone, or of any.
fn insist(node: Option<u32>) {
    let mask = node.map(|n| [1u64 << n]);
    let (mode, bits) = match mask {
        Some(_) => (libc::MPOL_BIND, 65u64),
        None => (libc::MPOL_DEFAULT, 0),
    };
    let mask = mask.as_ref().map_or(std::ptr::null(), |m| m.as_ptr());
    // SAFETY: the mask is null, or has 64 bits, one less than stated as the call wants it; it is read only.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
