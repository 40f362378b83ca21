//! What to do with a Java program, in two sentences: which plan, and whose memory makes the difference.

use super::shares::{self, BASE};
use varve_report::fmt;
use varve_run::jvm::{self, JavaResult, UseOfMemory};

/// Within this factor two times count as equal.
const EQUAL: f64 = 1.03;
/// A part that takes so much of what threads wait longer is named.
const NAMED: f64 = 0.1;

/// How many times as long as the base.
pub fn slowdown(r: &JavaResult, base: &JavaResult) -> f64 {
    r.seconds / base.seconds.max(f64::MIN_POSITIVE)
}

/// Which plan to use, and why; nothing where there is nothing to choose from.
pub fn advice(results: &[JavaResult]) -> Vec<String> {
    let Some(dram) = results.iter().find(|r| r.plan == BASE) else {
        return Vec::new();
    };
    let time = |r: &JavaResult| slowdown(r, dram);
    let more = |r: &JavaResult| percent(time(r) - 1.0);
    let less = |r: &JavaResult| percent(dram.dram_share() - r.dram_share());
    let chosen = shares::least(results, |r| r.dram_share(), time, EQUAL);
    let what = match chosen {
        Some((r, true)) if r.plan == "slow" => format!(
            "Advice: all of it may be in slow memory, for {} more time.",
            more(r)
        ),
        Some((r, true)) => format!(
            "Advice: use `{}`{}: {} of the memory leaves DRAM, for {} more time.",
            r.plan,
            about(&r.plan),
            less(r),
            more(r)
        ),
        Some((r, false)) => format!(
            "Advice: stay with `{BASE}` if time counts most. Next is `{}`{}: {} of the memory leaves DRAM, for {} more time.",
            r.plan,
            about(&r.plan),
            less(r),
            more(r)
        ),
        None if results.len() == 1 => return Vec::new(),
        None => format!("Advice: stay with `{BASE}`: no other plan of these takes less DRAM."),
    };
    let slow = results.iter().find(|r| r.plan == "slow");
    let slow = slow.filter(|slow| time(slow) > EQUAL);
    let why = slow.and_then(|slow| why(&dram.memory, &slow.memory));
    std::iter::once(what).chain(why).collect()
}

/// What a plan does, where its name does not say it.
fn about(spec: &str) -> String {
    let name = spec.split(" at ").next().unwrap_or_default();
    let about = jvm::plan(name).map(|(plan, _)| plan.about).ok();
    // What stands in brackets is where it comes from.
    let about = about.and_then(|about| about.split(" (").next());
    about.map_or(String::new(), |about| format!(" ({about})"))
}

/// Whose memory threads wait longer for with all of it in slow memory: the parts that matter, the most first.
fn why(dram: &[UseOfMemory], slow: &[UseOfMemory]) -> Option<String> {
    let parts: [(&str, &[&str]); 5] = [
        ("old objects", &["old"]),
        ("young objects", &["young", "eden", "survivor"]),
        ("the heap", &["heap"]),
        ("classes and code", &["metaspace", "code"]),
        ("memory outside of the heap", &["outside"]),
    ];
    let waited = |memory: &[UseOfMemory], names: &[&str]| -> f64 {
        let of = memory.iter().filter(|part| names.contains(&&*part.name));
        of.map(|part| part.waited_seconds).sum()
    };
    let mut longer: Vec<(&str, f64)> = parts
        .into_iter()
        .map(|(name, of)| (name, (waited(slow, of) - waited(dram, of)).max(0.0)))
        .collect();
    let all: f64 = longer.iter().map(|(_, seconds)| seconds).sum();
    if all <= 0.0 {
        return None;
    }
    longer.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (most, _) = longer[0];
    let named: Vec<String> = longer
        .iter()
        .filter(|(_, seconds)| seconds / all >= NAMED)
        .enumerate()
        .map(|(number, (name, seconds))| {
            let verb = if number == 0 { "is " } else { "" };
            format!("{} {verb}for {name}", percent(seconds / all))
        })
        .collect();
    let hint = match most {
        "memory outside of the heap" | "classes and code" => {
            "; a start weighs much in so short a run, and --marked leaves it out"
        }
        _ => "",
    };
    Some(format!(
        "Of what threads wait longer in slow memory, {}{hint}.",
        named.join(", ")
    ))
}

fn percent(share: f64) -> String {
    format!("{} %", fmt::significant(100.0 * share.max(0.0), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(parts: &[(&str, f64)]) -> Vec<UseOfMemory> {
        let part = |&(name, waited_seconds): &(&str, f64)| UseOfMemory {
            name: name.into(),
            fast_bytes: 0,
            slow_bytes: 0,
            read_bytes: 0,
            load_misses: 0,
            store_misses: 0,
            waited_seconds,
        };
        parts.iter().map(part).collect()
    }

    #[test]
    fn what_makes_the_difference_is_named_the_most_first() {
        let dram = memory(&[
            ("eden", 1.0),
            ("survivor", 1.0),
            ("old", 5.0),
            ("code", 1.0),
        ]);
        let slow = memory(&[
            ("eden", 2.0),
            ("survivor", 3.0),
            ("old", 12.0),
            ("code", 0.9),
        ]);
        assert_eq!(
            why(&dram, &slow).unwrap(),
            "Of what threads wait longer in slow memory, 70 % is for old objects, 30 % for young objects."
        );
        assert_eq!(why(&dram, &dram), None);
    }

    #[test]
    fn a_start_is_told_from_work() {
        let dram = memory(&[("outside", 1.0), ("heap", 1.0)]);
        let slow = memory(&[("outside", 3.0), ("heap", 1.1)]);
        let said = why(&dram, &slow).unwrap();
        assert!(
            said.contains("95 % is for memory outside of the heap; a start"),
            "{said}"
        );
        assert!(!said.contains("for the heap"), "{said}");
    }

    #[test]
    fn what_a_plan_does_stands_beside_its_name() {
        assert_eq!(
            about("kg-n:outside=slow"),
            " (the young generation in fast memory, the old one in slow memory)"
        );
        assert_eq!(about("hotset at 10%").matches('(').count(), 1);
    }
}
