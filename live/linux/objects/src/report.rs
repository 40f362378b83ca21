//! The report: one line of JSON per process, which it leaves when it ends.

use crate::format::{FAST, SLOW};
use crate::line::{process, quoted};
use crate::map::Map;
use crate::mapped::{self, OF_BLOCKS, VARIABLES};
use crate::pieces::Piece;
use crate::sys::{self, PAGE};
use crate::{budget, divided, line, memory, modules, sandbox, thread, vast};
use std::ffi::c_int;
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// Pages of each group whose nodes the kernel is asked for, at most.
const ASKED: usize = 64;
/// Pages of the table of objects that are scanned for them, per tier: each covers 32 KiB.
const LOOKED_AT: usize = 4096;

/// Says that nothing is placed, and why.
pub fn idle(why: &str) {
    let text = format!("{{{},\"idle\":{}}}\n", process(), quoted(why));
    match sys::variable(c"VARVE_OBJECTS_REPORT") {
        Some(_) => line::leave(&text),
        // Without a file, standard error has only what went wrong.
        None => eprint!("varve: objects are not placed: {text}"),
    }
}

/// Says what was placed, and where it is.
pub fn write(map: &Map) {
    if let Some(thread) = thread::current(map) {
        thread.flush();
    }
    // The report's own allocations are not placed.
    thread::leave();
    let mut parts = 0;
    divided::each(|block| parts += sys::resident_bytes(block.start, block.start + block.fast));
    let mut line = format!("{{{},\"sandboxed\":{}", process(), sandbox::closed());
    for (name, value) in [
        ("fast_bytes", budget::total().max(0) as u64),
        ("fast_resident", (memory::resident(FAST) + parts) as u64),
        (
            "slow_resident",
            memory::resident(SLOW).saturating_sub(parts) as u64,
        ),
        ("variables_fast", VARIABLES[0].load(Relaxed)),
        ("variables_slow", VARIABLES[1].load(Relaxed)),
        ("variables_left", VARIABLES[2].load(Relaxed)),
        ("colored_blocks", OF_BLOCKS.load(Relaxed)),
    ] {
        let _ = write!(line, ",\"{name}\":{value}");
    }
    for (name, state) in [
        ("missing", modules::MISSING),
        ("other_build", modules::OTHER_BUILD),
    ] {
        let named = (0..map.modules()).filter(|m| modules::state(*m) == state);
        let names: Vec<String> = named
            .map(|m| quoted(&String::from_utf8_lossy(map.module_name(m))))
            .collect();
        let _ = write!(line, ",\"{name}\":[{}]", names.join(","));
    }
    line.push_str(",\"groups\":[");
    let [fast_pages, slow_pages] = pages(map);
    let mut first = true;
    for (group, (fast_pages, slow_pages)) in fast_pages.iter().zip(&slow_pages).enumerate() {
        let (mut objects, mut given, mut live) = (0, [0; 2], [0; 2]);
        for count in thread::all().map(|t| t.count(group)) {
            objects += count.objects.load(Relaxed);
            for tier in [FAST, SLOW] {
                given[tier as usize] += count.given[tier as usize].load(Relaxed);
                live[tier as usize] += count.live(tier);
            }
        }
        let [fast, slow] = live;
        if objects == 0 && live == [0; 2] {
            continue;
        }
        let bytes: u64 = given.iter().sum();
        let spilled = if map.tier(group) == FAST {
            given[SLOW as usize]
        } else {
            0
        };
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        let _ = write!(
            line,
            "{comma}{{\"group\":{group},\"objects\":{objects},\"bytes\":{bytes},\"spilled\":{spilled},\
             \"fast\":{fast},\"slow\":{slow},\"fast_pages\":{},\"slow_pages\":{}}}",
            by_node(fast_pages),
            by_node(slow_pages),
        );
    }
    line.push_str("]}\n");
    line::leave(&line);
}

/// Some pages of each group in each tier: of mappings and divided objects, and those that hold the beginning of another.
fn pages(map: &Map) -> [Vec<Vec<usize>>; 2] {
    let mut mappings = Vec::with_capacity(ASKED);
    // Nothing is allocated meanwhile.
    let add = |list: &mut Vec<Piece>, piece| {
        if list.len() < list.capacity() {
            list.push(piece);
        }
    };
    mapped::each(|piece| add(&mut mappings, piece));
    let mut blocks = Vec::with_capacity(2 * ASKED);
    divided::each(|block| block.pieces().for_each(|piece| add(&mut blocks, piece)));
    vast::each(|block| block.pieces().for_each(|piece| add(&mut blocks, piece)));
    mappings.append(&mut blocks);
    [FAST, SLOW].map(|tier| {
        let mut pages = vec![Vec::new(); map.groups()];
        for piece in mappings.iter().filter(|piece| piece.tier == tier) {
            let step = (piece.bytes() / PAGE).div_ceil(ASKED / 4) * PAGE;
            let some = (piece.start..piece.end).step_by(step.max(PAGE));
            if let Some(pages) = pages.get_mut(piece.group) {
                let room = ASKED.saturating_sub(pages.len());
                pages.extend(some.take(room));
            }
        }
        memory::look(tier, LOOKED_AT, |object, group| {
            let page = object / PAGE * PAGE;
            if let Some(pages) = pages.get_mut(group)
                && pages.len() < ASKED
                && pages.last() != Some(&page)
            {
                pages.push(page);
            }
        });
        pages
    })
}

/// How many of these pages are on each node, by the kernel's word: `{"0":5}`.
fn by_node(pages: &[usize]) -> String {
    let mut nodes: Vec<c_int> = vec![-1; pages.len()];
    if !pages.is_empty() && !sys::nodes_of(pages, &mut nodes) {
        nodes.clear();
    }
    nodes.retain(|n| *n >= 0);
    nodes.sort_unstable();
    let counts = nodes
        .chunk_by(|a, b| a == b)
        .map(|same| format!("\"{}\":{}", same[0], same.len()));
    format!("{{{}}}", counts.collect::<Vec<_>>().join(","))
}
