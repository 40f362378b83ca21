//! Programs of the calibration beside one another, on any memory of a machine: mixes of reads and writes by threads, local
//! and remote, sequential and random, intervals of fences, and how long single blocks take.
//!
//! ```text
//! cargo run --release -p varve-machine --example pattern -- MACHINE PROGRAM... [us=N]
//! PROGRAM   THREADSxHOW:MEMORY[:WORD]...
//! HOW       read chase ntstore clwb thenclwb store write mixN blendN, where N of a hundred blocks are read;
//!           trafficN: of N lines one is stored, by an ordinary store
//! MEMORY    dram remote-dram pm pm-dimm remote-pm cxl cached
//! WORD      random, timed, prefetch, block=B, region=B, fence=B (a fence after each B bytes), pace=INSTRUCTIONS
//! ```
//!
//! Each number may be a list, as in `1,4,8xread:pm:block=64,256`: every combination is a line. A line has the GB/s of
//! each program (for DIMMs, those of their media), of timed ones the 50th, 99th, 99.9th, 99.999th percentile and the
//! maximum of a block, ns. Blocks are of 256 B, regions of 64 MiB for each thread, prefetchers off, time 400 us after a
//! warm-up of half as much. Memory of another socket was read from this one before (`cold` in a program's words: it was
//! not).

use std::collections::BTreeMap;
use varve_machine::Machine;
use varve_machine::calibrate::{Bench, How, MeasuredMemory, Order, Pattern};

/// One program with all its numbers chosen.
#[derive(Clone, Debug)]
struct Case {
    text: String,
    pattern: Pattern,
    memory: MeasuredMemory,
    prefetch: bool,
    cold: bool,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let outcome = match args.next() {
        None => Err("name a machine and a program, such as optane-8260 4xread:remote-pm".into()),
        Some(machine) => print_all(&machine, &args.collect::<Vec<_>>()),
    };
    if let Err(what) = outcome {
        eprintln!("{what}");
        std::process::exit(1);
    }
}

fn print_all(machine: &str, words: &[String]) -> Result<(), String> {
    let machine = Machine::load(machine).map_err(|e| e.to_string())?;
    let mut us = 400;
    let mut rows: Vec<Vec<Case>> = vec![Vec::new()];
    for word in words {
        if let Some(n) = word.strip_prefix("us=") {
            us = number(n)?;
            continue;
        }
        let cases: Vec<Case> = choices(word)
            .iter()
            .map(|w| case(w, &machine))
            .collect::<Result<_, _>>()?;
        rows = rows
            .into_iter()
            .flat_map(|row| {
                cases
                    .iter()
                    .map(move |c| [row.clone(), vec![c.clone()]].concat())
            })
            .collect();
    }
    for row in rows {
        if row.is_empty() {
            return Err("name a program, such as 4xread:remote-pm".into());
        }
        let mut bench = Bench::new(&machine).window(us * 1000);
        if row.iter().any(|c| c.memory == MeasuredMemory::PmDimm) {
            bench = bench.one_dimm();
        }
        if row.iter().any(|c| c.prefetch) {
            bench = bench.prefetching(&machine);
        }
        if row.iter().any(|c| c.cold) {
            bench = bench.cold();
        }
        let programs = row.iter().map(|c| (c.pattern.clone(), c.memory));
        let (done, pm) = bench.counted(programs.collect());
        for (c, p) in row.iter().zip(done) {
            print!("{:44} {:8.2} GB/s", c.text, p.gbps());
            for part in [0.5, 0.99, 0.999, 0.99999, 1.0] {
                if let Some(ns) = p.block_ns(part) {
                    print!(" {ns:7} ns");
                }
            }
            println!();
        }
        if pm.reads + pm.writes > 0 {
            println!(
                "{:44} {} reads, {} of them buffered; {} writes, of media lines {}, {} of them not whole",
                "  64 B at PM, warm-up included",
                pm.reads,
                pm.buffer_hits,
                pm.writes,
                pm.media_writes,
                pm.partial_writes
            );
        }
    }
    Ok(())
}

