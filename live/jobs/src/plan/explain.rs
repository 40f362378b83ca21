//! A plan in sentences: one for each decision.

use super::{Host, Plan};
use crate::group::{Group, Program};
use crate::kinds::Memory;
use crate::policy::order::Reason;
use varve_report::fmt;

/// Every decision of a plan, in the order in which they were made.
pub fn explain(plan: &Plan, group: &Group, host: &Host) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    out.extend(classes(plan));
    out.extend(places(plan, group, host));
    out.extend(threads(plan, group, host));
    out.extend(turns(plan));
    out
}

fn classes(plan: &Plan) -> impl Iterator<Item = String> {
    plan.programs.iter().map(|p| {
        let writes = match p.class.write_intensive {
            true => " and writes much",
            false => "",
        };
        format!("{} is {}{writes}: {}.", p.name, p.class.class, p.class.why)
    })
}

fn places(plan: &Plan, group: &Group, host: &Host) -> Vec<String> {
    if host.alike {
        return vec!["Memory is all alike here: placement decides nothing.".into()];
    }
    let place = |(p, program): (&super::Assignment, &Program)| {
        let size = fmt::bytes(p.bytes as f64);
        let there = match (p.fast_bytes, &program.inside) {
            (f, Some(inside)) if p.in_part => format!(
                "is in part in fast memory, {} of it, {}",
                fmt::bytes(f as f64),
                inside.words()
            ),
            (0, _) => format!("goes to {}", Memory::Slow.words()),
            (f, _) if f == p.bytes => format!("goes to {}", Memory::Fast.words()),
            (f, _) => format!("is split, {} of it in fast memory", fmt::bytes(f as f64)),
        };
        format!("{} ({size}) {there}: {}.", p.name, p.why_there)
    };
    plan.programs
        .iter()
        .zip(&group.programs)
        .map(place)
        .collect()
}

fn threads(plan: &Plan, group: &Group, host: &Host) -> Vec<String> {
    let sentence = |(i, p): (usize, &super::Assignment)| {
        let usual = group.programs[i].threads;
        let Some(worthwhile) = p.worthwhile else {
            return match usual {
                1 => format!("{} has one thread, as its file says.", p.name),
                _ => format!("{} has {usual} threads, as its file says.", p.name),
            };
        };
        let there = match host.alike {
            true => String::new(),
            false => format!(" in {}", p.memory.words()),
        };
        let pays = format!("the last that speeds it up by a tenth{there} is number {worthwhile}");
        match p.threads {
            t if t < usual.min(worthwhile) => format!(
                "{} has {t} of its {usual} threads: there are {} cores for all that run at once ({pays}).",
                p.name, host.cores
            ),
            t if t < usual => format!("{} has {t} of its {usual} threads: {pays}.", p.name),
            t if t > usual => format!(
                "{} has {t} threads for {usual}: others leave cores free, and {pays}.",
                p.name
            ),
            1 => format!("{} keeps its one thread: {pays}.", p.name),
            t => format!("{} keeps its {t} threads: {pays}.", p.name),
        }
    };
    plan.programs.iter().enumerate().map(sentence).collect()
}

fn turns(plan: &Plan) -> Vec<String> {
    let name = |i: usize| plan.programs[i].name.as_str();
    let turn = |(n, t): (usize, &super::expect::Turn)| {
        let when = match t.start {
            s if s > 0.0 => format!("after {}", fmt::duration_ns(s * 1e9)),
            _ => "at once".into(),
        };
        let why = match t.reason {
            Reason::Turn => "it is the next that waits".into(),
            Reason::InsteadOfDisturbed(r) => format!(
                "{} writes much to slow memory, and those before it need the bandwidth of fast memory (method 1)",
                name(r)
            ),
            Reason::InsteadOfDisturbing(r) => format!(
                "{} needs the bandwidth of fast memory, and those before it write much to slow memory (method 2)",
                name(r)
            ),
            Reason::Nevertheless(r) => format!(
                "it and {} disturb each other, but nothing else waits",
                name(r)
            ),
        };
        format!(
            "{} starts {when}, as number {}: {why}.",
            name(t.program),
            n + 1
        )
    };
    plan.expected.turns.iter().enumerate().map(turn).collect()
}
