//! `varve sites app.sites`: the allocation sites of a Java program, what survives, what fills the old generation, and what to do.

use crate::args::{SitesArgs, SitesBy};
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use std::process::ExitCode;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, RunTable, Value, table as terminal};
use varve_sites::java::advice::{self, Fills, Line, Size, Skewed, Young};
use varve_sites::java::{Ages, Profile};

/// Collections with a column in the table.
const SHOWN: [(usize, &str); 3] = [(1, "1st"), (2, "2nd"), (4, "4th")];

pub fn sites(a: &SitesArgs, profile: &Profile) -> Done {
    usable(a)?;
    let mut lines = advice::lines(profile);
    lines.sort_by_cached_key(|line| {
        let first = match a.by {
            Some(SitesBy::Bytes) => line.counts.bytes,
            Some(SitesBy::Objects) => line.counts.objects,
            _ => line.ages.old_bytes,
        };
        (Reverse((first, line.counts.bytes)), line.name.clone())
    });
    let sizes = advice::sizes(profile);
    let young = advice::young(profile, &sizes);
    if a.json {
        print(as_json(profile, &lines, &sizes, &young));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table(a, profile, &lines);
    table.notes.extend(about(profile));
    table.notes.extend(about_heap(profile));
    table.notes.push(about_young(profile, &sizes, &young));
    table.notes.extend(about_old(profile, &lines));
    table
        .notes
        .extend(about_fast(profile, &lines, &sizes, &young));
    print(terminal::runs(&table, Look::stdout()));
    Ok(ExitCode::SUCCESS)
}

/// Refuses options that such a profile does not support.
fn usable(a: &SitesArgs) -> Result<(), Failure> {
    let other = |option: &str, what: &str| {
        Err(wrong(format!(
            "{option} is for profiles with {what}, and this is one of a Java program's allocations: leave it out"
        )))
    };
    match (&a.fast, &a.heuristic, a.by) {
        (Some(fast), _, _) => other(&format!("--fast {fast}"), "accesses"),
        (_, Some(plans), _) => other(&format!("--heuristic {plans}"), "accesses"),
        (_, _, Some(SitesBy::Accesses)) => other("--by accesses", "accesses"),
        (_, _, Some(SitesBy::Writes)) => other("--by writes", "accesses"),
        _ => Ok(()),
    }
}

fn old(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.ages.old_bytes).sum()
}

/// Percent, without digits that samples do not bear.
fn percent(part: f64) -> f64 {
    (1000.0 * part).round() / 10.0
}

fn table(a: &SitesArgs, profile: &Profile, lines: &[Line]) -> RunTable {
    let heap = &profile.heap;
    let title = format!(
        "{}: what it allocates, and what survives (Java {}, {})",
        profile.program, heap.java, heap.collector
    );
    let mut table = RunTable::new(title, "line and class");
    let column = |name: &str, format| Column::new(name, format, Better::Neither);
    let has_ages = !heap.old_by.is_empty();
    table.columns.push(column("bytes", Format::Bytes));
    match has_ages {
        true => {
            let survive = |(_, name)| column(name, Format::Percent);
            table.columns.extend(SHOWN.map(survive));
            table.columns.push(column("to old", Format::Bytes));
            table.columns.push(column("of old", Format::Percent));
            table.columns.push(column("stays", Format::Percent));
            table.columns.push(column("in use", Format::Percent));
        }
        false => table.columns.push(column("alive at end", Format::Bytes)),
    }
    let all = old(lines).max(1) as f64;
    let known = advice::is_old_known(profile);
    let shown = if a.all { usize::MAX } else { a.top };
    for line in lines.iter().take(shown) {
        let mut values = vec![Value::from(line.counts.bytes as f64)];
        if has_ages {
            let surviving = |(at, _)| line.ages.surviving(at).map(percent).into();
            values.extend(SHOWN.map(surviving));
            values.push((line.ages.old_bytes as f64).into());
            values.push(percent(line.ages.old_bytes as f64 / all).into());
            values.push(stays(line).filter(|_| known).map(percent).into());
            values.push(line.ages.used().map(percent).into());
        } else {
            values.push((line.ages.live_bytes as f64).into());
        }
        table.push(line.name.clone(), values);
    }
    if lines.len() > shown {
        table.notes.push(format!(
            "... {} more: --all shows them, --json tells all of each",
            lines.len() - shown
        ));
    }
    if has_ages {
        table.notes.push(
            "1st, 2nd, 4th: bytes that survive one, two, four collections. to old: bytes that reached the old generation. of old: their \
             share of its growth. stays: of them, what was not found dead. in use: of what is old, the share whose page was used in a \
             fiftieth of a second."
                .into(),
        );
    }
    table
}