/// The program once for every combination of numbers in its lists.
fn choices(word: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut all = |before: &str, list: &str| {
        let each = |o: &String| -> Vec<String> {
            list.split(',').map(|n| format!("{o}{before}{n}")).collect()
        };
        out = out.iter().flat_map(each).collect();
    };
    for (i, part) in word.split(':').enumerate() {
        let colon = if i == 0 { "" } else { ":" };
        match (part.split_once('='), part.split_once('x')) {
            (Some((key, list)), _) => all(&format!("{colon}{key}="), list),
            (None, Some((threads, how))) if i == 0 => {
                let name = how.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
                all("", threads);
                all(&format!("x{name}"), &how[name.len()..]);
            }
            _ => all(colon, part),
        }
    }
    out
}

fn case(text: &str, machine: &Machine) -> Result<Case, String> {
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    let (threads, how) = first.split_once('x').ok_or(format!(
        "{text}: write THREADSxHOW:MEMORY, such as 4xread:remote-pm"
    ))?;
    let id = parts.next().unwrap_or_default();
    let memory = MeasuredMemory::of(machine)
        .into_iter()
        .find(|m| m.id() == id)
        .ok_or_else(|| {
            let all: Vec<&str> = MeasuredMemory::of(machine).iter().map(|m| m.id()).collect();
            format!(
                "{text}: no memory {id:?}; {} has {}",
                machine.name,
                all.join(", ")
            )
        })?;
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::from([
        ("block", 256),
        ("region", 64 << 20),
        ("fence", 0),
        ("pace", 2),
    ]);
    let mut flags = Vec::new();
    for word in parts {
        match word.split_once('=') {
            Some((key, n)) if numbers.contains_key(key) => {
                numbers.insert(key, number(n)?);
            }
            None if ["random", "timed", "prefetch", "cold"].contains(&word) => flags.push(word),
            _ => {
                return Err(format!(
                    "{text}: no word {word:?}; random, timed, prefetch, cold, block=, region=, fence=, pace="
                ));
            }
        }
    }
    let (block, region) = (numbers["block"], numbers["region"]);
    if block == 0 || block % 64 != 0 || region < block {
        return Err(format!(
            "{text}: a block is a multiple of 64 B, and no larger than its region"
        ));
    }
    let order = if flags.contains(&"random") {
        Order::Random
    } else {
        Order::Sequential
    };
    let mut pattern = Pattern::new(
        how_of(how)?,
        order,
        number(threads)? as usize,
        block,
        region,
    )
    .paced(numbers["pace"] as u32)
    .fenced_each(numbers["fence"]);
    if flags.contains(&"timed") {
        pattern = pattern.timed();
    }
    Ok(Case {
        text: text.into(),
        pattern,
        memory,
        prefetch: flags.contains(&"prefetch"),
        cold: flags.contains(&"cold"),
    })
}

fn how_of(word: &str) -> Result<How, String> {
    let share = |n: &str| match n.parse::<u8>() {
        Ok(n) if n <= 100 => Ok(n),
        _ => Err(format!(
            "{word}: the share of reads is a number from 0 to 100"
        )),
    };
    Ok(match word {
        "read" => How::Read,
        "chase" => How::Chase,
        "ntstore" => How::NtStore,
        "clwb" => How::StoreClwb,
        "thenclwb" => How::StoreThenClwb,
        "store" => How::Store,
        "write" => How::Write,
        _ => {
            if let Some(n) = word.strip_prefix("mix") {
                How::Mix(share(n)?)
            } else if let Some(n) = word.strip_prefix("blend") {
                How::Blend(share(n)?)
            } else if let Some(n) = word.strip_prefix("traffic") {
                How::Traffic(share(n)?.max(1))
            } else {
                return Err(format!("no way to access memory is called {word:?}"));
            }
        }
    })
}

fn number(word: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("{word:?} is not a whole number"))
}
