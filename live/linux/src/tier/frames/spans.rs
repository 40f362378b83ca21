//! The frames of each node, as `/proc/zoneinfo` tells, numbered through the nodes.

/// The frames of one node, holes within it included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The node.
    pub node: u32,
    /// Its first frame, in pages of the run.
    pub first: u64,
    /// Frames.
    pub frames: u32,
}

/// The frames of all nodes. A frame has the kernel's number, in pages of the kernel, and one of ours: in pages of the run, without
/// gaps between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Pages of the kernel in one of the run.
    within: u64,
    /// In the order of our numbers: a node may have several, which follow each other.
    spans: Vec<Span>,
}

/// Physical addresses of a DIMM: first, and the one behind the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimmRange {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub ranges: Vec<(u64, u64)>,
}

/// Frames of a DIMM, which follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimmFrames {
    /// Its name.
    pub name: String,
    /// The node's place among the nodes.
    pub node: u32,
    /// Its first frame.
    pub first: u32,
    /// Frames.
    pub frames: u32,
}

const BASE: u64 = 4096;

impl Spans {
    /// From `/proc/zoneinfo`, for pages of `page_bytes`.
    ///
    /// # Errors
    /// One line: nodes that lie among each other, none at all, or more frames than can be told apart.
    pub fn parse(zoneinfo: &str, page_bytes: u64) -> Result<Spans, String> {
        let within = (page_bytes / BASE).max(1);
        let mut nodes: Vec<(u32, u64, u64)> = Vec::new();
        let (mut node, mut spanned) = (0, 0);
        for line in zoneinfo.lines() {
            if let Some(rest) = line.strip_prefix("Node ") {
                let number = rest.split(',').next().unwrap_or_default();
                node = number.trim().parse().unwrap_or(0);
                spanned = 0;
            }
            let mut words = line.split_whitespace();
            let value = |words: &mut std::str::SplitWhitespace<'_>| words.next()?.parse().ok();
            match words.next() {
                Some("spanned") => spanned = value(&mut words).unwrap_or(0u64),
                Some("start_pfn:") if spanned > 0 => {
                    let start: u64 = value(&mut words).unwrap_or(0);
                    let end = start + spanned;
                    match nodes.iter_mut().find(|known| known.0 == node) {
                        Some(known) => *known = (node, known.1.min(start), known.2.max(end)),
                        None => nodes.push((node, start, end)),
                    }
                }
                _ => {}
            }
        }
        nodes.sort_by_key(|(_, start, _)| *start);
        if let Some(pair) = nodes.windows(2).find(|pair| pair[1].1 < pair[0].2) {
            return Err(format!(
                "the frames of nodes {} and {} are interleaved (/proc/zoneinfo), so a frame does not identify its node",
                pair[0].0, pair[1].0
            ));
        }
        let all: u64 = nodes
            .iter()
            .map(|(_, start, end)| end / within - start / within + 1)
            .sum();
        if all == 0 {
            return Err("/proc/zoneinfo reports no frames".into());
        }
        if all > u64::from(u32::MAX / 2) {
            return Err(format!(
                "{all} frames are too many: use larger pages (--page 2MiB)"
            ));
        }
        let mut end_before = 0;
        let spans = nodes.into_iter().map(|(node, start, end)| {
            // Where two nodes meet within a page, it is the first one's.
            let first = (start / within).max(end_before);
            end_before = end.div_ceil(within).max(first);
            Span {
                node,
                first,
                frames: (end_before - first) as u32,
            }
        });
        Ok(Spans {
            within,
            spans: spans.collect(),
        })
    }

    /// The nodes, in the order of their frames.
    pub fn nodes(&self) -> Vec<Span> {
        let mut nodes: Vec<Span> = Vec::new();
        for span in &self.spans {
            match nodes.last_mut() {
                Some(last) if last.node == span.node => {
                    last.first = last.first.min(span.first);
                    last.frames += span.frames;
                }
                _ => nodes.push(*span),
            }
        }
        nodes
    }