/// How it was sampled, and how it is known what is old.
fn about(profile: &Profile) -> Vec<String> {
    let (heap, sampled) = (&profile.heap, &profile.sampled);
    let samples: u64 = profile.sites.iter().map(|s| s.counts.samples).sum();
    let mut notes = vec![format!(
        "From {} samples of {}, one in {} of each thread, in {:.1} s.",
        fmt::integer(samples as f64),
        fmt::bytes(heap.allocated_bytes as f64),
        fmt::bytes(sampled.interval_bytes as f64),
        sampled.milliseconds as f64 / 1000.0
    )];
    notes.extend(advice::skewed(profile).map(|skewed| {
        let java = heap.java;
        match skewed {
            Skewed::WithoutBuffers => format!(
                "Without TLABs (-XX:-UseTLAB) Java {java} takes few of its samples: bytes are far too small. Leave the flag out; Java {} is \
                 right.",
                advice::UNSKEWED
            ),
            Skewed::BesideLarge => format!(
                "Java {java} samples objects of some {} too seldom, and others beside them too often: by a third and a quarter in a test. \
                 Java {} is right.",
                fmt::bytes(sampled.interval_bytes as f64),
                advice::UNSKEWED
            ),
        }
    }));
    let by = match &*heap.old_by {
        "address" => "by its address",
        "age" => "by its age",
        _ => return notes,
    };
    notes.push(format!(
        "{} young and {} full collections; an object was known to be old {by}.",
        heap.young_collections, heap.full_collections
    ));
    notes
}

fn size_of(profile: &Profile, size: &Size) -> String {
    let bytes = profile.heap.young_bytes as f64 * size.factor;
    match profile.heap.young_bytes {
        0 => format!("{} times its size", fmt::significant(size.factor, 3)),
        _ => format!("{} (-Xmn{}m)", fmt::bytes(bytes), mebibytes(bytes)),
    }
}

fn mebibytes(bytes: f64) -> u64 {
    (bytes / f64::from(1 << 20)).round().max(1.0) as u64
}

fn whole_percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// Whether the heap is too small.
fn about_heap(profile: &Profile) -> Option<String> {
    let (heap, seconds) = (&profile.heap, profile.sampled.milliseconds as f64 / 1000.0);
    advice::is_heap_short(profile).then(|| {
        format!(
            "Heap: too small, or the program calls System.gc(): {} full collections, and pauses take {} of {seconds:.1} s. Take a larger one (-Xmx).",
            heap.full_collections,
            whole_percent(heap.paused_ms as f64 / 1000.0 / seconds)
        )
    })
}

/// The advice on the young generation.
fn about_young(profile: &Profile, sizes: &[Size], young: &Young) -> String {
    let heap = &profile.heap;
    let promoted: u64 = profile.sites.iter().map(|s| s.ages.old_bytes).sum();
    let part = format!(
        "{:.1} % of what is allocated reaches the old one",
        100.0 * promoted as f64 / heap.allocated_bytes.max(1) as f64
    );
    let chosen = match young {
        Young::Unknown(why) => return format!("Young generation: {part}. No advice: {why}."),
        Young::Enough => return format!("Young generation: large enough: {part}."),
        Young::Choose(at) => &sizes[*at],
    };
    let now = sizes.iter().find(|size| size.factor == 1.0);
    let beside_now = chosen.promoted / now.map_or(chosen.promoted, |now| now.promoted).max(1.0);
    let size = size_of(profile, chosen);
    if chosen.factor <= 1.0 {
        let smaller = match chosen.factor < 1.0 {
            true => format!(
                " {size} would do: it promotes {} times as much.",
                fmt::significant(beside_now, 3)
            ),
            false => String::new(),
        };
        return format!(
            "Young generation: large enough: {part}, and more would save little.{smaller}"
        );
    }
    let roomy =
        chosen.factor * heap.young_bytes as f64 > 0.75 * (heap.young_bytes + heap.old_bytes) as f64;
    let more = match heap.old_bytes > 0 && roomy {
        true => " That needs a larger heap (-Xmx).",
        false => "",
    };
    format!(
        "Young generation: {part}. Take {size}: it promotes {} less, and more would save little.{more}",
        whole_percent(1.0 - beside_now)
    )
}

