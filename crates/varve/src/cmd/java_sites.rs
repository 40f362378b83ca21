//! `varve sites app.sites`: the allocation sites of a Java program, what survives, what fills the old generation, and what to do.

use crate::args::{SitesArgs, SitesBy};
use crate::ui::{Done, Failure, print, wrong};
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use std::process::ExitCode;
use varve_report::fmt::{self, Format};
use varve_report::{Better, Column, Look, RunTable, Value, table as terminal};
use varve_sites::java::Profile;
use varve_sites::java::advice::{self, Fills, Line, Size, Young};

/// Collections that the table tells of.
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
    table.notes.push(about_young(profile, &sizes, &young));
    table.notes.extend(about_old(&lines));
    print(terminal::runs(&table, Look::stdout()));
    Ok(ExitCode::SUCCESS)
}

/// What such a profile cannot answer.
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
        }
        false => table.columns.push(column("alive at end", Format::Bytes)),
    }
    let all = old(lines).max(1) as f64;
    let shown = if a.all { usize::MAX } else { a.top };
    for line in lines.iter().take(shown) {
        let mut values = vec![Value::from(line.counts.bytes as f64)];
        if has_ages {
            let surviving = |(at, _)| line.ages.surviving(at).map(percent).into();
            values.extend(SHOWN.map(surviving));
            values.push((line.ages.old_bytes as f64).into());
            values.push(percent(line.ages.old_bytes as f64 / all).into());
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
            "1st, 2nd, 4th: bytes that survive so many collections. to old: bytes that reached the old generation. of old: their share \
             of its growth."
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
    match profile.heap.young_bytes {
        0 => format!("{:.3} times its size", size.factor),
        bytes => fmt::bytes(bytes as f64 * size.factor),
    }
}

fn mebibytes(bytes: f64) -> u64 {
    (bytes / f64::from(1 << 20)).round().max(1.0) as u64
}

/// The advice on the young generation.
fn about_young(profile: &Profile, sizes: &[Size], young: &Young) -> String {
    let heap = &profile.heap;
    let promoted: u64 = profile.sites.iter().map(|s| s.ages.old_bytes).sum();
    let part = format!(
        "{} of {} allocated ({:.1} %) reach the old generation",
        fmt::bytes(promoted as f64),
        fmt::bytes(heap.allocated_bytes as f64),
        100.0 * promoted as f64 / heap.allocated_bytes.max(1) as f64
    );
    let at = match young {
        Young::Unknown(why) => {
            return format!("Young generation: which size is best is not known: {why}.");
        }
        Young::Enough => {
            return format!("Young generation: large enough: {part}.");
        }
        Young::Choose(at) => *at,
    };
    let chosen = &sizes[at];
    let option = match heap.young_bytes {
        0 => String::new(),
        bytes => format!(" (-Xmn{}m)", mebibytes(bytes as f64 * chosen.factor)),
    };
    let roomy =
        chosen.factor * heap.young_bytes as f64 > 0.75 * (heap.young_bytes + heap.old_bytes) as f64;
    let more = match heap.old_bytes > 0 && roomy {
        true => " That needs a larger heap (-Xmx).",
        false => "",
    };
    let weighed: Vec<String> = sizes
        .iter()
        .map(|size| {
            format!(
                "{} promotes {}",
                size_of(profile, size),
                fmt::bytes(size.promoted)
            )
        })
        .collect();
    format!(
        "Young generation: {part}. Take {}{option}: it is the smallest size at which no further doubling saves 10 % of what is promoted \
         and 1 % of what is allocated. By the lifetimes that were seen, {}.{more}",
        size_of(profile, chosen),
        weighed.join(", "),
    )
}

/// The advice on what fills the old generation: for each reason the lines, with their parts of it.
fn about_old(lines: &[Line]) -> Vec<String> {
    let all = old(lines).max(1) as f64;
    let fills = advice::fills(lines);
    let of = |wanted: Fills| {
        let of = fills.iter().filter(|(_, why)| *why == wanted);
        let words = of.map(|&(number, why)| {
            let Line { name, ages, .. } = &lines[number];
            let dead = 100.0 * ages.old_freed_bytes as f64 / ages.old_bytes.max(1) as f64;
            let brought = 100.0 * ages.old_bytes as f64 / all;
            match why {
                Fills::Stays => format!(
                    "{name} ({brought:.0} %, {:.0} % of that stays)",
                    100.0 - dead
                ),
                Fills::Dies => format!("{name} ({brought:.0} %, {dead:.0} % of that dies)"),
            }
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let mut notes = Vec::new();
    for (why, remedy) in [
        (
            Fills::Stays,
            "These lines fill the old generation, and what they bring stays: candidates for memory outside of the heap, or for slow \
             memory",
        ),
        (
            Fills::Dies,
            "These lines fill the old generation with what dies there: it lives a little too long for the young generation; a larger \
             one, or objects that are used again, would spare the old one",
        ),
    ] {
        let named = of(why);
        if !named.is_empty() {
            notes.push(format!("{remedy}: {named}."));
        }
    }
    notes
}

fn as_json(profile: &Profile, lines: &[Line], sizes: &[Size], young: &Young) -> Json {
    let all = old(lines).max(1) as f64;
    let fills = advice::fills(lines);
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
        let why = fills.iter().find(|(n, _)| *n == number).map(|f| match f.1 {
            Fills::Stays => "off-heap or slow memory",
            Fills::Dies => "larger young generation",
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
        "sites": lines.iter().enumerate().map(line).collect::<Vec<_>>(),
    })
}
