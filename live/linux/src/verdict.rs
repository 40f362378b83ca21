//! Conflicts counted from outside: the page maps of running processes.

use crate::place::bins::{Bins, PAGE};
use crate::place::conflicts::Conflicts;
use crate::place::error::PlaceError;
use crate::place::pagemap::Pagemap;
use crate::place::scan;
use crate::sampled::used::{self, Mapping};
use std::ops::Range;

/// Private, writable, nameless memory of at least `least_bytes`: what programs call their memory. The heap counts; stacks, files
/// and the kernel's own areas do not.
fn private_areas(maps: &[Mapping], least_bytes: usize) -> Vec<Range<usize>> {
    let nameless = |path: &str| path.is_empty() || path == "[heap]" || path.starts_with("[anon:");
    let own = maps.iter().filter(|m| m.is_private() && nameless(&m.path));
    let mut areas: Vec<Range<usize>> = Vec::new();
    for found in own.map(|m| m.start as usize..m.end as usize) {
        // Placement with mremap cuts one piece of memory into many mappings.
        match areas.last_mut() {
            Some(last) if last.end == found.start => last.end = found.end,
            _ => areas.push(found),
        }
    }
    areas.retain(|a| a.len() >= least_bytes);
    areas
}

/// How the pages of these processes share the bins of a DRAM cache right now, from `/proc/PID/pagemap`:
/// all pages in memory of their private areas of `least_bytes` and more. A frame that several share counts
/// once. Processes that have ended are left out.
///
/// # Errors
/// [`PlaceError::Hidden`] when frame numbers are hidden from the caller, [`PlaceError::System`] when the
/// page map of a living process may not be read.
pub fn machine_conflicts(
    pids: &[u32],
    bins: Bins,
    least_bytes: usize,
) -> Result<Conflicts, PlaceError> {
    let mut frames: Vec<u64> = Vec::new();
    for &pid in pids {
        let Ok(maps) = used::mappings(pid, &[]) else {
            continue;
        };
        let pagemap = match Pagemap::of(pid) {
            Ok(pagemap) => pagemap,
            Err(PlaceError::System(_, e)) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        for area in private_areas(&maps, least_bytes) {
            let mut hidden = false;
            // Programs reserve far more than they use: where the kernel can, scan only resident pages.
            let mut pieces = Vec::new();
            if !scan::regions(&pagemap, area.start, area.end, scan::PRESENT, |from, to| {
                pieces.push((from, to))
            }) {
                pieces = vec![(area.start, area.end)];
            }
            let read: Result<(), PlaceError> = pieces.into_iter().try_for_each(|(from, to)| {
                pagemap.read(from, (to - from) / PAGE, |_, entry| {
                    hidden |= entry.hidden();
                    frames.extend(entry.frame());
                })
            });
            if hidden {
                return Err(PlaceError::Hidden);
            }
            if read.is_err() {
                // The process ended while it was read.
                break;
            }
        }
    }
    frames.sort_unstable();
    frames.dedup();
    Ok(Conflicts::of_bins(
        frames.into_iter().map(|f| bins.of_frame(f)),
        bins,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_files_and_stacks() {
        let maps = "\
555555554000-555555558000 rw-p 00003000 fe:00 12 /usr/bin/sleep
555555559000-55555557a000 rw-p 00000000 00:00 0 [heap]
7ffff7000000-7ffff7400000 rw-p 00000000 00:00 0 
7ffff7400000-7ffff7500000 rw-p 00000000 00:00 0 
7ffff7500000-7ffff7600000 r--p 00000000 00:00 0 
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
";
        let maps = used::read(maps.as_bytes()).unwrap();
        let areas = private_areas(&maps, 4096);
        let sizes: Vec<usize> = areas.iter().map(Range::len).collect();
        assert_eq!(sizes, [0x21000, 0x500000]);
        assert_eq!(private_areas(&maps, 1 << 20).len(), 1);
    }
}
