//! What `damo record` writes (JSON, numbers as text), and `damo report access --json` (numbers for people).

use serde::Deserialize;
use serde_json::Value;

use super::records::{Look, Records, Region, Uses};
use super::text;
use crate::import::ImportError;

/// Of one target. Old versions have no intervals.
#[derive(Deserialize)]
struct Record {
    intervals: Option<Intervals>,
    snapshots: Vec<Snapshot>,
}

#[derive(Deserialize)]
struct Intervals {
    sample_us: Microseconds,
    aggr_us: Microseconds,
}

#[derive(Deserialize)]
struct Snapshot {
    start_time: Option<Nanoseconds>,
    end_time: Option<Nanoseconds>,
    regions: Vec<Part>,
    /// Of new versions.
    sample_interval_us: Option<Microseconds>,
}

#[derive(Deserialize)]
struct Fields {
    start: Address,
    end: Address,
    nr_accesses: Option<Accesses>,
}

#[derive(Deserialize)]
struct Accesses {
    samples: Option<Number>,
    percent: Option<Percent>,
}

/// A part, if it is one, and whether it says how often it was in use.
#[derive(Deserialize)]
#[serde(try_from = "Fields")]
struct Part {
    region: Option<Region>,
    is_known: bool,
}

impl TryFrom<Fields> for Part {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Part, String> {
        let uses = fields.nr_accesses.and_then(|accesses| {
            let samples = accesses.samples.map(|samples| Uses::Checks(samples.0));
            samples.or(accesses.percent.map(|percent| Uses::Share(percent.0)))
        });
        Ok(Part {
            region: Region::new(
                fields.start.0..fields.end.0,
                uses.unwrap_or(Uses::Checks(0.0)),
            )?,
            is_known: uses.is_some(),
        })
    }
}

/// Values are numbers or text. What cannot be read is an error of the parser, which knows its line.
macro_rules! read_by {
    ($name:ident, $inner:ty, $what:literal, $number:expr, $text:expr) => {
        #[derive(Clone, Copy, Deserialize)]
        #[serde(try_from = "Value")]
        struct $name($inner);

        impl TryFrom<Value> for $name {
            type Error = String;

            fn try_from(value: Value) -> Result<$name, String> {
                let read = match &value {
                    Value::String(text) => $text(text),
                    other => $number(other),
                };
                read.map($name)
                    .ok_or_else(|| format!("{value} is no {}", $what))
            }
        }
    };
}

read_by!(Address, u64, "address", Value::as_u64, text::address);
read_by!(Number, f64, "number", Value::as_f64, text::number);
read_by!(
    Percent,
    f64,
    "percentage",
    |value: &Value| Some(value.as_f64()? / 100.0),
    text::percent
);
read_by!(Nanoseconds, f64, "time", Value::as_f64, |text: &str| {
    text::nanoseconds(text, 1.0)
});
read_by!(Microseconds, f64, "time", Value::as_f64, |text: &str| Some(
    text::nanoseconds(text, 1e3)? / 1e3
));

pub(super) fn read(file: &str, text: &str) -> Result<Records, ImportError> {
    let all: Vec<Record> = serde_json::from_str(text).map_err(|e| ImportError::Line {
        file: file.into(),
        line: e.line() as u64,
        what: format!("no record as `damo record` writes it: {e}"),
    })?;
    let mut records = Records::default();
    for record in all {
        for snapshot in record.snapshots {
            let times = [snapshot.start_time, snapshot.end_time];
            for Nanoseconds(ns) in times.into_iter().flatten() {
                records.at(ns);
            }
            let parts = snapshot.regions.iter();
            records.unknown += parts.filter(|part| !part.is_known).count() as u64;
            let checks = checks(record.intervals.as_ref(), &snapshot);
            let parts = snapshot.regions.into_iter();
            let regions = parts.filter_map(|part| part.region).collect();
            records.keep(Look { checks, regions });
        }
    }
    Ok(records)
}

/// Checks of a page in a record: of the record's intervals, or else of its times and how often a page is checked.
fn checks(intervals: Option<&Intervals>, snapshot: &Snapshot) -> Option<f64> {
    let (all, each) = match intervals {
        Some(intervals) => (intervals.aggr_us.0, intervals.sample_us.0),
        None => {
            let (start, end) = (snapshot.start_time?.0, snapshot.end_time?.0);
            ((end - start) / 1e3, snapshot.sample_interval_us?.0)
        }
    };
    let checks = all / each;
    (each > 0.0 && checks > 0.0 && checks.is_finite()).then(|| checks.round().max(1.0))
}
