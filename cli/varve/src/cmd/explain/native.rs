//! A plan for native programs: which allocation sites go where.

use super::picture::{Memory, boxes};
use super::{Page, shown};
use crate::ui::{Failure, wrong};
use varve_observed::registry::Listed;
use varve_run::objects::{By, PLANS};

pub fn explain(listed: &Listed, spec: &str) -> Result<String, Failure> {
    let plan = PLANS.find(spec).map_err(wrong)?;
    let two = |fast: &[&str], slow: &[&str]| {
        vec![
            Memory::new("fast memory (DRAM)", fast),
            Memory::new("slow memory (Optane, CXL)", slow),
        ]
    };
    let (memories, machine) = match plan.by {
        By::Fast | By::Arenas | By::Pages(_) => (two(&["everything"], &[]), "cxl-spr"),
        By::Slow => (two(&[], &["everything"]), "cxl-spr"),
        By::Sites(_) | By::Truth(_) => (
            two(
                &["sites that are worth most", "until the budget is full"],
                &["all other sites", "what found no room"],
            ),
            "cxl-spr",
        ),
        By::Hints => (
            two(
                &["what the program calls hot", "until the budget is full"],
                &["all else"],
            ),
            "cxl-spr",
        ),
        By::Colours(_) => (
            vec![
                Memory::new(
                    "hot DIMMs",
                    &["hot sites, in turn on each", "sites without a profile"],
                ),
                Memory::new("the other DIMMs", &["cold sites, one DIMM after the other"]),
            ],
            "haswell-2620v3",
        ),
    };
    let notes = match plan.by {
        By::Colours(_) => vec![
            "Cold are the sites that take most bytes and together have no more than the given part of all misses. DIMMs that are left over \
             sleep. It is for machines with one memory whose channels are not interleaved."
                .into(),
        ],
        By::Hints => vec![
            "A program calls memory hot or cold with varve_mcolor or varve_malloc of varve.h. On a machine with one memory its cold memory \
             is packed on DIMMs of its own, and all else is hot."
                .into(),
        ],
        _ => Vec::new(),
    };
    Ok(Page {
        about: format!("Plan {} for native programs: {}.", plan.name, plan.about),
        shows: "Where it puts a program's memory:".into(),
        picture: boxes(&memories),
        notes,
        params: listed
            .params
            .iter()
            .map(|p| shown(p.key, p.default, p.about))
            .collect(),
        tries: format!("varve run --machine {machine} --plan dram,{spec} -- COMMAND"),
        read: "docs/native.md".into(),
    }
    .to_string())
}
