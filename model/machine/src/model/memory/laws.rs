//! The laws of queues, for every memory of every machine: requests that are asked for in a loop, as many at a time as there are
//! askers.

use super::*;
use varve_access::random::mix;

/// Requests that are measured, after as many of the largest loop have come four times.
const REQUESTS: u64 = 16_000;
const BEFORE: u64 = 4096;

/// Where the next line is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lines {
    Random,
    Sequential,
    /// Of rows that are so far apart that they often share banks.
    Strided,
}

impl Lines {
    fn at(self, n: u64, bytes: u64) -> u64 {
        let region = bytes.min(8 << 30);
        (match self {
            Lines::Random => mix(n) % region,
            Lines::Sequential => (n * 64) % region,
            Lines::Strided => (n * (1 << 20) + n / 64 * 64) % region,
        }) & !63
    }
}

/// What a loop of `askers` gets.
#[derive(Clone, Copy, Debug)]
struct Got {
    /// Lines per ns.
    rate: f64,
    /// Mean time of a request, ns.
    latency: f64,
}

/// `askers` each ask for a line, wait for it, and ask for the next; one request in `writes` is a write.
fn ask(m: &Machine, node: &NodeRange, lines: Lines, askers: usize, writes: Option<u64>) -> Got {
    let mut memory = MemorySystem::new(m);
    let whole = node.base..node.base + node.bytes;
    memory.read_before(&[whole]);
    let begin = ps(1e6);
    let mut until = std::collections::BinaryHeap::new();
    until.extend((0..askers as u64).map(|a| std::cmp::Reverse((begin + a, a))));
    let (mut from, mut to, mut sum) = (begin, begin, 0);
    for n in 0..BEFORE + REQUESTS {
        let Some(std::cmp::Reverse((now, a))) = until.pop() else {
            break;
        };
        let at = node.base + lines.at(n, node.bytes);
        let write = writes.is_some_and(|w| mix(n ^ 1 << 40).is_multiple_of(w));
        let done = match write {
            true => memory.write(now, at, 0, Store::Evicted),
            false => memory.read(now, at, 0).done,
        };
        until.push(std::cmp::Reverse((done.max(now + 1), a)));
        if n < BEFORE {
            from = now;
            continue;
        }
        to = to.max(now);
        sum += done - now;
    }
    Got {
        rate: REQUESTS as f64 / (to - from) as f64 * 1000.0,
        latency: sum as f64 / REQUESTS as f64 / 1000.0,
    }
}

/// Loops of 1, 2, 4 ... askers.
fn curve(m: &Machine, node: &NodeRange, lines: Lines, writes: Option<u64>) -> Vec<Got> {
    (0..11)
        .map(|n| ask(m, node, lines, 1 << n, writes))
        .collect()
}

/// Every node of every machine, its lines in every order, read or also written.
fn everywhere(mut each: impl FnMut(&Machine, &NodeRange, Lines, Option<u64>)) {
    for &(name, _) in crate::load::builtin() {
        let m = Machine::load(name).unwrap();
        for node in nodes(&m) {
            for lines in [Lines::Random, Lines::Sequential, Lines::Strided] {
                for writes in [None, Some(3)] {
                    each(&m, &node, lines, writes);
                }
            }
        }
    }
}

/// The order in which requests of many askers come is not quite that of few: rows and bank groups meet differently.
/// And a refresh holds up the first request that meets it, so that one asker meets more of them.
const ORDER: f64 = 0.93;
/// Writes that find the bus idle cost no turn of it in the model, so that just below its limit it gives a little too much.
const TURNS: f64 = 0.9;

#[test]
fn more_askers_never_get_less_and_never_wait_less() {
    everywhere(|m, node, lines, writes| {
        // Media of PM are written in blocks, which many askers of neighbouring lines push out of the DIMM's buffer half done
        // (Yang et al., FAST 2020): there, more get less.
        let blocks = node.backing == Backing::Pm && writes.is_some() && lines == Lines::Sequential;
        let got = curve(m, node, lines, writes);
        let (mut rate, mut latency) = (0.0f64, 0.0f64);
        for (n, g) in got.iter().enumerate() {
            let what = format!(
                "{} {:?} of socket {}, {lines:?}, writes {writes:?}, {} askers: {g:?} of {got:?}",
                m.name,
                node.backing,
                node.socket,
                1 << n
            );
            let turns = if writes.is_some() { TURNS } else { ORDER };
            assert!(blocks || g.rate >= rate * turns, "{what}");
            // Neighbours that are asked for together find their row open, which is quicker.
            assert!(
                lines == Lines::Sequential || g.latency >= latency * ORDER,
                "{what}"
            );
            (rate, latency) = (rate.max(g.rate), latency.max(g.latency));
        }
    });
}