    /// The same frames, numbered DIMM by DIMM within each node, and where each DIMM's are then. Frames of no DIMM come last in their node.
    ///
    /// # Errors
    /// One line: DIMMs that overlap, or whose addresses are no whole pages, or that have no memory here.
    pub fn by_dimm(&self, dimms: &[DimmRange]) -> Result<(Spans, Vec<DimmFrames>), String> {
        let page = self.within * BASE;
        let mut places: Vec<(u64, u64, &str)> = Vec::new();
        for dimm in dimms {
            for &(from, to) in &dimm.ranges {
                if from >= to || from % page != 0 || to % page != 0 {
                    return Err(format!(
                        "DIMM {}: {from:#x} to {to:#x} is not a whole number of pages of {page} bytes",
                        dimm.name
                    ));
                }
                places.push((from, to, &dimm.name));
            }
        }
        places.sort_unstable();
        if let Some(pair) = places.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!(
                "DIMMs {} and {} overlap at {:#x}: each address is on one DIMM",
                pair[0].2, pair[1].2, pair[1].0
            ));
        }
        let mut all = Spans {
            within: self.within,
            spans: Vec::new(),
        };
        let (mut found, mut number) = (Vec::new(), 0);
        for (position, node) in self.nodes().into_iter().enumerate() {
            let (start, end) = (node.first, node.first + u64::from(node.frames));
            let mut add = |from: u64, to: u64| {
                let (first, to) = (from.max(start), to.min(end));
                let frames = to.saturating_sub(first) as u32;
                if frames > 0 {
                    all.spans.push(Span {
                        node: node.node,
                        first,
                        frames,
                    });
                }
                frames
            };
            for dimm in dimms {
                let of = |&(from, to): &(u64, u64)| add(from / page, to / page);
                let frames: u32 = dimm.ranges.iter().map(of).sum();
                if frames > 0 {
                    found.push(DimmFrames {
                        name: dimm.name.clone(),
                        node: position as u32,
                        first: number,
                        frames,
                    });
                    number += frames;
                }
            }
            let mut at = start;
            for &(from, to, _) in &places {
                number += add(at, from / page);
                at = at.max(to / page);
            }
            number += add(at, end);
        }
        let has = |name: &str| found.iter().any(|dimm| dimm.name == name);
        match dimms.iter().find(|dimm| !has(&dimm.name)) {
            Some(dimm) => Err(format!(
                "DIMM {}: no memory of this machine is at its addresses (/proc/zoneinfo)",
                dimm.name
            )),
            None => Ok((all, found)),
        }
    }

    /// Our number of a frame of the kernel; `None` if it is of no node, as those of devices are.
    pub fn index(&self, kernel: u64) -> Option<u32> {
        let frame = kernel / self.within;
        let mut before = 0;
        for span in &self.spans {
            if let Some(at) = frame.checked_sub(span.first)
                && at < u64::from(span.frames)
            {
                return Some(before + at as u32);
            }
            before += span.frames;
        }
        None
    }

    /// The first of the kernel's frames in one of ours.
    pub fn kernel(&self, index: u32) -> Option<u64> {
        let (span, at) = self.find(index)?;
        Some((span.first + u64::from(at)) * self.within)
    }

    /// The node of a frame of ours.
    pub fn node(&self, index: u32) -> Option<u32> {
        Some(self.find(index)?.0.node)
    }

    fn find(&self, index: u32) -> Option<(&Span, u32)> {
        let mut at = index;
        for span in &self.spans {
            if at < span.frames {
                return Some((span, at));
            }
            at -= span.frames;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONES: &str = "\
Node 0, zone      DMA
  pages free     3840
        spanned  4095
        present  3998
  start_pfn:           1
Node 0, zone    DMA32
        spanned  258048
  start_pfn:           4096
Node 0, zone   Normal
        spanned  0
  start_pfn:           0
Node 2, zone   Normal
        spanned  8160
  start_pfn:           393216
";

    #[test]
    fn frames_are_numbered_through_the_nodes() {
        let all = Spans::parse(ZONES, 4096).unwrap();
        let span = |node, first, frames| Span {
            node,
            first,
            frames,
        };
        assert_eq!(all.nodes(), [span(0, 1, 262_143), span(2, 393_216, 8160)]);
        assert_eq!(
            (all.index(0), all.index(1), all.index(262_144)),
            (None, Some(0), None)
        );
        assert_eq!(all.index(393_217), Some(262_144));
        assert_eq!(
            (all.kernel(262_144), all.node(262_144)),
            (Some(393_217), Some(2))
        );
        assert_eq!(all.kernel(262_143 + 8160), None);
        let huge = Spans::parse(ZONES, 2 << 20).unwrap();
        assert_eq!(huge.nodes(), [span(0, 0, 512), span(2, 768, 16)]);
        assert_eq!(huge.kernel(513), Some(769 * 512));
    }

    #[test]
    fn nodes_among_each_other_and_none_at_all_are_refused() {
        let among = ZONES.replace("393216", "262000");
        assert!(
            Spans::parse(&among, 4096)
                .unwrap_err()
                .contains("nodes 0 and 2")
        );
        assert!(Spans::parse("", 4096).unwrap_err().contains("no frames"));
    }

    #[test]
    fn dimms_that_cannot_be_are_refused() {
        let all = Spans::parse(ZONES, 4096).unwrap();
        let dimm = |name: &str, from, to| DimmRange {
            name: name.into(),
            ranges: vec![(from, to)],
        };
        let says = |dimms: &[DimmRange]| all.by_dimm(dimms).unwrap_err();
        let overlap = says(&[dimm("A1", 0, 8 << 20), dimm("A2", 4 << 20, 12 << 20)]);
        assert!(
            overlap.starts_with("DIMMs A1 and A2 overlap at 0x400000"),
            "{overlap}"
        );
        assert!(says(&[dimm("A1", 0, 5000)]).contains("not a whole number of pages"));
        assert!(says(&[dimm("A1", 1 << 20, 1 << 20)]).contains("not a whole number"));
        assert!(says(&[dimm("A9", 1 << 40, 2 << 40)]).contains("DIMM A9: no memory"));
    }

    proptest! {
        #[test]
        fn both_numbers_lead_to_each_other(
            gaps in prop::collection::vec((1u64..9000, 1u64..9000), 1..5),
            huge in any::<bool>(),
            at in any::<prop::sample::Index>(),
        ) {
            let (mut text, mut start) = (String::new(), 0);
            for (node, (gap, pages)) in gaps.iter().enumerate() {
                start += gap;
                text += &format!("Node {node}, zone Normal\n spanned {pages}\n start_pfn: {start}\n");
                start += pages;
            }
            let spans = Spans::parse(&text, if huge { 2 << 20 } else { 4096 }).unwrap();
            let all: u32 = spans.nodes().iter().map(|s| s.frames).sum();
            let index = at.index(all as usize) as u32;
            let kernel = spans.kernel(index).unwrap();
            prop_assert_eq!(spans.index(kernel), Some(index));
            // Cut into DIMMs, one of them in two pieces, it is the same frames in another order.
            let page = if huge { 2 << 20 } else { 4096u64 };
            let third = (start * 4096 / page / 3 + 1) * page;
            let dimm = |name: &str, ranges: &[(u64, u64)]| DimmRange { name: name.into(), ranges: ranges.into() };
            let dimms = [
                dimm("a", &[(0, third), (2 * third, 4 * third)]),
                dimm("b", &[(third, 2 * third)]),
            ];
            if let Ok((cut, found)) = spans.by_dimm(&dimms) {
                let mut seen: Vec<u64> = (0..all).map(|i| cut.kernel(i).unwrap()).collect();
                for (i, kernel) in seen.iter().enumerate() {
                    prop_assert_eq!(cut.index(*kernel), Some(i as u32));
                    prop_assert_eq!(cut.node(i as u32), spans.node(spans.index(*kernel).unwrap()));
                    let byte = kernel * 4096;
                    let on = dimms.iter().find(|d| d.ranges.iter().any(|r| (r.0..r.1).contains(&byte)));
                    let said = found.iter().find(|d| (d.first..d.first + d.frames).contains(&(i as u32)));
                    prop_assert_eq!(on.map(|d| &d.name), said.map(|d| &d.name));
                }
                seen.sort_unstable();
                let mut before: Vec<u64> = (0..all).map(|i| spans.kernel(i).unwrap()).collect();
                before.sort_unstable();
                prop_assert_eq!(seen, before);
            }
        }
    }
}
