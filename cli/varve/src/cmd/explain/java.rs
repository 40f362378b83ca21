//! A plan for Java virtual machines: which generation goes where, by the plan's own answers.

use super::picture::{Memory, boxes};
use super::{Page, shown};
use crate::ui::{Failure, wrong};
use varve_observed::registry::Listed;
use varve_run::catalogue::LiveSupport;
use varve_run::jvm::{By, PLANS};
use varve_trace::Use;

/// Parts of a virtual machine's memory.
const PARTS: [(&str, Option<Use>); 4] = [
    ("young objects", Some(Use::Eden)),
    ("old objects", Some(Use::Old)),
    ("classes and code", Some(Use::Code)),
    ("stacks, and what it allocates for itself", None),
];

pub fn explain(listed: &Listed, spec: &str) -> Result<String, Failure> {
    let plan = PLANS.find(spec).map_err(wrong)?;
    let held = |fast: bool| -> Vec<&str> {
        let parts = PARTS.iter().filter(|(_, of)| plan.by.is_fast(*of) == fast);
        parts.map(|(name, _)| *name).collect()
    };
    let mut notes = Vec::new();
    if matches!(plan.by, By::Sampled(_)) {
        notes.push(
            "This is where memory is in the beginning. Then the program runs some intervals with its old objects in each memory, and they \
             stay where it pays."
                .into(),
        );
    }
    if plan.by.by_generation() {
        notes.push(
            "It is for the collectors Serial and Parallel. Under others parts of the heap change their role.".into(),
        );
    }
    Ok(Page {
        about: format!(
            "Plan {} for Java virtual machines: {}.",
            plan.name, plan.about
        ),
        shows: "Where it puts a virtual machine's memory:".into(),
        picture: boxes(&[
            Memory::new("fast memory (DRAM)", &held(true)),
            Memory::new("slow memory (Optane, CXL)", &held(false)),
        ]),
        notes,
        params: listed
            .params
            .iter()
            .map(|p| shown(p.key, p.default, p.about))
            .collect(),
        tries: match plan.live {
            LiveSupport::Only(how, _) => format!("varve {how} {spec} -- java -jar service.jar"),
            _ => format!("varve run --plan dram,{spec} -- java -jar service.jar"),
        },
        read: "docs/jvm.md".into(),
    }
    .to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_observed::registry::{Kind, plans};

    #[test]
    fn the_picture_is_what_the_plan_answers() {
        let of = |spec: &str| {
            let (name, _) = varve_spec::split(spec);
            let mut all = plans().into_iter();
            let listed = all.find(|p| p.kind == Kind::Generations && p.name == name);
            explain(&listed.unwrap(), spec).unwrap_or_else(|_| panic!("{spec}"))
        };
        let fast = |text: &str, part: &str| {
            let line = text.lines().find(|line| line.contains(part)).unwrap();
            line.find(part).unwrap() < 10
        };
        assert!(fast(&of("kg-n"), "young objects") && !fast(&of("kg-n"), "old objects"));
        assert!(fast(&of("kg-n"), "classes and code"));
        assert!(!fast(&of("kg-n:outside=slow"), "classes and code"));
        assert!(fast(&of("slow-scan"), "old objects"));
        for listed in plans().iter().filter(|p| p.kind == Kind::Generations) {
            let text = explain(listed, listed.name).unwrap_or_else(|_| panic!("{}", listed.name));
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        }
    }
}