/// Of what a line brought to the old generation, the share that was not found dead there.
fn stays(line: &Line) -> Option<f64> {
    let Ages {
        old_bytes,
        old_freed_bytes,
        ..
    } = line.ages;
    (old_bytes > 0).then(|| 1.0 - old_freed_bytes as f64 / old_bytes as f64)
}

/// The advice on what fills the old generation: a sentence for each reason, with the line that brings most.
fn about_old(profile: &Profile, lines: &[Line]) -> Vec<String> {
    let all = old(lines).max(1) as f64;
    let fills = advice::fills(lines);
    let brought = |of: &[usize]| -> f64 {
        let bytes = of.iter().map(|&number| lines[number].ages.old_bytes);
        bytes.sum::<u64>() as f64 / all
    };
    let said = |of: &[usize], what: &str| {
        let first = lines.get(*of.first()?)?;
        Some(match of.len() {
            1 => format!(
                "Old generation: {} is of {}{what}.",
                whole_percent(brought(of)),
                first.name
            ),
            n => format!(
                "Old generation: {} is of {n} lines{what}; most is of {}.",
                whole_percent(brought(of)),
                first.name
            ),
        })
    };
    // Without a collection of the old generation all of it seems to stay.
    let known = advice::is_old_known(profile);
    let stays = if known { ", mostly stays," } else { "" };
    let unknown = match known {
        true => ", and mostly stays; whether it is used is not known",
        false => "",
    };
    let kinds = [
        (
            Fills::Cold,
            format!(
                "{stays} and is hardly used: for slow memory, or for memory outside of the heap"
            ),
        ),
        (Fills::Used, format!("{stays} and is used: for fast memory")),
        (Fills::Stays, unknown.into()),
        (
            Fills::Dies,
            ", and mostly dies there: for a larger young generation, or for reuse of objects"
                .into(),
        ),
    ];
    let said = |(wanted, what): (Fills, String)| {
        let kind = |why| match why {
            Fills::Dies if !known => Fills::Stays,
            why => why,
        };
        let of = fills.iter().filter(|(_, why)| kind(*why) == wanted);
        said(&of.map(|&(number, _)| number).collect::<Vec<_>>(), &what)
    };
    kinds.into_iter().filter_map(said).collect()
}

/// How much of the heap was used, where that is known: shares, since counts of several runs add up.
fn about_fast(profile: &Profile, lines: &[Line], sizes: &[Size], young: &Young) -> Option<String> {
    let old = advice::old(lines);
    let all = old.used + old.cold + old.unknown;
    // So much is unknown that the shares would say nothing.
    let unknown = !advice::is_old_known(profile) || 3 * old.unknown > all;
    if unknown || all == 0 || advice::is_heap_short(profile) {
        return None;
    }
    let factor = match young {
        Young::Choose(at) => sizes[*at].factor,
        Young::Enough | Young::Unknown(_) => 1.0,
    };
    let young = match profile.heap.young_bytes as f64 * factor {
        0.0 => String::new(),
        bytes => format!(" ({})", fmt::bytes(bytes)),
    };
    let cold = old.cold as f64 / all as f64;
    Some(format!(
        "Fast memory: for the young generation{young} and {} of what stays in the old one. The other {} were hardly used while it was \
         sampled.",
        whole_percent(1.0 - cold),
        whole_percent(cold)
    ))
}

