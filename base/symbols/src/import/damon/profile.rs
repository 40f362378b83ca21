//! A profile of DAMON's records.

use std::collections::BTreeMap;

use super::records::Records;
use crate::import::{AddressMap, Imported};
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, Sampling, Site};

const PAGE: f64 = 4096.0;

pub(super) fn profile(records: &Records, map: Option<&AddressMap>) -> Imported {
    let mut sums: BTreeMap<String, (Key, [f64; 3])> = BTreeMap::new();
    let (mut placed, mut all) = (0.0, 0.0);
    let usual = records.usual_checks();
    for look in &records.looks {
        let checks = look.checks.unwrap_or(usual);
        let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
        for region in &look.regions {
            let size = (region.range.end - region.range.start) as f64;
            let uses = region.uses(checks).min(checks);
            all += size;
            let parts = match map {
                Some(map) => map.split(&region.range),
                None => vec![(&Key::Rest, region.range.end - region.range.start)],
            };
            for (key, part) in parts {
                let part = part as f64;
                placed += part;
                let name = name(key);
                *bytes.entry(name.clone()).or_default() += part;
                let (_, [pages, events, _]) =
                    sums.entry(name).or_insert_with(|| (key.clone(), [0.0; 3]));
                *pages += part / PAGE * uses / checks;
                // Of each region one page is checked at a time.
                *events += uses * part / size;
            }
        }
        for (name, bytes) in bytes {
            if let Some((_, [_, _, peak])) = sums.get_mut(&name) {
                *peak = bytes.max(*peak);
            }
        }
    }
    let missing = missing(records, map.map(|_| placed / all));
    let looks = records.looks.len() as u64;
    let from = records.from.unwrap_or(records.to);
    Imported {
        profile: Profile {
            sampled: Some(Sampling {
                source: "pages used (records of the kernel's DAMON)".into(),
                looks,
                milliseconds: ((records.to - from) / 1e6) as u64,
                blind: missing.clone(),
            }),
            sites: sums.into_values().map(site).collect(),
            ..Profile::default()
        },
        missing,
    }
}

fn site((key, [pages, events, peak]): (Key, [f64; 3])) -> Site {
    let used = pages.round() as u64;
    Site {
        key,
        counts: Counts {
            reads: used,
            misses: used,
            peak_bytes: peak as u64,
            samples: 1,
            uses: events.round() as u64,
            ..Counts::default()
        },
    }
}

/// What could not be told. `placed` is the share of the addresses that the map knows, if there is one.
fn missing(records: &Records, placed: Option<f64>) -> Vec<String> {
    let mut missing = vec![
        "DAMON's records have no allocations: no objects, sites or lifetimes; sample the program with `varve profile --live` for its sites"
            .to_string(),
        "bytes are those of addresses, whether memory is there or not; reads and writes are not told apart, and count as reads".into(),
    ];
    match placed {
        None => missing.push(
            "there is no map of the process's addresses, so all memory is one site: put a copy of /proc/PID/maps of the recorded process \
             beside the file as FILE.maps, or name it with --maps"
                .into(),
        ),
        Some(placed) if placed < 0.5 => missing.push(format!(
            "{:.0} % of the recorded addresses are no writable memory of the map, and are left out: is it a map of the recorded process?",
            100.0 * (1.0 - placed)
        )),
        Some(_) => {}
    }
    missing.extend(records.notes_of_checks());
    if records.unknown > 0 {
        missing.push(format!(
            "{} regions do not say how often they were in use, and count as never in use",
            records.unknown
        ));
    }
    missing.extend(records.notes.iter().cloned());
    missing
}

/// Keys have no order.
pub(super) fn name(key: &Key) -> String {
    match key {
        Key::Static { module, symbol, .. } => format!("{module} {symbol}"),
        Key::Stacks => "stacks".into(),
        _ => "rest".into(),
    }
}
