//! A plan for native programs: which allocation sites go where.

use super::picture::{Memory, boxes};
use super::{Page, policy, shown};
use crate::ui::Failure;
use varve_run::objects::{By, Plan};

pub fn explain(plan: &Plan) -> Result<String, Failure> {
    let memory = |title: &str, holds: &[&str]| Memory {
        title: title.into(),
        holds: holds.iter().map(|what| what.to_string()).collect(),
    };
    let two = |fast: &[&str], slow: &[&str]| {
        vec![
            memory("fast memory (DRAM)", fast),
            memory("slow memory (Optane, CXL)", slow),
        ]
    };
    let (memories, machine) = match plan.by {
        By::Pages(name) => return policy::explain(name),
        By::Fast => (two(&["everything"], &[]), "cxl-spr"),
        By::Slow => (two(&[], &["everything"]), "cxl-spr"),
        By::Sites(_) | By::Truth => (
            two(
                &["sites that are worth most", "until the budget is full"],
                &["all other sites", "what found no room"],
            ),
            "cxl-spr",
        ),
        By::Colours => (
            vec![
                memory(
                    "hot DIMMs",
                    &["hot sites, in turn on each", "sites that nobody knows"],
                ),
                memory("the other DIMMs", &["cold sites, one DIMM after the other"]),
            ],
            "haswell-2620v3",
        ),
    };
    let notes = match plan.by {
        By::Colours => vec![
            "Cold are the sites that take most bytes and together have no more than the given part of all misses. DIMMs that are left over \
             sleep. It is for machines with one memory whose channels are not interleaved."
                .into(),
        ],
        _ => Vec::new(),
    };
    Ok(Page {
        about: format!("Plan {} for native programs: {}.", plan.name, plan.about),
        shows: "Where it puts a program's memory:".into(),
        picture: boxes(&memories),
        notes,
        params: plan
            .params
            .iter()
            .map(|p| shown(p.key, p.default, p.about))
            .collect(),
        tries: format!(
            "varve run --machine {machine} --plan dram,{} -- COMMAND",
            plan.name
        ),
        read: "docs/native.md".into(),
    }
    .to_string())
}
