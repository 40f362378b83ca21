//! A page policy: where it puts pages, by its own answers for a program that touches one page after the other.

use super::picture::{Memory, boxes};
use super::{Page, shown};
use crate::ui::{Failure, wrong};
use varve_access::{Fault, Pager};
use varve_machine::Machine;
use varve_pages::policies::{self, Entry, Needs};
use varve_pages::{Placement, Topology};
use varve_run::catalogue::usual_policies;

/// Bytes of a page on the small machine that is asked.
const PAGE: u64 = 2 << 20;
/// The factor by which the machine is scaled down.
const SCALE: u32 = 64;
/// Cells of a strip of pages.
const CELLS: usize = 64;

pub fn explain(spec: &str) -> Result<String, Failure> {
    // A policy with required parameters cannot be made from its name alone, but its entry is known.
    let asking = |entry: &&Entry| entry.params.iter().any(|p| p.default.is_empty());
    let named = varve_pages::policies()
        .iter()
        .find(|entry| entry.name == spec);
    let (entry, asks) = match named.filter(asking) {
        Some(entry) => (entry, true),
        None => (policies::parse(spec).map_err(wrong)?.0, false),
    };
    let machine = match entry.needs {
        Needs::MemoryMode => "optane-6230-memory-mode",
        Needs::Any | Needs::Flat => "cxl-spr",
        Needs::Trays => "haswell-2620v3",
    };
    let mut notes = Vec::new();
    let (shows, picture) = match asks {
        true => (
            "It needs information about the program, so there is no picture of it alone.".into(),
            String::new(),
        ),
        false => pictured(spec, entry, machine, &mut notes)?,
    };
    if usual_policies().any(|policy| policy.name == entry.name) {
        notes.push(
            "It is a plan for native programs and Java virtual machines, too: --plan there takes the same parameters.".into(),
        );
    }
    let common = [&varve_pages::policies::SCALE];
    Ok(Page {
        about: format!(
            "Page policy {}: {} ({}).",
            entry.name, entry.about, entry.source
        ),
        shows,
        picture,
        notes,
        params: entry
            .params
            .iter()
            .chain(common)
            .map(|p| shown(p.key, p.default, p.about))
            .collect(),
        tries: format!(
            "varve run gups:hot=10% --machine {machine} \\\n             --policy first-touch,{}",
            entry.name
        ),
        read: "docs/policies.md".into(),
    }
    .to_string())
}

/// The caption and the picture.
fn pictured(
    spec: &str,
    entry: &Entry,
    machine: &str,
    notes: &mut Vec<String>,
) -> Result<(String, String), Failure> {
    let mut machine = Machine::load(machine).map_err(wrong)?.scaled(SCALE);
    machine.sockets = 1;
    let topology = Topology::of(&machine, PAGE).map_err(wrong)?;
    let mut placement = Placement::on(spec, topology.clone()).map_err(wrong)?;
    let fast = topology.frames_of(true);
    let bins = topology.nodes[0].bins;
    // The pages that fill the cache; or, with slow memory, 1.5 times the pages that fill fast memory.
    let pages = match bins {
        Some(bins) => u64::from(bins),
        None => u64::from(fast) * 3 / 2,
    };
    let mut frames = Vec::new();
    for vpn in 0..pages {
        let fault = Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        match placement.fault(&fault) {
            Ok(frame) => frames.push(frame),
            Err(_) => break,
        }
    }
    let daemons = placement.daemons();
    if daemons.period > 0 {
        notes.push(format!(
            "Later it migrates pages: it runs every {} ms, and samples one access in {}.",
            daemons.period as f64 / 1e6,
            daemons.sample_period.max(1)
        ));
    }
    if frames.len() < pages as usize {
        notes.push("Then it is out of memory: it uses no other.".into());
    }
    if let Some(bins) = bins {
        return Ok((
            "A program touches as many pages as fit into the DRAM cache. How many bins of the cache get how many of them (a page more than \
             a bin holds is a conflict):"
                .into(),
            crowds(&frames, bins),
        ));
    }
    if entry.needs == Needs::Trays {
        return Ok((
            "A program touches half as many pages again as there are in the first DIMM. Where they are:".into(),
            strip(&placement, &frames),
        ));
    }
    Ok((
        "A program touches one page after the other, until fast memory is full and then half as many again. Where they are, from the first \
         to the last:"
            .into(),
        strip(&placement, &frames),
    ))
}

/// Bins by the pages in them.
fn crowds(frames: &[u32], bins: u32) -> String {
    let mut pages = vec![0u32; bins as usize];
    for frame in frames {
        pages[(frame % bins) as usize] += 1;
    }
    let mut text = String::new();
    for n in 0..4 {
        let here = |p: &&u32| if n < 3 { **p == n } else { **p >= n };
        let share = pages.iter().filter(here).count() as f64 / f64::from(bins);
        let label = match n {
            0 => "no page",
            1 => "one page",
            2 => "two pages",
            _ => "more",
        };
        let bar = "█".repeat((share * CELLS as f64 * 0.8).round() as usize);
        text.push_str(&format!("  {label:<10} {bar} {:.0} %\n", 100.0 * share));
    }
    text.trim_end().into()
}

/// Pages in the order in which they were touched, by memory.
fn strip(placement: &Placement, frames: &[u32]) -> String {
    let is_fast = |f: &u32| placement.frames().is_fast(*f);
    let fast = frames.iter().filter(|f| is_fast(f)).count();
    let cells = (0..CELLS).map(|i| {
        let of = &frames[i * frames.len() / CELLS..(i + 1) * frames.len() / CELLS];
        let fast = of.iter().filter(|f| is_fast(f)).count();
        match (fast, of.len() - fast) {
            (0, _) => 's',
            (_, 0) => 'F',
            _ => '+',
        }
    });
    let share = |n: usize| 100.0 * n as f64 / frames.len().max(1) as f64;
    let memory = |title: &str, pages: usize| Memory {
        title: title.into(),
        holds: vec![format!("{:.0} % of the pages", share(pages))],
    };
    let all = [
        memory("fast memory (DRAM)", fast),
        memory("slow memory", frames.len() - fast),
    ];
    format!(
        "{}\n  {}\n  F in fast memory, s in slow memory, + some in each",
        boxes(&all),
        cells.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_explained_on_half_a_screen() {
        for entry in varve_pages::policies() {
            let Ok(text) = explain(entry.name) else {
                panic!("{}", entry.name)
            };
            let parameters = text.lines().filter(|l| l.starts_with("  ")).count();
            assert!(text.lines().count() - parameters <= 24, "{text}");
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        }
    }

    #[test]
    fn the_picture_is_where_the_policy_puts_pages() {
        let text = |name: &str| explain(name).unwrap_or_else(|_| panic!("{name}"));
        assert!(
            text("slow").contains("│ 100 % of the pages"),
            "{}",
            text("slow")
        );
        assert!(text("slow").contains(&"s".repeat(CELLS)));
        let linux = text("first-touch");
        let line = linux.lines().find(|l| l.contains("FF")).unwrap().trim();
        assert!(
            line.starts_with("FFFF") && line.ends_with("ssss"),
            "{linux}"
        );
        assert!(text("hotset").contains("Later it migrates pages"));
        // Each page has a bin of its own.
        let own = text("static");
        assert!(own.contains("one page") && own.contains("100 %"), "{own}");
    }
}