fn as_json(profile: &Profile, lines: &[Line], sizes: &[Size], young: &Young) -> Json {
    let all = old(lines).max(1) as f64;
    let fills = advice::fills(lines);
    let old = advice::old(lines);
    let size = |s: &Size| {
        json!({
            "factor": s.factor,
            "young_bytes": match profile.heap.young_bytes {
                0 => None,
                bytes => Some((bytes as f64 * s.factor) as u64),
            },
            "bytes_between_collections": s.between as u64,
            "promoted_bytes": s.promoted as u64,
        })
    };
    let advice = match young {
        Young::Unknown(why) => json!({ "unknown": why }),
        Young::Enough => json!({ "enough": true }),
        Young::Choose(at) => json!({ "choose": size(&sizes[*at]) }),
    };
    let line = |(number, line): (usize, &Line)| {
        let (c, ages) = (&line.counts, &line.ages);
        let last = ages.survived.len().max(ages.died.len());
        let surviving: Vec<Option<f64>> = (1..=last).map(|at| ages.surviving(at)).collect();
        let why = fills.iter().find(|(n, _)| *n == number);
        let why = why.and_then(|f| match f.1 {
            Fills::Cold => Some("slow memory or off-heap"),
            Fills::Used => Some("fast memory"),
            Fills::Dies => Some("larger young generation"),
            Fills::Stays => None,
        });
        let stacks = line.sites.iter().map(|&site| &profile.sites[site]);
        let stacks = stacks.map(|site| {
            json!({
                "class": site.class, "frames": site.stack,
                "objects": site.counts.objects, "bytes": site.counts.bytes,
                "old_bytes": site.ages.old_bytes,
            })
        });
        json!({
            "site": line.name,
            "objects": c.objects, "bytes": c.bytes, "samples": c.samples,
            "survived": ages.survived, "died": ages.died, "surviving": surviving,
            "old_objects": ages.old_objects, "old_bytes": ages.old_bytes,
            "old_share": ages.old_bytes as f64 / all,
            "old_freed_bytes": ages.old_freed_bytes,
            "looks": ages.looks, "used_share": ages.used(),
            "live_objects": ages.live_objects, "live_bytes": ages.live_bytes,
            "freed": c.freed, "lifetime_bytes": c.lifetime_bytes,
            "candidate_for": why,
            "stacks": stacks.collect::<Vec<_>>(),
        })
    };
    json!({
        "program": profile.program, "command": profile.command,
        "heap": profile.heap, "sampled": profile.sampled,
        "lifetimes": profile.lifetimes,
        "young_sizes": sizes.iter().map(size).collect::<Vec<_>>(),
        "young": advice,
        "old": { "used_bytes": old.used, "cold_bytes": old.cold, "unknown_bytes": old.unknown },
        "sites": lines.iter().enumerate().map(line).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_sites::java::Heap;

    /// Lines with bytes that they promoted to the old generation, and bytes of these that were found dead there.
    fn lines(all: &[(&str, u64, u64)]) -> Vec<Line> {
        let line = |&(name, old_bytes, old_freed_bytes): &(&str, u64, u64)| Line {
            name: name.into(),
            ages: Ages {
                old_bytes,
                old_freed_bytes,
                ..Ages::default()
            },
            ..Line::default()
        };
        all.iter().map(line).collect()
    }

    fn collected(full_collections: u64) -> Profile {
        let heap = Heap {
            full_collections,
            ..Heap::default()
        };
        Profile {
            heap,
            ..Profile::default()
        }
    }

    #[test]
    fn what_stays_in_the_old_generation_is_told_from_what_dies_there() {
        let all = lines(&[
            ("A.java:1 A", 60, 0),
            ("B.java:2 B", 20, 0),
            ("C.java:3 C", 18, 18),
            ("D.java:4 D", 2, 2),
        ]);
        assert_eq!(
            about_old(&collected(1), &all),
            [
                "Old generation: 80 % is of 2 lines, and mostly stays; whether it is used is not known; most is of \
                 A.java:1 A.",
                "Old generation: 18 % is of C.java:3 C, and mostly dies there: for a larger young generation, or for reuse of objects."
            ]
        );
        // Without a full collection, the dead part is unknown.
        assert_eq!(
            about_old(&collected(0), &all),
            ["Old generation: 98 % is of 3 lines; most is of A.java:1 A."]
        );
        assert_eq!(about_old(&collected(1), &[]), [""; 0]);
    }

    #[test]
    fn a_smaller_young_generation_is_named_only_where_it_would_do() {
        let size = |factor, promoted| Size {
            factor,
            between: factor,
            promoted,
        };
        let mut profile = collected(1);
        (profile.heap.young_bytes, profile.heap.allocated_bytes) = (8 << 20, 1 << 30);
        let sizes = [size(0.5, 1.5e6), size(1.0, 1e6), size(4.0, 1e5)];
        let said = |at| about_young(&profile, &sizes, &Young::Choose(at));
        assert!(said(0).contains("4 MiB (-Xmn4m) would do: it promotes 1.5 times as much"));
        assert!(said(1).ends_with("more would save little."));
        assert!(said(2).contains("Take 32 MiB (-Xmn32m): it promotes 90 % less"));
    }
}
