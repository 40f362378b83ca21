//! `words SIZE ROUNDS`: text made, cut into words, counted in maps, sorted and formatted, by Rust's library.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::time::Instant;

fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

fn work(size: u32) -> u64 {
    let mut state = 2024;
    let mut text = String::new();
    for _ in 0..size {
        let n = next(&mut state) % (size / 8 + 1);
        write!(text, "w{:x}{} ", n, if n % 3 == 0 { "ä" } else { "" }).unwrap();
    }
    let mut counts: HashMap<String, u32> = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_uppercase()).or_default() += 1;
    }
    let mut by_count: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (word, &count) in &counts {
        by_count.entry(count).or_default().push(word);
    }
    let mut report = String::new();
    for (count, words) in &mut by_count {
        words.sort_unstable();
        writeln!(report, "{count}: {} {:.3}", words.join(","), f64::from(*count) / 7.0).unwrap();
    }
    report.bytes().fold(0, |sum: u64, b| sum.wrapping_mul(31).wrapping_add(b.into()))
}

fn main() {
    let arguments: Vec<u32> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [size, rounds] = arguments[..] else {
        eprintln!("usage: words SIZE ROUNDS");
        std::process::exit(2);
    };
    let mut sum = 0u64;
    for _ in 0..rounds {
        let begin = Instant::now();
        sum = sum.wrapping_mul(31).wrapping_add(work(size));
        eprintln!("round: {:.3} ms", begin.elapsed().as_secs_f64() * 1e3);
    }
    println!("checksum {sum:016x}");
}
