//! Events over time: spans in lanes, and counters.

/// Spans of a file at most, about.
const MOST_SPANS: usize = 12_000;
/// Points of counters in a file at most, about.
const MOST_POINTS: usize = 24_000;
/// Spans up to this long are joined first, ns.
const SHORT_NS: u64 = 1_000;

/// One or more things that took time, right one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineSpan {
    /// Its name.
    pub name: String,
    /// When the first one began, ns.
    pub begin_ns: u64,
    /// When the last one ended, ns.
    pub end_ns: u64,
    /// How many of them there are: they were joined to keep the file small.
    pub count: u64,
}

/// Spans that follow one another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// In the order of time; the next may begin a little before one ends.
    pub spans: Vec<TimelineSpan>,
}

/// Quantity of a counter; viewers draw each in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Bytes per second.
    Bandwidth,
    /// Watts.
    Power,
    /// A share, in percent.
    Share,
    /// Events per second.
    Rate,
}

impl Meaning {
    /// The unit of counters of the kind: its name, and its size in base units.
    pub(super) fn unit(self) -> (&'static str, f64) {
        match self {
            Meaning::Bandwidth => ("GB/s", 1e9),
            Meaning::Power => ("W", 1.0),
            Meaning::Share => ("%", 1.0),
            Meaning::Rate => ("1/s", 1.0),
        }
    }
}

/// A rate over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name, without unit.
    pub name: String,
    /// Its quantity.
    pub meaning: Meaning,
    /// The end of each interval, ns, and the mean in it.
    pub points: Vec<(u64, f64)>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRun {
    /// Its name, such as its plan.
    pub name: String,
    /// When it ended, ns.
    pub end_ns: u64,
    /// Spans of events.
    pub lanes: Vec<Lane>,
    /// Measured values over time.
    pub counters: Vec<Counter>,
}

/// Runs beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Title: the program.
    pub title: String,
    /// Each run begins at 0.
    pub runs: Vec<TimelineRun>,
}

impl Timeline {
    /// The same with fewer spans, so that a file of them stays small. The shortest are joined with their neighbours.
    pub(super) fn bounded(&self) -> Timeline {
        let mut bounded = self.clone();
        let lanes = self.runs.iter().map(|r| r.lanes.len()).sum::<usize>();
        let most = MOST_SPANS / lanes.max(1);
        for lane in bounded.runs.iter_mut().flat_map(|r| &mut r.lanes) {
            join(&mut lane.spans, most.max(1));
            apart(&mut lane.spans);
        }
        let counters = self.runs.iter().map(|r| r.counters.len()).sum::<usize>();
        let most = MOST_POINTS / counters.max(1);
        for counter in bounded.runs.iter_mut().flat_map(|r| &mut r.counters) {
            thin(&mut counter.points, most.max(1));
        }
        bounded
    }

    /// Whether there is anything to see.
    pub(super) fn is_empty(&self) -> bool {
        let empty = |r: &TimelineRun| r.lanes.is_empty() && r.counters.is_empty();
        self.runs.iter().all(empty)
    }
}

/// Each ends at the latest where the next one begins: viewers nest overlapping spans, and refuse those that do not
/// nest. A request that waits for its last load may end after the next one's beginning.
fn apart(spans: &mut [TimelineSpan]) {
    spans.sort_by_key(|span| span.begin_ns);
    let begins: Vec<u64> = spans.iter().skip(1).map(|span| span.begin_ns).collect();
    for (span, next) in spans.iter_mut().zip(begins) {
        span.end_ns = span.end_ns.min(next);
    }
}

/// Intervals become longer until there are at most `most`; each has the mean of those that it was made of.
fn thin(points: &mut Vec<(u64, f64)>, most: usize) {
    let each = points.len().div_ceil(most).max(1);
    let mut begin = 0;
    let joined = points.chunks(each).map(|chunk| {
        let from = begin;
        let mut sum = 0.0;
        for &(end, mean) in chunk {
            sum += mean * (end - begin) as f64;
            begin = end;
        }
        (begin, sum / (begin - from).max(1) as f64)
    });
    *points = joined.collect();
}

/// Joins neighbours, the shortest first, until at most `most` are left. Those of several names are named after the one that is most.
fn join(spans: &mut Vec<TimelineSpan>, most: usize) {
    let mut short = SHORT_NS;
    while spans.len() > most {
        let mut joined: Vec<TimelineSpan> = Vec::with_capacity(spans.len());
        for span in spans.drain(..) {
            match joined
                .last_mut()
                .filter(|b| span.end_ns - b.begin_ns <= short)
            {
                Some(before) => {
                    if span.count > before.count {
                        before.name = span.name;
                    }
                    before.end_ns = before.end_ns.max(span.end_ns);
                    before.count += span.count;
                }
                None => joined.push(span),
            }
        }
        *spans = joined;
        short = short.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_a_lane_do_not_overlap() {
        let span = |begin_ns, end_ns| TimelineSpan {
            begin_ns,
            end_ns,
            ..TimelineSpan::default()
        };
        let mut spans = vec![span(0, 12), span(10, 20), span(20, 21)];
        apart(&mut spans);
        assert_eq!(spans, [span(0, 10), span(10, 20), span(20, 21)]);
    }

    #[test]
    fn longer_intervals_have_the_mean_of_theirs() {
        let mut points = vec![(10, 1.0), (20, 3.0), (40, 5.0), (50, 9.0)];
        thin(&mut points, 2);
        assert_eq!(points, [(20, 2.0), (50, (100.0 + 90.0) / 30.0)]);
    }

    #[test]
    fn the_shortest_are_joined_and_all_are_counted() {
        let span = |at: u64, ns| TimelineSpan {
            name: "get".into(),
            begin_ns: at,
            end_ns: at + ns,
            count: 1,
        };
        let mut spans: Vec<TimelineSpan> = (0..1000).map(|i| span(1_000 * i, 500)).collect();
        spans.push(span(2_000_000, 900_000));
        join(&mut spans, 100);
        assert!(spans.len() <= 100);
        assert_eq!(spans.iter().map(|s| s.count).sum::<u64>(), 1001);
        let last = spans.last().unwrap();
        assert_eq!(
            (last.begin_ns, last.end_ns, last.count),
            (2_000_000, 2_900_000, 1)
        );
    }
}
