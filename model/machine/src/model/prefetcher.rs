//! A core's stream prefetcher: recognises ascending and descending runs of lines within a page and fetches ahead
//! into the second-level cache.

/// A stream that is followed.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Last line that the program asked for.
    last: u64,
    /// Line up to which was fetched ahead (in the stream's direction).
    ahead: u64,
    up: bool,
    /// Steps seen in this direction.
    steps: u32,
}

/// When each line in flight from a prefetch arrives: a small table by line number.
const ARRIVALS: usize = 256;

/// See the module. Lines are physical line numbers; a stream does not cross its 4 KiB page, as in hardware.
#[derive(Clone)]
pub struct Prefetcher {
    streams: Box<[Stream]>,
    distance: u64,
    arrivals: Box<[(u64, u64)]>,
}

/// Lines of a 4 KiB page.
const PAGE_LINES: u64 = 64;
/// Steps in one direction that make a stream.
const CONFIRM: u32 = 2;

impl Prefetcher {
    /// A prefetcher that follows `streams` streams (0: none) up to `distance` lines ahead.
    pub fn new(streams: u32, distance: u32) -> Prefetcher {
        let none = Stream {
            last: u64::MAX,
            ahead: 0,
            up: true,
            steps: 0,
        };
        let on = streams > 0 && distance > 0;
        Prefetcher {
            streams: vec![
                none;
                if on {
                    streams.next_power_of_two() as usize
                } else {
                    0
                }
            ]
            .into(),
            distance: distance as u64,
            arrivals: vec![(u64::MAX, 0); ARRIVALS].into(),
        }
    }

    /// The program asks the second level for `line`. Returns the lines to fetch ahead now, `(up, first, last)`, both
    /// ends included. Only for a prefetcher that is on.
    #[inline]
    pub fn observe(&mut self, line: u64) -> Option<(bool, u64, u64)> {
        let page = line / PAGE_LINES;
        let slot = self.slot(page);
        let s = &mut self.streams[slot];
        if s.last / PAGE_LINES != page {
            *s = Stream {
                last: line,
                ahead: line,
                up: true,
                steps: 0,
            };
            return None;
        }
        if line == s.last {
            return None;
        }
        let up = line > s.last;
        if up == s.up {
            s.steps += 1;
        } else {
            (s.up, s.steps, s.ahead) = (up, 1, line);
        }
        s.last = line;
        if s.steps < CONFIRM {
            s.ahead = line;
            return None;
        }
        if up {
            let end = (line + self.distance).min((page + 1) * PAGE_LINES - 1);
            let first = s.ahead.max(line) + 1;
            s.ahead = s.ahead.max(end);
            (first <= end).then_some((true, first, end))
        } else {
            let end = line.saturating_sub(self.distance).max(page * PAGE_LINES);
            let first = s.ahead.min(line);
            s.ahead = s.ahead.min(end);
            (first > end).then(|| (false, end, first - 1))
        }
    }

    /// The slot of a page: a small direct-mapped table, so that a miss costs one lookup.
    #[inline(always)]
    fn slot(&self, page: u64) -> usize {
        (page ^ (page >> 5)) as usize & (self.streams.len() - 1)
    }

    /// Remembers when a prefetched line arrives.
    #[inline(always)]
    pub fn arrives(&mut self, line: u64, done: u64) {
        self.arrivals[line as usize % ARRIVALS] = (line, done);
    }

    /// When a line that is in the second-level cache, as far as its tags know, is really there.
    #[inline(always)]
    pub fn arrival(&self, line: u64) -> u64 {
        let (l, done) = self.arrivals[line as usize % ARRIVALS];
        if l == line { done } else { 0 }
    }

    /// Is it switched on?
    #[inline(always)]
    pub fn on(&self) -> bool {
        !self.streams.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Prefetcher;
    use proptest::prelude::*;

    #[test]
    fn a_run_is_fetched_ahead_once_and_stops_at_its_page() {
        let mut p = Prefetcher::new(4, 8);
        let mut fetched = Vec::new();
        for line in 40..64 {
            if let Some((up, first, last)) = p.observe(line) {
                assert!(up);
                fetched.extend(first..=last);
            }
        }
        assert_eq!(fetched, (43..64).collect::<Vec<_>>());
    }

    #[test]
    fn a_descending_run_is_a_run() {
        let mut p = Prefetcher::new(4, 4);
        assert_eq!(p.observe(30), None);
        assert_eq!(p.observe(29), None);
        assert_eq!(p.observe(28), Some((false, 24, 27)));
        assert_eq!(p.observe(27), Some((false, 23, 23)));
    }

    #[test]
    fn random_lines_start_nothing() {
        let mut p = Prefetcher::new(4, 4);
        let mut line = 1u64;
        for _ in 0..1000 {
            line = line.wrapping_mul(6364136223846793005).wrapping_add(1) >> 20;
            assert_eq!(p.observe(line), None);
        }
    }

    proptest! {
        /// Against a plain account of each page's run: the prefetched lines are exactly those up to `distance` beyond
        /// the program, within the page, that were not fetched since the run began.
        #[test]
        fn a_page_is_fetched_ahead_as_its_run_says(
            distance in 1u32..70,
            steps in prop::collection::vec(-3i64..6, 1..200),
        ) {
            let mut p = Prefetcher::new(1, distance);
            let mut line = 20i64;
            // Direction of the run, its steps, and the lines that it has asked for or fetched.
            let (mut run, mut count) = (1, 0);
            let mut known = std::collections::BTreeSet::new();
            prop_assert_eq!(p.observe(line as u64), None);
            for step in steps {
                let next = (line + step).clamp(0, 63);
                let moved = (next - line).signum();
                line = next;
                let mut expected = Vec::new();
                if moved != 0 {
                    count = if moved == run { count + 1 } else { 1 };
                    if moved != run || count < super::CONFIRM {
                        known.clear();
                    }
                    run = moved;
                    known.extend(if run > 0 { 0..=line } else { line..=63 });
                    if count >= super::CONFIRM {
                        let end = (line + run * distance as i64).clamp(0, 63);
                        let (low, high) = (line.min(end), line.max(end));
                        expected = (low..=high).filter(|l| !known.contains(l)).collect();
                        known.extend(&expected);
                    }
                }
                let fetched = match p.observe(line as u64) {
                    Some((up, first, last)) => {
                        prop_assert_eq!(up, run > 0);
                        (first as i64..=last as i64).collect()
                    }
                    None => Vec::new(),
                };
                prop_assert_eq!(fetched, expected);
            }
        }
    }
}
