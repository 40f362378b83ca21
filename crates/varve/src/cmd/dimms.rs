//! `varve machine dimms`: which address bits choose the bank and the DIMM, by timing row conflicts.

use crate::ui::{Done, failed, print, wrong};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use varve_live::dimms::{Found, Lines, Meaning, Modules, find};
use varve_live::probe::{Dimm, Topology};
use varve_live::tier::Spans;
use varve_report::fmt;
use varve_run::dimm_map;

/// Which pairs are timed; others would do as well.
const SEED: u64 = 1;

const VIRTUAL: &str = "this is a virtual machine: its addresses are not those of the DIMMs, and what is found holds at most for bits within its host's pages; it says nothing of DIMMs";

pub fn dimms(count: Option<u32>, memory: u64, toml: bool, as_json: bool) -> Done {
    let (topology, _) = Topology::read(Path::new("/"));
    if memory < 16 << 20 {
        return Err(wrong("--memory: less than 16MiB shows too few banks"));
    }
    let free: u64 = topology.nodes.iter().map(|node| node.free_bytes).sum();
    if !topology.nodes.is_empty() && memory > free / 2 {
        return Err(wrong(format!(
            "--memory: {} are more than half of the {} that are free: give less",
            fmt::bytes(memory as f64),
            fmt::bytes(free as f64)
        )));
    }
    let end = end().map_err(failed)?;
    if topology.processor.virtual_machine {
        eprintln!("varve: note: {VIRTUAL}");
    }
    let lines = Lines::take(memory).map_err(failed)?;
    let found = find(lines.addresses(), SEED, &mut |a, b| lines.time(a, b)).map_err(failed)?;
    drop(lines);
    let known = modules(count, &topology.dimms, topology.nodes.len());
    let mut meaning = Meaning::of(&found, known, end);
    if topology.processor.virtual_machine {
        meaning.dimms = Err(VIRTUAL.into());
    }
    if toml {
        let map = meaning.dimms.map_err(failed)?;
        print(format!("{HEAD}\n{}", dimm_map::text(&map)));
    } else if as_json {
        let map = meaning.dimms.as_ref();
        let map = map.map(|map| {
            map.iter()
                .map(|d| json!({"name": d.name, "ranges": d.ranges}))
                .collect::<Vec<_>>()
        });
        let all = json!({
            "functions": found.functions.iter().map(|f| bits(*f)).collect::<Vec<_>>(),
            "unseen_bits": bits(found.unseen),
            "ticks": {"different_banks": found.times.0, "one_bank": found.times.1},
            "predicted": {"one_bank": found.predicted.0, "different_banks": found.predicted.1},
            "banks": meaning.banks,
            "banks_of_a_page": meaning.banks_of_a_page,
            "virtual_machine": topology.processor.virtual_machine,
            "dimms": map.as_ref().ok(),
            "dimms_unknown": map.as_ref().err(),
        });
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        said(&found, &meaning).iter().for_each(print);
    }
    Ok(ExitCode::SUCCESS)
}

const HEAD: &str = "# Found by timing row conflicts. It holds if the firmware's setup does not interleave channels: bits like these may choose ranks.";

/// The address behind the last one.
fn end() -> Result<u64, String> {
    let zones =
        std::fs::read_to_string("/proc/zoneinfo").map_err(|e| format!("/proc/zoneinfo: {e}"))?;
    let nodes = Spans::parse(&zones, 4096)?.nodes();
    let end = nodes.iter().map(|node| node.first + u64::from(node.frames));
    Ok(end.max().unwrap_or(0) * 4096)
}

/// The DIMMs that were given, or those of the firmware's tables where they all are one node's. Only equal ones have a size.
fn modules(count: Option<u32>, all: &[Dimm], nodes: usize) -> Option<Modules> {
    let dram: Vec<&Dimm> = all
        .iter()
        .filter(|dimm| dimm.kind.contains("DDR") && dimm.technology != "Optane")
        .collect();
    let told = (nodes == 1 && !dram.is_empty()).then_some(dram.len() as u32);
    let count = count.or(told)?;
    let first = dram.first().map(|dimm| dimm.bytes);
    let bytes = first.filter(|bytes| dram.iter().all(|dimm| dimm.bytes == *bytes));
    Some(Modules { count, bytes })
}

