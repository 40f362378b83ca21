//! Records of the kernel's monitor of accesses (DAMON): which parts of a process's addresses were in use, and how often.
//!
//! ```text
//! damo record                          JSON, packed by zlib (its default) or not
//! perf script, trace-cmd report        lines with damon:damon_aggregated
//! damo report raw                      the same for people
//! ```
//!
//! Records have addresses, but no allocation sites. With a map of the process's addresses they cover its static
//! variables and stacks; all else is one site.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::ops::Range;

use flate2::bufread::ZlibDecoder;
use serde::Deserialize;
use serde_json::Value;

use super::{AddressMap, ImportError, Imported, lines};
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, Sampling, Site};

const PAGE: f64 = 4096.0;
/// Checks of a page between two records where a file does not say: damo's defaults of 5 and 100 ms. It scales all sites alike.
const CHECKS: f64 = 20.0;

/// A part of the addresses in one record.
#[derive(Clone, Debug, PartialEq)]
struct Region {
    range: Range<u64>,
    /// How many checks found it in use, and of how many.
    uses: f64,
    checks: f64,
}

/// All that is in a file.
#[derive(Debug, Default)]
struct Records {
    /// By target and number.
    looks: BTreeMap<(u64, u64), Vec<Region>>,
    /// Nanoseconds of the first and last record.
    from: Option<f64>,
    to: f64,
}

impl Records {
    fn at(&mut self, ns: f64) {
        self.from = Some(self.from.map_or(ns, |from| from.min(ns)));
        self.to = self.to.max(ns);
    }
}

/// Imports DAMON's records. `file` is named in errors. `map` says what is where in the process, if that is known.
///
/// The value of a site is the number of its pages that were in use, summed over records: a page that half of the checks found
/// in use counts half. It stands in the profile as misses. Bytes are those of addresses, whether memory is there or not.
///
/// # Errors
/// It cannot be read, or has no such records.
pub fn damon(
    file: &str,
    mut input: impl BufRead,
    map: Option<&AddressMap>,
) -> Result<Imported, ImportError> {
    let io = |source| ImportError::Io {
        file: file.into(),
        source,
    };
    let first = input.fill_buf().map_err(io)?;
    let records = match first {
        // zlib's header: deflate with a window of 32 KiB, and one of four levels.
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
            let mut text = String::new();
            ZlibDecoder::new(input)
                .read_to_string(&mut text)
                .map_err(io)?;
            of_json(file, &text)?
        }
        [b'P', b'E', b'R', b'F', ..] => {
            return Err(ImportError::NotOne {
                file: file.into(),
                what: "perf's own file: give the text that `perf script -i` makes of it",
            });
        }
        [b'[', ..] => {
            let mut text = String::new();
            input.read_to_string(&mut text).map_err(io)?;
            of_json(file, &text)?
        }
        _ => of_text(file, input)?,
    };
    if records.looks.is_empty() {
        return Err(ImportError::NotOne {
            file: file.into(),
            what: "no records of DAMON: neither what `damo record` writes, nor text with damon:damon_aggregated, nor `damo report raw`",
        });
    }
    Ok(profile(&records, map))
}

