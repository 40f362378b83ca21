//! Observations of programs of this machine while a page policy migrates their pages, for charts: the same data as of a run
//! on a model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use varve_live::tier::{Page, Pages};
use varve_machine::model::ADDRESS_BITS;
use varve_run::seen::{Grid, Lane, LaneSpan, Rate, RateKind, Seen};

/// Intervals that are told apart at most: beyond, neighbours become one.
const MOST_INTERVALS: usize = 4096;

/// The observations so far; shared by the scans and the pictures.
#[derive(Clone)]
pub struct TierEye(Arc<Mutex<Seeing>>);

struct Seeing {
    page_bytes: u64,
    begun: Instant,
    grid: Grid,
    /// Where pages are: in fast memory or not.
    places: Pages<bool>,
    fast: u64,
    intervals: Vec<Interval>,
    /// Since the last interval ended.
    now: Interval,
}

/// Events up to a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interval {
    end_ns: u64,
    uses: u64,
    /// Pages that came to fast and to slow memory from the other.
    to_fast: u64,
    to_slow: u64,
    /// Pages in fast memory, and all, at the end.
    fast: u64,
    all: u64,
}

impl TierEye {
    /// Nothing was seen yet; a page has `page_bytes`. Time begins now.
    pub fn new(page_bytes: u64) -> TierEye {
        TierEye(Arc::new(Mutex::new(Seeing {
            page_bytes,
            begun: Instant::now(),
            grid: Grid::new(page_bytes),
            places: Pages::default(),
            fast: 0,
            intervals: Vec::new(),
            now: Interval::default(),
        })))
    }

    /// The observations up to now.
    pub fn seen(&self) -> Seen {
        self.with(|seeing, now| seeing.seen(now))
    }

    pub(crate) fn used(&self, page: Page) {
        self.with(|seeing, now| seeing.used(now, page));
    }

    pub(crate) fn is_at(&self, page: Page, fast: Option<bool>) {
        self.with(|seeing, now| seeing.is_at(now, page, fast));
    }

    pub(crate) fn interval_ends(&self) {
        self.with(|seeing, now| seeing.ends(now));
    }

    fn with<T>(&self, what: impl FnOnce(&mut Seeing, u64) -> T) -> T {
        // It holds after each step.
        let mut seeing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = seeing.begun.elapsed().as_nanos() as u64;
        what(&mut seeing, now)
    }
}

impl Seeing {
    fn address(&self, page: Page) -> u64 {
        (u64::from(page.space()) << ADDRESS_BITS) | (page.number() * self.page_bytes)
    }

    fn used(&mut self, now: u64, page: Page) {
        self.now.uses += 1;
        self.grid.access(now, self.address(page));
    }

    fn is_at(&mut self, now: u64, page: Page, fast: Option<bool>) {
        let before = match fast {
            Some(fast) => self.places.insert(page, fast),
            None => self.places.remove(&page),
        };
        if before == fast {
            return;
        }
        let (address, bytes) = (self.address(page), self.page_bytes as i64);
        if let Some(before) = before {
            self.grid.place(now, address, before, -bytes);
            self.fast -= u64::from(before);
        }
        if let Some(fast) = fast {
            self.grid.place(now, address, fast, bytes);
            self.fast += u64::from(fast);
        }
        match (before, fast) {
            (Some(_), Some(true)) => self.now.to_fast += 1,
            (Some(_), Some(false)) => self.now.to_slow += 1,
            _ => {}
        }
    }

    /// An interval is over.
    fn ends(&mut self, now: u64) {
        let (fast, all) = (self.fast, self.places.len() as u64);
        let ended = Interval {
            end_ns: now,
            fast,
            all,
            ..std::mem::take(&mut self.now)
        };
        self.intervals.push(ended);
        if self.intervals.len() >= MOST_INTERVALS {
            let pairs = self.intervals.chunks(2).map(|pair| {
                let sum = |of: fn(&Interval) -> u64| pair.iter().map(of).sum();
                Interval {
                    uses: sum(|i| i.uses),
                    to_fast: sum(|i| i.to_fast),
                    to_slow: sum(|i| i.to_slow),
                    ..pair[pair.len() - 1]
                }
            });
            self.intervals = pairs.collect();
        }
    }

    fn seen(&mut self, now: u64) -> Seen {
        self.ends(now);
        Seen {
            end_ns: now,
            lanes: self.lanes(),
            rates: self.rates(),
            heat: self.grid.heat(now, 1, true),
            ..Seen::default()
        }
    }

    /// Each interval with its beginning.
    fn spans(&self) -> impl Iterator<Item = (u64, &Interval)> {
        let begins = self.intervals.iter().map(|interval| interval.end_ns);
        [0].into_iter().chain(begins).zip(&self.intervals)
    }

