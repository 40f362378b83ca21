//! Lines of the kernel's events of DAMON: `perf script`, `perf trace`, `trace-cmd report`, and damo's own `perf_script`.
//!
//! ```text
//! kdamond.0  4452 [000] 82877.315633: damon:damon_aggregated: target_id=0 nr_regions=17 4096-8192: 0 3       perf script
//! kdamond.0-4452 [000] ..... 82877.315633: damon_aggregated:     target_id=0 nr_regions=17 4096-8192: 0 3    trace-cmd
//! 3373.653 kthreadd/4452 damon:damon_aggregated(target_id=0 nr_regions=17 4096-8192: 0 33)                   perf trace
//! ```
//!
//! The last number is not in old kernels. New ones have `damon_region_aggregated` with more numbers behind. `damos_before_apply` has
//! the parts that a scheme is for; it is read where there is nothing better.

use super::records::{Look, Records, Region, Uses};
use super::text;

/// The events that are read, the better first.
const EVENTS: [&str; 3] = [
    "damon_aggregated",
    "damon_region_aggregated",
    "damos_before_apply",
];

#[derive(Default)]
pub(super) struct Trace {
    series: [Series; EVENTS.len()],
    times: Records,
}

/// The records of one event.
#[derive(Default)]
struct Series {
    looks: Vec<Look>,
    lines: u64,
    /// Of the record that is read: its target, the end of its last part, and how many are to come.
    target: String,
    end: u64,
    left: u64,
    /// Records that lack parts.
    short: u64,
}

/// A part, and of which record it is.
struct Traced {
    target: String,
    all: u64,
    start: u64,
    end: u64,
    uses: f64,
}

impl Trace {
    /// Reads a line. `false` if it has no such event.
    pub fn line(&mut self, line: &str) -> Result<bool, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let found = words
            .iter()
            .enumerate()
            .find_map(|(at, word)| Some((at, event(word)?)));
        let Some((at, (kind, first))) = found else {
            return Ok(false);
        };
        let fields = first.into_iter().chain(words[at + 1..].iter().copied());
        let traced = traced(fields).ok_or_else(|| {
            format!(
                "no record of {}, such as `target_id=0 nr_regions=2 4096-8192: 3 7`",
                EVENTS[kind]
            )
        })?;
        if let Some(ns) = time(&words[..at], first.is_some()) {
            self.times.at(ns);
        }
        self.series[kind].add(traced)?;
        Ok(true)
    }

    /// Adds the records of the best event that is there.
    pub fn finish(self, records: &mut Records) {
        if let Some(from) = self.times.from {
            records.at(from);
            records.at(self.times.to);
        }
        let mut is_read = None;
        for (series, name) in self.series.into_iter().zip(EVENTS) {
            if series.lines == 0 {
                continue;
            }
            if let Some(better) = is_read {
                let lines = series.lines;
                records.notes.push(format!(
                    "{lines} lines of {name} are left out, for those of {better} tell the same"
                ));
                continue;
            }
            is_read = Some(name);
            let short = series.short + u64::from(series.left > 0);
            // A scheme is for some parts alone.
            if short > 0 && name != "damos_before_apply" {
                records.notes.push(format!(
                    "{} of {} records lack some of the regions that they tell of: the tracer lost them, or the text is cut",
                    short,
                    series.looks.len()
                ));
            }
            series.looks.into_iter().for_each(|look| records.keep(look));
        }
    }
}

impl Series {
    fn add(&mut self, traced: Traced) -> Result<(), String> {
        self.lines += 1;
        let continues = self.left > 0 && self.target == traced.target && self.end <= traced.start;
        if !continues {
            self.short += u64::from(self.left > 0);
            self.left = traced.all.max(1);
            self.target = traced.target;
            self.looks.push(Look::default());
        }
        self.left -= 1;
        self.end = traced.end;
        let region = Region::new(traced.start..traced.end, Uses::Checks(traced.uses))?;
        if let Some(look) = self.looks.last_mut() {
            look.regions.extend(region);
        }
        Ok(())
    }
}

/// Which event a word is, and what `perf trace` has in the same word.
fn event(word: &str) -> Option<(usize, Option<&str>)> {
    let word = word.strip_prefix("damon:").unwrap_or(word);
    let (name, first) = match word.split_once('(') {
        Some((name, first)) => (name, Some(first)),
        None => (word.strip_suffix(':')?, None),
    };
    let kind = EVENTS.iter().position(|event| *event == name)?;
    Some((kind, first))
}

/// Nanoseconds: `82877.315633:` right before the event, or milliseconds first of all in `perf trace`.
fn time(before: &[&str], is_perf_trace: bool) -> Option<f64> {
    if is_perf_trace {
        return Some(text::number(before.first()?)? * 1e6);
    }
    Some(text::number(before.last()?.strip_suffix(':')?)? * 1e9)
}

fn traced<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<Traced> {
    let (mut target, mut all) = (String::new(), None);
    let range = loop {
        let field = fields.next()?;
        match field.split_once('=') {
            Some(("nr_regions", number)) => all = Some(number.parse().ok()?),
            Some((_, number)) => {
                target.push_str(number);
                target.push(' ');
            }
            None => break field,
        }
    };
    let (start, end) = range.strip_suffix(':')?.split_once('-')?;
    Some(Traced {
        target,
        all: all?,
        start: start.parse().ok()?,
        end: end.parse().ok()?,
        uses: text::number(fields.next()?.trim_end_matches(')'))?,
    })
}