fn profile(records: &Records, map: Option<&AddressMap>) -> Imported {
    let mut sums: BTreeMap<String, (Key, [f64; 3])> = BTreeMap::new();
    let (mut placed, mut all) = (0.0, 0.0);
    for regions in records.looks.values() {
        let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
        for region in regions {
            let size = (region.range.end - region.range.start) as f64;
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
                *pages += part / PAGE * region.uses / region.checks;
                // Of each region one page is checked at a time.
                *events += region.uses * part / size;
            }
        }
        for (name, bytes) in bytes {
            if let Some((_, [_, _, peak])) = sums.get_mut(&name) {
                *peak = bytes.max(*peak);
            }
        }
    }
    let site = |(key, [pages, events, peak]): (Key, [f64; 3])| {
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
    };
    let mut missing = vec![
        "DAMON's records have no allocations: no objects, sites or lifetimes; sample the program with `varve profile --live` for its sites"
            .to_string(),
        "bytes are those of addresses, resident or not; reads and writes are not distinguished, and count as reads".into(),
    ];
    match map {
        None => missing.push(
            "there is no map of the process's addresses, so all memory is one site: put a copy of /proc/PID/maps of the recorded process \
             beside the file as FILE.maps, or name it with --maps"
                .into(),
        ),
        Some(_) if placed < 0.5 * all => missing.push(format!(
            "{:.0} % of the recorded addresses are no writable memory of the map, and are left out: is it a map of the recorded process?",
            100.0 * (1.0 - placed / all)
        )),
        Some(_) => {}
    }
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

/// Keys have no order.
fn name(key: &Key) -> String {
    match key {
        Key::Static { module, symbol, .. } => format!("{module} {symbol}"),
        Key::Stacks => "stacks".into(),
        _ => "rest".into(),
    }
}

#[derive(Deserialize)]
struct Record {
    intervals: Option<Intervals>,
    target_id: Option<Value>,
    snapshots: Vec<Snapshot>,
}

#[derive(Deserialize)]
struct Intervals {
    sample_us: Value,
    aggr_us: Value,
}

#[derive(Deserialize)]
struct Snapshot {
    start_time: Value,
    end_time: Value,
    regions: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    start: Value,
    end: Value,
    nr_accesses: Option<Accesses>,
}

#[derive(Deserialize)]
struct Accesses {
    samples: Option<Value>,
    percent: Option<Value>,
}

/// A number as damo writes it: `94,827,419,009,024` too.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text
            .replace(',', "")
            .trim_end_matches(['%', ' '])
            .parse()
            .ok(),
        other => other.as_f64(),
    }
}

/// The same without loss: addresses.
fn address(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.replace(',', "").parse().ok(),
        other => other.as_u64(),
    }
}

fn of_json(file: &str, text: &str) -> Result<Records, ImportError> {
    let wrong = |line, what| ImportError::Line {
        file: file.into(),
        line,
        what,
    };
    let all: Vec<Record> = serde_json::from_str(text).map_err(|e| {
        wrong(
            e.line() as u64,
            format!("no record as `damo record` writes it: {e}"),
        )
    })?;
    let mut records = Records::default();
    for (order, record) in all.iter().enumerate() {
        let intervals = record.intervals.as_ref();
        let intervals = intervals.and_then(|i| Some((number(&i.aggr_us)?, number(&i.sample_us)?)));
        let checks = intervals
            .filter(|(_, sample)| *sample > 0.0)
            .map_or(CHECKS, |(aggregation, sample)| {
                (aggregation / sample).max(1.0)
            });
        let target = record.target_id.as_ref().and_then(address);
        let target = target.unwrap_or(order as u64);
        for snapshot in &record.snapshots {
            for time in [&snapshot.start_time, &snapshot.end_time] {
                if let Some(ns) = number(time) {
                    records.at(ns);
                }
            }
            let mut regions = Vec::new();
            for part in &snapshot.regions {
                let (Some(start), Some(end)) = (address(&part.start), address(&part.end)) else {
                    let what = format!("a region from {} to {}", part.start, part.end);
                    return Err(wrong(1, format!("{what}: no addresses")));
                };
                let uses = part.nr_accesses.as_ref().and_then(|accesses| {
                    let samples = accesses.samples.as_ref().and_then(number);
                    let percent = accesses.percent.as_ref().and_then(number);
                    samples.or(percent.map(|p| p * checks / 100.0))
                });
                add(&mut regions, start, end, uses.unwrap_or(0.0), checks);
            }
            let next = records.looks.len() as u64;
            records.looks.insert((target, next), regions);
        }
    }
    Ok(records)
}