    fn lanes(&self) -> Vec<Lane> {
        let lane = |name: &str, count: fn(&Interval) -> u64| {
            let moved = self.spans().filter(|(_, interval)| count(interval) > 0);
            let spans = moved.map(|(begin_ns, interval)| LaneSpan {
                name: "page move".into(),
                begin_ns,
                end_ns: interval.end_ns,
                count: count(interval),
            });
            Lane {
                name: name.into(),
                spans: spans.collect(),
            }
        };
        let mut lanes = vec![
            lane("pages to fast memory", |i| i.to_fast),
            lane("pages to slow memory", |i| i.to_slow),
        ];
        lanes.retain(|lane| !lane.spans.is_empty());
        lanes
    }

    fn rates(&self) -> Vec<Rate> {
        let rate = |name, kind, each: &dyn Fn(&Interval, f64) -> f64| {
            let points = self.spans().map(|(begin, interval)| {
                let seconds = (interval.end_ns - begin) as f64 / 1e9;
                let value = each(interval, seconds.max(f64::MIN_POSITIVE));
                (interval.end_ns, value)
            });
            Rate {
                name,
                kind,
                points: points.collect(),
            }
        };
        let bytes = self.page_bytes as f64;
        let mut rates = vec![
            rate("moved to fast memory", RateKind::Bytes, &|i, s| {
                i.to_fast as f64 * bytes / s
            }),
            rate("moved to slow memory", RateKind::Bytes, &|i, s| {
                i.to_slow as f64 * bytes / s
            }),
            rate("uses seen", RateKind::Events, &|i, s| i.uses as f64 / s),
            rate("pages in fast memory", RateKind::Percent, &|i, _| {
                100.0 * i.fast as f64 / i.all.max(1) as f64
            }),
        ];
        rates.retain(|rate| rate.points.iter().any(|point| point.1 > 0.0));
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeing() -> Seeing {
        Seeing {
            page_bytes: 4096,
            begun: Instant::now(),
            grid: Grid::new(4096),
            places: Pages::default(),
            fast: 0,
            intervals: Vec::new(),
            now: Interval::default(),
        }
    }

    #[test]
    fn pages_are_drawn_where_they_were_and_moves_when_they_were_made() {
        let mut seeing = seeing();
        let [first, second] = [Page::new(0, 3), Page::new(1, 3)];
        // One appears in slow memory and is moved, by whomever; the other is there and goes.
        seeing.is_at(0, first, Some(false));
        seeing.is_at(0, second, Some(true));
        seeing.used(500, first);
        seeing.ends(1_000);
        seeing.is_at(1_500, first, Some(true));
        seeing.is_at(1_500, first, Some(true));
        seeing.is_at(1_800, second, None);
        seeing.ends(2_000);
        let seen = seeing.seen(3_000);
        let heat = &seen.heat;
        assert!(heat.tiers);
        let begins: Vec<u64> = heat.ranges.iter().map(|range| range.begin).collect();
        assert_eq!(begins, [0x3000, (1 << ADDRESS_BITS) + 0x3000]);
        let cells = &heat.ranges[0].cells;
        let fast: Vec<(u64, u64)> = cells.iter().map(|c| (c.fast_bytes, c.slow_bytes)).collect();
        assert_eq!(fast, [(0, 4096), (4096, 0), (4096, 0), (4096, 0)]);
        assert_eq!(cells[0].accesses, 1);
        let gone = heat.ranges[1].cells.last().unwrap();
        assert_eq!((gone.fast_bytes, gone.slow_bytes), (0, 0));
        let [lane] = &seen.lanes[..] else {
            panic!("{:?}", seen.lanes)
        };
        assert_eq!(lane.name, "pages to fast memory");
        let span = &lane.spans[0];
        assert_eq!((span.begin_ns, span.end_ns, span.count), (1_000, 2_000, 1));
        let rate = |name: &str| {
            let rate = seen.rates.iter().find(|rate| rate.name == name);
            rate.map(|rate| rate.points.clone())
        };
        // A page in a microsecond.
        let moved = rate("moved to fast memory").unwrap();
        assert_eq!(moved[1], (2_000, 4096.0 / 1e-6));
        assert_eq!(rate("moved to slow memory"), None);
        let share = rate("pages in fast memory").unwrap();
        assert_eq!(share, [(1_000, 50.0), (2_000, 100.0), (3_000, 100.0)]);
    }

    #[test]
    fn however_long_it_takes_intervals_are_few_and_nothing_is_lost() {
        let mut seeing = seeing();
        let page = Page::new(0, 9);
        for interval in 0..20_000 {
            seeing.is_at(interval * 1_000, page, Some(interval % 2 == 0));
            seeing.ends((interval + 1) * 1_000);
        }
        let seen = seeing.seen(20_000_001);
        assert!(seeing.intervals.len() < MOST_INTERVALS);
        let moves = seen.lanes.iter().flat_map(|lane| &lane.spans);
        assert_eq!(moves.map(|span| span.count).sum::<u64>(), 19_999);
    }
}
