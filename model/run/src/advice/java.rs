//! The memory that makes the difference for a Java program, in a sentence.

use super::percent;
use crate::jvm::UseOfMemory;

/// A part is named if it has at least this share of the additional waits.
const NAMED: f64 = 0.1;

/// The parts of memory that threads wait longer for with all of it in slow memory: those that matter, the most first.
pub(crate) fn why(dram: &[UseOfMemory], slow: &[UseOfMemory]) -> Option<String> {
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
        "Of the additional waiting time in slow memory, {}{hint}.",
        named.join(", ")
    ))
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
            "Of the additional waiting time in slow memory, 70 % is for old objects, 30 % for young objects."
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
}