/// Regions that are none are what damo adds to files with a single record.
fn add(regions: &mut Vec<Region>, start: u64, end: u64, uses: f64, checks: f64) {
    if start < end {
        regions.push(Region {
            range: start..end,
            uses: uses.clamp(0.0, checks),
            checks,
        });
    }
}

/// Lines of `perf script`, `trace-cmd report` and `damo report raw`.
fn of_text(file: &str, input: impl BufRead) -> Result<Records, ImportError> {
    let mut records = Records::default();
    // Regions of the record that is read, how many are to come, and of which target.
    let mut left = 0u64;
    let mut key = (0, 0);
    lines(file, input, |line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let event = words
            .iter()
            .position(|word| ["damon:damon_aggregated:", "damon_aggregated:"].contains(word));
        if let Some(event) = event {
            let (target, all, start, end, uses) = traced(&words[event + 1..]).ok_or(
                "no record of damon_aggregated, such as `target_id=0 nr_regions=2 4096-8192: 3 7`",
            )?;
            let seconds = words[..event]
                .last()
                .and_then(|w| w.trim_end_matches(':').parse::<f64>().ok());
            if let Some(seconds) = seconds {
                records.at(seconds * 1e9);
            }
            if left == 0 || key.0 != target {
                key = (target, records.looks.len() as u64);
                left = all.max(1);
            }
            left -= 1;
            add(
                records.looks.entry(key).or_default(),
                start,
                end,
                uses,
                CHECKS,
            );
            return Ok(());
        }
        match words[..] {
            ["target_id:", target] => {
                key = (target.parse().unwrap_or(0), records.looks.len() as u64);
            }
            [range, "(", _, _, uses, _] | [range, "(", _, _, uses] if range.contains('-') => {
                let hex = |text: &str| u64::from_str_radix(text, 16).ok();
                let parsed = range.split_once('-').and_then(|(start, end)| {
                    Some((
                        hex(start)?,
                        hex(end)?,
                        uses.replace(',', "").parse::<f64>().ok()?,
                    ))
                });
                let (start, end, uses) =
                    parsed.ok_or("no region, such as `1000-2000 ( 4.000 KiB) 3 7`")?;
                add(
                    records.looks.entry(key).or_default(),
                    start,
                    end,
                    uses,
                    CHECKS,
                );
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(records)
}

/// `target_id=18446623435582458880 nr_regions=17 140731667070976-140731668037632: 0 3`; the last number is not in old kernels.
fn traced(words: &[&str]) -> Option<(u64, u64, u64, u64, f64)> {
    let [target, regions, range, uses, ..] = words else {
        return None;
    };
    let (start, end) = range.strip_suffix(':')?.split_once('-')?;
    Some((
        target.strip_prefix("target_id=")?.parse().ok()?,
        regions.strip_prefix("nr_regions=")?.parse().ok()?,
        start.parse().ok()?,
        end.parse().ok()?,
        uses.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    const JSON: &str = r#"[{"kdamond_idx": null, "intervals": {"sample_us": "5000", "aggr_us": "100,000"}, "target_id": 18446623438842320000,
        "snapshots": [
          {"start_time": "1000000000", "end_time": "1100000000", "regions": [
            {"start": "16,384", "end": "24,576", "nr_accesses": {"samples": 10, "percent": null}, "age": {"usec": null}},
            {"start": 36864, "end": 40960, "nr_accesses": {"samples": null, "percent": 100}}]},
          {"start_time": "1100000000", "end_time": "1200000000", "regions": [
            {"start": "16,384", "end": "24,576", "nr_accesses": {"samples": "0"}},
            {"start": 0, "end": 0, "nr_accesses": {"samples": -1}}]}]}]"#;

    const TRACED: &str = "
       kdamond.0  4452 [000] 1.000000: damon:damon_aggregated: target_id=7 nr_regions=2 16384-24576: 10 0
       kdamond.0  4452 [000] 1.000001: damon:damon_aggregated: target_id=7 nr_regions=2 36864-40960: 20 3
       kdamond.0  4452 [000] 1.100000: damon:damon_monitor_intervals_tune: sample_us=5000
       kdamond.0  4452 [000] 1.200000: damon:damon_aggregated: target_id=7 nr_regions=1 16384-24576: 0
";

    const RAW: &str = "base_time_absolute: 8 m 59.809 s
data source: unknown

monitoring_start:                0 ns
monitoring_end:            100.000 ms
target_id: 7
nr_regions: 2
# start_addr     end_addr        length  nr_accesses   age
4000-6000 (   8.000 KiB)          10    -1
9000-a000 (   4.000 KiB)          20    -1

monitoring_start:          100.000 ms
target_id: 7
nr_regions: 1
4000-6000 (   8.000 KiB)           0    12
";

    const MAPS: &str = "00004000-00006000 rw-p 00000000 00:00 0    [heap]
00009000-0000a000 rw-p 00000000 00:00 0    [stack]
";

    fn read(bytes: &[u8], map: Option<&AddressMap>) -> Imported {
        damon("damon.data", bytes, map).unwrap()
    }

    #[test]
    fn the_same_records_in_each_form_are_the_same_profile() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(JSON.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let map = AddressMap::read("m", MAPS.as_bytes()).unwrap();
        for bytes in [JSON.as_bytes(), &packed, TRACED.as_bytes(), RAW.as_bytes()] {
            let imported = read(bytes, Some(&map));
            let found: Vec<_> = imported
                .profile
                .sites
                .iter()
                .map(|site| {
                    let c = &site.counts;
                    (name(&site.key), c.peak_bytes, c.misses, c.uses)
                })
                .collect();
            // Two pages half of the time, and one all of it.
            assert_eq!(
                found,
                [
                    ("rest".to_string(), 8192, 1, 10),
                    ("stacks".into(), 4096, 1, 20)
                ]
            );
            assert_eq!(imported.profile.sampled.unwrap().looks, 2);
            assert_eq!(imported.missing.len(), 2, "{:?}", imported.missing);
        }
        let times = read(JSON.as_bytes(), None).profile.sampled.unwrap();
        assert_eq!(times.milliseconds, 200);
    }

    #[test]
    fn without_a_map_all_is_one_site_and_a_map_of_another_process_is_told_of() {
        let imported = read(TRACED.as_bytes(), None);
        assert_eq!(imported.profile.sites.len(), 1);
        assert_eq!(imported.profile.sites[0].counts.peak_bytes, 3 * 4096);
        assert!(
            imported.missing[2].contains("/proc/PID/maps"),
            "{:?}",
            imported.missing
        );
        let other = "7f0000009000-7f000000a000 rw-p 00000000 00:00 0    [stack]\n";
        let other = AddressMap::read("m", other.as_bytes()).unwrap();
        let imported = read(TRACED.as_bytes(), Some(&other));
        assert!(
            imported.missing[2].starts_with("100 %"),
            "{:?}",
            imported.missing
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        let says = |bytes: &[u8]| damon("d", bytes, None).unwrap_err().to_string();
        assert!(says(b"").starts_with("d: no records of DAMON"));
        assert!(says(b"hello\nworld\n").starts_with("d: no records of DAMON"));
        assert!(says(b"PERFILE2").contains("perf script"));
        assert!(says(b"[{\"snapshots\": 1}]").starts_with("d:1: no record as"));
        assert!(says(b"\x78\x9c\x01\x02").starts_with("d: "));
        assert!(
            says(b"x 1.0: damon:damon_aggregated: target_id=1 nr_regions=2 5: 1\n")
                .starts_with("d:1: no record of damon_aggregated")
        );
        assert!(says(b"10-2x ( 4 KiB) 3 7\n").starts_with("d:1: no region"));
    }
}