/// Little's law in a queue: of reads that are served, no more are in it than it has entries, and with askers enough it is full. What
/// a read holds its entry for is at least its row's and its column's time.
#[test]
fn a_queue_serves_what_its_entries_hold() {
    for name in ["cxl-spr", "optane-8260"] {
        let mut m = Machine::load(name).unwrap();
        m.controller.read_queue = 2;
        let entries = f64::from(m.dram.channels * m.controller.read_queue);
        let served = m.dram.rcd_ns + m.dram.cl_ns;
        let most = entries / served;
        let rates: Vec<f64> = (0..11)
            .map(|n| ask(&m, &nodes(&m)[0], Lines::Random, 1 << n, None).rate)
            .collect();
        assert!(
            rates.iter().all(|rate| *rate < most),
            "{name}: {rates:?} of {most}"
        );
        assert!(rates[10] > 0.7 * most, "{name}: {rates:?} of {most}");
    }
}

/// No memory gives more than its bus, its link or its media do, and one with idle parts gives what is asked for.
#[test]
fn limits_hold_and_are_reached() {
    everywhere(|m, node, lines, writes| {
        if writes.is_some() || node.backing == Backing::Cached {
            return;
        }
        let kind = match node.backing {
            Backing::Dram => crate::NodeKind::Dram,
            Backing::Pm => crate::NodeKind::Pm,
            _ => crate::NodeKind::Cxl,
        };
        let peak = m.peak_read_gbps(kind) / 64.0;
        let got = curve(m, node, lines, None);
        for (n, g) in got.iter().enumerate() {
            let asked = f64::from(1 << n) / got[0].latency;
            let what = format!("{} {:?} {lines:?} {g:?}", m.name, node.backing);
            assert!(
                g.rate <= peak * 1.03,
                "{what}: more than the peak of {peak}"
            );
            // Where a tenth is asked for, hardly anything waits; neighbours of a long row are faster than one alone.
            if asked < peak * 0.1 {
                assert!(g.rate > asked * 0.8, "{what}: {asked} asked for");
            }
        }
    });
}

/// The sum of parts is the whole: a machine of one channel gives its share, and sockets do not take from one another.
#[test]
fn channels_add_up() {
    let all = Machine::load("cxl-spr").unwrap();
    let mut one = all.clone();
    one.dram.channels = 1;
    let node = |m: &Machine| nodes(m)[0];
    for lines in [Lines::Random, Lines::Sequential] {
        for askers in [1usize, 4, 16, 64] {
            let part = ask(&one, &node(&one), lines, askers, None);
            let whole = ask(&all, &node(&all), lines, 8 * askers, None);
            let ratio = whole.rate / part.rate;
            assert!((6.8..8.3).contains(&ratio), "{lines:?} {askers}: {ratio}");
        }
    }
}

/// An expander has the same DRAM behind its link: on one that carries all, rows and banks are its limits.
#[test]
fn behind_a_wide_link_an_expander_is_a_channel() {
    let mut m = Machine::load("cxl-spr").unwrap();
    let cxl = m.cxl.as_mut().unwrap();
    (cxl.read_gbps, cxl.write_gbps, cxl.queue) = (1e6, 1e6, 1024);
    let mut one = m.clone();
    one.dram.channels = 1;
    let expander = nodes(&m).into_iter().find(|n| n.backing == Backing::Cxl);
    for lines in [Lines::Random, Lines::Strided, Lines::Sequential] {
        let here = ask(&one, &nodes(&one)[0], lines, 256, None).rate;
        let there = ask(&m, &expander.unwrap(), lines, 256, None).rate;
        assert!(
            (there / here - 1.0).abs() < 0.1,
            "{lines:?}: {here} {there}"
        );
    }
}
