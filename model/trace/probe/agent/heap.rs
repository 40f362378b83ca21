//! Where a HotSpot virtual machine has its heap, from the output of its own diagnostic commands.
//!
//! The output of the commands differs between versions, so only the common part is parsed: a line with a generation's
//! name has its bounds in brackets, `[first, end of what is committed, end of what is reserved)`.

use super::codes::{Collector, Use};

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its use.
    pub what: Use,
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Range {
    fn new(what: Use, start: u64, end: u64) -> Option<Range> {
        let bytes = end.checked_sub(start).filter(|&bytes| bytes > 0)?;
        Some(Range { what, start, bytes })
    }
}

/// The numbers `0x...` between the last brackets of a line.
fn bounds(line: &str) -> Option<(u64, u64, u64)> {
    let inside = line.rsplit_once('[')?.1.trim_end();
    let inside = inside.strip_suffix([')', ']'])?;
    let mut all = inside.split(',').map(|word| {
        let word = word.trim().strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    });
    let first = all.next()??;
    let second = all.next()??;
    let last = all.next_back().unwrap_or(Some(second))?;
    Some((first, second, last))
}

/// Parses the output of `GC.heap_info`: the collector, and the ranges of its heap, the larger before those inside. A
/// heap without bounds there (that of ZGC) has no range.
pub fn heap(text: &str) -> (Collector, Vec<Range>) {
    let (mut collector, mut ranges) = (Collector::Other, Vec::new());
    for line in text.lines().map(str::trim_start) {
        let found = bounds(line);
        // A generation's range is its reserved memory; a space's its current one.
        let range = |what| found.and_then(|(start, _, end)| Range::new(what, start, end));
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if starts(&["def new generation", "DefNew"]) {
            collector = Collector::Serial;
            ranges.extend(range(Use::Young));
        } else if starts(&["PSYoungGen"]) {
            collector = Collector::Parallel;
            ranges.extend(range(Use::Young));
        } else if starts(&["tenured generation", "Tenured", "ParOldGen"]) {
            ranges.extend(range(Use::Old));
        } else if starts(&["garbage-first heap"]) {
            collector = Collector::G1;
            ranges.extend(range(Use::Heap));
        } else if starts(&["ZHeap"]) {
            collector = Collector::Z;
        } else if starts(&["eden space"]) {
            ranges.extend(range(Use::Eden));
        } else if starts(&["from space", "to   space", "to space", "to  space"]) {
            ranges.extend(range(Use::Survivor));
        }
    }
    (collector, ranges)
}

/// Parses the output of `Compiler.codecache`: the code heaps, with all memory reserved for them.
pub fn code(text: &str) -> Vec<Range> {
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with("bounds ["));
    let range = |line| {
        let (start, _, end) = bounds(line)?;
        Range::new(Use::Code, start, end)
    };
    lines.filter_map(range).collect()
}

/// Parses the output of `VM.metaspace vslist`: the nodes of both lists, as they are reserved.
pub fn metaspace(text: &str) -> Vec<Range> {
    let range = |line: &str| {
        let (base, rest) = line.split_once("base 0x")?.1.split_once(": reserved=")?;
        let start = u64::from_str_radix(base, 16).ok()?;
        let (number, unit) = rest.split_once(',')?.0.split_once(' ')?;
        let unit = match unit {
            "bytes" => 1.0,
            "KB" => 1024.0,
            "MB" => 1024.0 * 1024.0,
            "GB" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        let bytes = number.parse::<f64>().ok()? * unit;
        Range::new(Use::Metaspace, start, start + bytes as u64)
    };
    let nodes = text.lines().filter(|line| line.contains("node #"));
    nodes.filter_map(range).collect()
}

/// A line of `/proc/self/maps`: first address, end, path.
fn mapping(line: &str) -> Option<(u64, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = rest.splitn(5, ' ').nth(4).unwrap_or_default();
    Some((number(start)?, number(end)?, path.trim_start()))
}

/// The archive of classes that the virtual machine maps (CDS), from `/proc/self/maps`.
pub fn archive(maps: &str) -> Vec<Range> {
    let archived = maps.lines().filter_map(mapping);
    let archived = archived.filter(|(_, _, path)| path.ends_with(".jsa"));
    let range = |(start, end, _)| Range::new(Use::Metaspace, start, end);
    archived.filter_map(range).collect()
}

/// The heap of ZGC, from `/proc/self/maps`: the mapped parts of its file, and the reservation right behind. Without
/// generations it maps its heap three times; then each is a range.
pub fn z_heap(maps: &str) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for (start, end, path) in maps.lines().filter_map(mapping) {
        let heap = path.contains("java_heap");
        match ranges.last_mut() {
            Some(last) if last.start + last.bytes == start && (heap || path.is_empty()) => {
                last.bytes = end - last.start;
            }
            _ if heap => ranges.extend(Range::new(Use::Heap, start, end)),
            _ => {}
        }
    }
    ranges
}
