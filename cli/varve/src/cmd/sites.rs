//! `varve sites p.sites`: the allocation sites of a profile, and which memory each heuristic wants them in.

use super::{java_sites, native_sites};
use crate::args::{SitesArgs, SitesBy};
use crate::ui::{Done, Failure, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_report::fmt::Format;
use varve_runtime::plans;
use varve_sites::{AnyProfile, Counts, Profile, SiteProfile};

/// Columns of a terminal.
const WIDTH: usize = 80;
const FAST: char = '■';
const SLOW: char = '·';

const SI: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
const IEC: &[(f64, &str)] = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1048576.0, "MiB"),
    (1073741824.0, "GiB"),
];

/// A heuristic, and for each site of the profile whether it wants its objects in DRAM.
struct Judged {
    heuristic: String,
    hot: Vec<bool>,
}

pub fn sites(a: &SitesArgs) -> Done {
    let mut profile = match AnyProfile::read(&a.profile).map_err(wrong)? {
        AnyProfile::Managed(profile) => profile,
        AnyProfile::Native(profile) => return native_sites::sites(a, &profile),
        AnyProfile::Java(profile) => return java_sites::sites(a, &profile),
    };
    if let Some(fast) = &a.fast {
        return Err(wrong(format!(
            "--fast {fast} is for profiles of native programs, and this is one of a WebAssembly program: leave it out"
        )));
    }
    profile.sites.sort_by_cached_key(|site| {
        let c = &site.counts;
        let first = match a.by.unwrap_or(SitesBy::Accesses) {
            SitesBy::Accesses => old(c),
            SitesBy::Writes => c.old_writes,
            SitesBy::Bytes => c.bytes,
            SitesBy::Objects => c.objects,
            SitesBy::Old => c.survived_bytes,
        };
        (std::cmp::Reverse((first, c.bytes)), site.key.clone())
    });
    let judged = judged(&profile, a.heuristic.as_deref())?;
    match a.json {
        true => print(json(&profile, &judged)),
        false => print(text(a, &profile, &judged)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Accesses to what survived.
fn old(c: &Counts) -> u64 {
    c.old_reads.saturating_add(c.old_writes)
}

/// The results of the heuristics in a list; without one, of all that need only a profile.
fn judged(profile: &Profile, list: Option<&str>) -> Result<Vec<Judged>, Failure> {
    let usual: Vec<&str> = plans::plans()
        .iter()
        .filter(|p| p.profile && !p.intervals)
        .map(|p| p.name)
        .collect();
    let specs = varve_spec::expand(list.unwrap_or(varve_spec::ALL), &usual);
    let judge = |spec: &String| {
        let entry = plans::entry(spec).map_err(wrong)?;
        if !entry.profile {
            return Err(wrong(format!(
                "heap plan `{}` uses no profile; heuristics that do are {}",
                entry.name,
                usual.join(", ")
            )));
        }
        let plan = plans::by_name(spec, Some(profile)).map_err(wrong)?.plan;
        let hot = profile.sites.iter().map(|site| {
            plan.is_hot(varve_runtime::GcSite {
                key: &site.key,
                hinted: false,
            })
        });
        Ok(Judged {
            heuristic: spec.clone(),
            hot: hot.collect(),
        })
    };
    specs.iter().map(judge).collect()
}

fn json(profile: &Profile, judged: &[Judged]) -> serde_json::Value {
    let site = |(number, site): (usize, &SiteProfile)| {
        let memory = |j: &Judged| {
            let memory = if j.hot[number] { "dram" } else { "slow" };
            (j.heuristic.clone(), json!(memory))
        };
        let c = &site.counts;
        json!({
            "function": site.key.function, "type": site.key.ty, "nth": site.key.nth,
            "offset": site.offset, "line": site.line,
            "objects": c.objects, "bytes": c.bytes,
            "survivors": c.survivors, "survived_bytes": c.survived_bytes,
            "reads": c.reads, "writes": c.writes,
            "old_reads": c.old_reads, "old_writes": c.old_writes,
            "accesses": c.accesses,
            "memory": judged.iter().map(memory).collect::<serde_json::Map<_, _>>(),
        })
    };
    let sites: Vec<_> = profile.sites.iter().enumerate().map(site).collect();
    json!({ "program": profile.program, "sites": sites })
}

fn text(a: &SitesArgs, profile: &Profile, judged: &[Judged]) -> String {
    let made = profile.sites.iter().filter(|s| s.counts.objects > 0);
    let made = made.count();
    let shown: Vec<usize> = (0..profile.sites.len())
        .filter(|&n| profile.sites[n].counts.objects > 0)
        .take(if a.all { usize::MAX } else { a.top })
        .collect();
    let mut lines = vec![
        format!(
            "{}: {made} allocation sites with objects, {} without",
            printable(&profile.program),
            profile.sites.len() - made
        ),
        String::new(),
    ];
    lines.extend(table(profile, judged, &shown));
    if shown.len() < made {
        lines.push(format!(
            "... {} more: --all shows them, --json tells all of each",
            made - shown.len()
        ));
    }
    lines.push(String::new());
    lines.push(
        "lived: bytes that survived the nursery; reads, writes: of those, from then on.".into(),
    );
    lines.push(format!(
        "{FAST} DRAM, {SLOW} slow memory, in the judgement of"
    ));
    for (number, j) in judged.iter().enumerate() {
        lines.push(summary(number + 1, j, profile));
    }
    lines.join("\n")
}

/// The summary of a heuristic.
fn summary(number: usize, j: &Judged, profile: &Profile) -> String {
    let sum = |of: &dyn Fn(&Counts) -> u64, hot_only: bool| {
        let of_site = |(site, &hot): (&SiteProfile, &bool)| match hot || !hot_only {
            true => of(&site.counts),
            false => 0,
        };
        let all = profile.sites.iter().zip(&j.hot).map(of_site);
        all.fold(0u64, u64::saturating_add) as f64
    };
    let share = |of: &dyn Fn(&Counts) -> u64| 100.0 * sum(of, true) / sum(of, false).max(1.0);
    let sites = profile.sites.iter().zip(&j.hot);
    let hot = sites.filter(|(site, hot)| **hot && site.counts.objects > 0);
    // One with parameters has a line of its own.
    let name = match j.heuristic.len() {
        0..=12 => format!("{:<12}", j.heuristic),
        _ => format!("{}\n     {:<12}", j.heuristic, ""),
    };
    format!(
        "  {number}  {name} {:>5} sites, {:>5.1} % of what survived, {:>5.1} % of its accesses",
        hot.count(),
        share(&|c| c.survived_bytes),
        share(&old),
    )
}

/// A row for each of the sites by number, under headings with units.
fn table(profile: &Profile, judged: &[Judged], shown: &[usize]) -> Vec<String> {
    let of = |f: &dyn Fn(&Counts) -> f64| {
        let values = shown.iter().map(|&n| f(&profile.sites[n].counts));
        values.collect::<Vec<f64>>()
    };
    let columns = [
        ("objects", scaled(&of(&|c| c.objects as f64), SI)),
        ("bytes", scaled(&of(&|c| c.bytes as f64), IEC)),
        (
            "lived",
            Format::Percent.column(
                "",
                &of(&|c| (100.0 * c.survived_bytes as f64 / c.bytes.max(1) as f64).round()),
            ),
        ),
        ("reads", scaled(&of(&|c| c.old_reads as f64), SI)),
        ("writes", scaled(&of(&|c| c.old_writes as f64), SI)),
    ];
    let widths = columns.iter().map(|(name, (unit, cells))| {
        let cells = cells.iter().map(|c| c.chars().count());
        cells.chain([name.len(), unit.len() + 2]).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let (mut names, mut units) = (String::new(), String::new());
    for ((name, (unit, _)), &width) in columns.iter().zip(&widths) {
        names += &format!("{name:>width$} ");
        let unit = match unit.is_empty() {
            true => String::new(),
            false => format!("({unit})"),
        };
        units += &format!("{unit:>width$} ");
    }
    for number in 1..=judged.len() {
        names += &format!("{number} ");
        units += "  ";
    }
    names += "made in, type";
    let mut lines = vec![names, units.trim_end().into(), "─".repeat(WIDTH)];
    for (row, &number) in shown.iter().enumerate() {
        let mut line = String::new();
        for ((_, (_, cells)), &width) in columns.iter().zip(&widths) {
            line += &format!("{:>width$} ", cells[row]);
        }
        for j in judged {
            line.push(if j.hot[number] { FAST } else { SLOW });
            line.push(' ');
        }
        let room = WIDTH.saturating_sub(line.chars().count());
        line += &name(&profile.sites[number], room);
        lines.push(line);
    }
    lines
}

/// The numbers of a column in one unit, such that the largest has three to five digits.
fn scaled(values: &[f64], units: &[(f64, &str)]) -> (String, Vec<String>) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let fits = |(divisor, _): &&(f64, &str)| most >= 1e5 && most >= 100.0 * divisor;
    let (divisor, unit) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    let values: Vec<f64> = values.iter().map(|v| v / divisor).collect();
    (unit.to_string(), Format::Number.column("", &values).1)
}

/// A site's name in at most `room` characters: shortens packages to their first letters, then cuts to the end.
fn name(site: &SiteProfile, room: usize) -> String {
    let key = &site.key;
    let ty = match key.ty.is_empty() {
        true => "?".into(),
        false => brief(&key.ty, true),
    };
    let nth = match key.nth {
        0 => String::new(),
        n => format!(" #{}", n + 1),
    };
    let (function, line) = (brief(&key.function, false), line(site));
    let whole = format!("{function}{line}, {ty}{nth}");
    let whole: Vec<char> = printable(&whole).chars().collect();
    match whole.len() <= room {
        true => whole.into_iter().collect(),
        false => {
            let kept = room.saturating_sub(1);
            std::iter::once('…')
                .chain(whole[whole.len() - kept..].iter().copied())
                .collect()
        }
    }
}

/// Where in the function's own file an object is made, or in another one whose code became the function's.
fn line(site: &SiteProfile) -> String {
    let Some((file, number)) = site.line.as_deref().and_then(|l| l.rsplit_once(':')) else {
        return String::new();
    };
    let class = site.key.function.split("::").next().unwrap_or("");
    let class = class.rsplit('.').next().unwrap_or(class);
    let class = class.split('$').next().unwrap_or(class);
    // TeaVM's own library begins the names of its classes with a letter more.
    let of_class = file
        .split('.')
        .next()
        .is_some_and(|f| f == class || f.strip_prefix('T').is_some_and(|f| f == class));
    match of_class {
        true => format!(":{number}"),
        false => format!(" ({file}:{number})"),
    }
}

/// Without what a terminal would obey.
fn printable(text: &str) -> String {
    let char = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(char).collect()
}

/// A name, and those inside of it, whose packages are left out, or shown by their first letters.
fn brief(name: &str, leave_out: bool) -> String {
    let of_word = |c: char| c.is_alphanumeric() || "._$".contains(c);
    let mut short = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match of_word(first) {
            true => rest.find(|c| !of_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        short += &without_package(word, leave_out);
        rest = after;
    }
    short
}

fn without_package(name: &str, leave_out: bool) -> String {
    let mut short = String::new();
    let mut rest = name;
    while let Some((package, after)) = rest.split_once('.') {
        let small = |c: char| c.is_lowercase() || c.is_numeric() || c == '_';
        if package.is_empty() || !package.chars().all(small) {
            break;
        }
        if !leave_out {
            short.extend(package.chars().take(1));
            short.push('.');
        }
        rest = after;
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use varve_sites::Key;

    #[test]
    fn names_keep_what_tells_them_apart() {
        let site = SiteProfile {
            key: Key {
                function: "varve.graph.Engine::load".into(),
                ty: "varve.graph.Vertex".into(),
                nth: 1,
            },
            ..SiteProfile::default()
        };
        assert_eq!(name(&site, 40), "v.g.Engine::load, Vertex #2");
        assert_eq!(name(&site, 12), "…, Vertex #2");
        let at = |line: &str| {
            let line = Some(line.to_string());
            let site = SiteProfile {
                line,
                ..site.clone()
            };
            name(&site, 60)
        };
        assert_eq!(at("Engine.java:88"), "v.g.Engine::load:88, Vertex #2");
        assert_eq!(at("TEngine.java:88"), "v.g.Engine::load:88, Vertex #2");
        let other = at("Shard.java:9");
        assert_eq!(other, "v.g.Engine::load (Shard.java:9), Vertex #2");
        let types = brief("Array<java.lang.Object>$Data", true);
        assert_eq!(types, "Array<Object>$Data");
        let constructor = brief("kotlin.collections.ArrayList.<init>", false);
        assert_eq!(constructor, "k.c.ArrayList.<init>");
        assert_eq!(brief("func 7", true), "func 7");
    }

    #[test]
    fn numbers_of_a_column_share_a_unit() {
        let column = |values: &[f64], units| {
            let (unit, cells) = scaled(values, units);
            format!("{unit}: {}", cells.join(" "))
        };
        assert_eq!(column(&[0.0, 1.0, 99_999.0], SI), ": 0 1 99,999");
        assert_eq!(column(&[0.0, 300.0, 2e6], SI), "k: 0 <1 2,000");
        assert_eq!(column(&[32.0, 2048.0], IEC), "B: 32 2,048");
        assert_eq!(column(&[32.0, 1048576.0], IEC), "KiB: <1 1,024");
    }
}