fn bits(mask: u64) -> Vec<u32> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

fn list(mask: u64, between: &str) -> String {
    let words: Vec<String> = bits(mask).iter().map(u32::to_string).collect();
    words.join(between)
}

fn said(found: &Found, meaning: &Meaning) -> Vec<String> {
    let mut lines = vec![
        format!(
            "two lines in different banks take {:.0} ticks, and in rows of one bank {:.0}",
            found.times.0, found.times.1
        ),
        format!(
            "{} banks are told apart, chosen by the XOR of these address bits:",
            meaning.banks
        ),
    ];
    lines.extend(
        found
            .functions
            .iter()
            .map(|f| format!("  {}", list(*f, " ^ "))),
    );
    lines.push(format!(
        "of fresh pairs, {:.0} % took long that should, and {:.0} % did not that should not",
        100.0 * found.predicted.0,
        100.0 * found.predicted.1
    ));
    lines.push(match meaning.banks_of_a_page {
        1 => "each page of 4 KiB is in one bank".into(),
        banks => format!("the lines of each page of 4 KiB are in {banks} banks"),
    });
    if found.unseen != 0 {
        lines.push(format!(
            "not seen, since all addresses had the same or went with others: bits {} (--memory takes more)",
            list(found.unseen, ", ")
        ));
    }
    match &meaning.dimms {
        Err(why) => lines.push(format!("no DIMM map: {why}")),
        Ok(map) => {
            lines.push("DIMMs are blocks of addresses (--toml prints this for varve tier --dimm-map), if the firmware's setup does not interleave channels:".into());
            lines.extend(dimm_map::text(map).lines().map(|line| format!("  {line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_live::tier::DimmRange;

    fn found() -> Found {
        Found {
            functions: vec![1 << 6 | 1 << 13, 1 << 34],
            unseen: 1 << 20 | 1 << 21,
            times: (301.2, 389.9),
            predicted: (0.995, 1.0),
        }
    }

    #[test]
    fn what_was_found_is_said_in_lines() {
        let meaning = Meaning::of(
            &found(),
            Some(Modules {
                count: 2,
                bytes: None,
            }),
            32 << 30,
        );
        let text = said(&found(), &meaning).join("\n");
        for part in [
            "  6 ^ 13\n  34\n",
            "4 banks are told apart",
            "in 2 banks",
            "bits 20, 21 (",
            "name = \"D1\"",
            "ranges = [\"0x400000000+16GiB\"]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let meaning = Meaning::of(&found(), None, 32 << 30);
        assert!(
            said(&found(), &meaning)
                .join("\n")
                .contains("no DIMM map: which functions")
        );
    }

    #[test]
    fn a_map_that_was_found_can_be_read_again() {
        let range = |name: &str, from: u64, to: u64| DimmRange {
            name: name.into(),
            ranges: vec![(from << 30, to << 30)],
        };
        let map = [range("D0", 0, 8), range("D1", 8, 16)];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{HEAD}\n{}", dimm_map::text(&map))).unwrap();
        assert_eq!(dimm_map::read(file.path()).unwrap(), map);
    }

    #[test]
    fn the_firmwares_dimms_count_where_they_are_one_nodes() {
        let dimm = |kind: &str, technology: &str, gib: u64| Dimm {
            locator: String::new(),
            bytes: gib << 30,
            kind: kind.into(),
            technology: technology.into(),
            megatransfers_per_second: 0,
            ranks: 0,
            part: String::new(),
        };
        let all = [
            dimm("DDR4", "DRAM", 8),
            dimm("DDR4", "DRAM", 8),
            dimm("DDR4", "Optane", 128),
        ];
        let known = |count, bytes| Some(Modules { count, bytes });
        assert_eq!(modules(None, &all, 1), known(2, Some(8 << 30)));
        assert_eq!(modules(None, &all, 2), None, "of which node?");
        assert_eq!(modules(Some(4), &all, 2), known(4, Some(8 << 30)));
        assert_eq!(modules(None, &[], 1), None);
        let unequal = [dimm("DDR5", "", 8), dimm("DDR5", "", 16)];
        assert_eq!(modules(None, &unequal, 1), known(2, None));
    }
}
