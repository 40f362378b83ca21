//! Random samples, written as perf writes them: what is read is what was written, and what a slow reader finds that looks for the
//! names of events and levels in the text. Nothing makes a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::perf_script;
use varve_sites::native::Key;

/// Events: of memory, of memory if `data_src` says so, and others.
const OF_MEMORY: [&str; 9] = [
    "ibs_op//",
    "ibs_op/ldlat=128/u",
    "arm_spe_0/ts_enable=1,load_filter=1/u",
    "memory",
    "cpu/mem-loads,ldlat=30/P",
    "cpu_core/mem-loads,ldlat=30/P",
    "cpu_atom/mem-loads,ldlat=30/P",
    "mem_load_retired.l3_miss:P",
    "cpu/event=0xcd,umask=0x1,ldlat=3/upp",
];
const OTHERS: [&str; 6] = [
    "cycles",
    "l1d-miss",
    "kmem:kmalloc",
    "cpu/mem-loads-aux/",
    "dummy:u",
    "mem:0x404010:w",
];
const OPERATIONS: [&str; 3] = ["LOAD", "STORE", "PFETCH"];

/// Levels as versions of perf print them, and what they are: missed all caches, hit one, or not known.
const LEVELS: [(&str, Option<bool>); 33] = [
    ("L1 hit", Some(false)),
    ("L1 or L1 hit", Some(false)),
    ("L1 miss", None),
    ("LFB hit", Some(false)),
    ("LFB/MAB hit", Some(false)),
    ("L2 hit", Some(false)),
    ("L2 miss", None),
    ("L2 MHB hit", Some(false)),
    ("L3 hit", Some(false)),
    ("L3 miss", Some(true)),
    ("L3 or Remote Cache (1 hop) hit", Some(false)),
    ("L3 or Remote Cache (1 hop) miss", Some(true)),
    ("Remote Cache (2 hops) hit", Some(false)),
    ("Remote core, same node Any cache hit", Some(false)),
    ("Any cache hit", Some(false)),
    ("L4 hit", Some(false)),
    ("Local RAM hit", Some(true)),
    ("Local RAM or RAM hit", Some(true)),
    ("Local RAM or L3 miss", Some(true)),
    ("RAM hit", Some(true)),
    ("Remote RAM (1 hop) hit", Some(true)),
    ("Remote RAM (2 hops) hit", Some(true)),
    ("Remote socket, same board RAM hit", Some(true)),
    ("Remote PMEM hit", Some(true)),
    ("PMEM hit", Some(true)),
    ("CXL hit", Some(true)),
    ("L9 hit", Some(true)),
    ("Extension mem hit", Some(true)),
    ("Memory-side Cache hit", Some(true)),
    ("Uncached hit", Some(false)),
    ("I/O hit", Some(false)),
    ("N/A", None),
    ("Unknown level 11 hit", None),
];

#[derive(Clone, Debug)]
struct Written {
    command: String,
    has_time: bool,
    event: &'static str,
    is_memory: bool,
    address: u64,
    operation: &'static str,
    level: (&'static str, Option<bool>),
    is_old: bool,
    weights: usize,
    calls: usize,
    /// The sample's own call is in its line, not in lines of a stack.
    has_call: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let event = prop_oneof![
        3 => select(OF_MEMORY.to_vec()).prop_map(|event| (event, true)),
        1 => select(OTHERS.to_vec()).prop_map(|event| (event, false)),
    ];
    let what = (
        event,
        any::<u64>(),
        select(OPERATIONS.to_vec()),
        select(LEVELS.to_vec()),
    );
    let form = (
        any::<bool>(),
        any::<bool>(),
        0usize..4,
        0usize..5,
        any::<bool>(),
    );
    (
        "[a-z0-9:.()\\[\\]/#|-]{1,7}( [a-z0-9:.()|]{1,7})?",
        what,
        form,
    )
        .prop_map(|(command, what, form)| {
            let ((event, is_memory), address, operation, level) = what;
            let (has_time, is_old, weights, calls, has_call) = form;
            // Without a time, a word with a colon may be an event.
            let command = match has_time {
                true => command,
                false => command.replace(':', "_"),
            };
            let operation = match event {
                // Such an event is of memory if its samples say so.
                "cycles" | "dummy:u" => "N/A",
                _ => operation,
            };
            Written {
                command,
                has_time,
                event,
                is_memory,
                address,
                operation,
                level,
                is_old,
                weights,
                calls,
                has_call,
            }
        })
}

fn text(all: &[Written]) -> String {
    let mut text = "# a comment\n".to_string();
    for one in all {
        text += &format!("{:>16}   812/815   [003] ", one.command);
        if one.has_time {
            text += "  7.510000: ";
        }
        text += &format!("{:>10} {:>30}: {:>16x}", 400_001, one.event, one.address);
        let bits = match one.operation {
            "LOAD" => 2,
            "STORE" => 4,
            "PFETCH" => 8,
            _ => 1,
        };
        let level = one.level.0;
        text += &match one.is_old {
            true => format!(
                " {:>16x} {level}|SNP None|TLB L1 or L2 hit|LCK No",
                0x6810_0140 | bits
            ),
            false => format!(
                " {:>16x} |OP {}|LVL {level}|SNP N/A|TLB Walker hit|LCK No|BLK  N/A",
                0x6810_0140, one.operation
            ),
        };
        for weight in 0..one.weights {
            text += &format!(" {:>16}", 30 + weight);
        }
        if one.has_call {
            text += "           401136 std::mem::swap: main+0x16 (/bin/a b: c)";
        }
        text += "\n";
        for call in 0..one.calls {
            text += match call {
                0 => "\t          401136 operator new: x+0x16 (/bin/p)\n",
                1 => "\t    7f8a2c0010e1 [unknown] ([unknown])\n\t          401140 g (inlined)\n",
                2 => "\t          401150\n  memory.c:12\n",
                _ => "\t          401160 operator new\n            401170 std::mem::swap<int, 3>\n",
            };
        }
        text += "\n";
    }
    text
}

/// Reads, misses, writes, misses of writes, and samples whose level is not known.
type Sums = [u64; 5];

fn sums(all: impl Iterator<Item = (bool, Option<bool>)>) -> Sums {
    let mut sums = [0; 5];
    for (writes, misses) in all {
        let at = 2 * usize::from(writes);
        sums[at] += 1;
        sums[at + 1] += u64::from(misses == Some(true));
        sums[4] += u64::from(misses.is_none());
    }
    sums
}

fn meant(all: &[Written]) -> Sums {
    let memory = all.iter().filter(|one| one.is_memory);
    sums(memory.map(|one| (one.operation == "STORE", one.level.1)))
}

/// Looks for the name of an event of memory with a colon and blanks behind, and for the longest level that is in the line.
fn slow(text: &str) -> Sums {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with(['\t', '#']) && line.contains("|SNP "));
    let samples = lines.filter(|line| {
        OF_MEMORY
            .iter()
            .any(|name| line.contains(&format!(" {name}: ")))
    });
    sums(samples.map(|line| {
        let before = &line[..line.find("|SNP ").unwrap()];
        let level = LEVELS
            .iter()
            .filter(|(level, _)| before.ends_with(&format!(" {level}")));
        let level = level.max_by_key(|(level, _)| level.len()).unwrap();
        let writes = line.contains("|OP STORE|") || before.contains(" 68100144 ");
        (writes, level.1)
    }))
}

/// The numbers at the start of notes.
fn told(missing: &[String], what: &str) -> u64 {
    let notes = missing.iter().filter(|note| note.contains(what));
    notes
        .map(|note| note.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

proptest! {
    #[test]
    fn samples_are_read_as_they_were_written(all in vec(written(), 1..12)) {
        let text = text(&all);
        prop_assert_eq!(slow(&text), meant(&all));
        let stacks = |address: u64| (address >> 63 == 1).then_some(Key::Stacks);
        let imported = perf_script("m.txt", text.as_bytes(), stacks);
        let memory = all.iter().filter(|one| one.is_memory).count();
        if memory == 0 {
            prop_assert!(imported.unwrap_err().to_string().starts_with("m.txt:2: no memory event"));
            return Ok(());
        }
        let imported = imported.unwrap();
        let mut found = [0; 5];
        for site in &imported.profile.sites {
            let counts = &site.counts;
            for (sum, count) in found.iter_mut().zip([counts.reads, counts.misses, counts.writes, counts.write_misses]) {
                *sum += count;
            }
            let there = all.iter().filter(|one| one.is_memory && (one.address >> 63 == 1) == (site.key == Key::Stacks));
            prop_assert_eq!(counts.reads + counts.writes, there.count() as u64);
        }
        found[4] = told(&imported.missing, "where they hit");
        prop_assert_eq!(found, meant(&all));
        prop_assert_eq!(told(&imported.missing, "other events"), (all.len() - memory) as u64);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300)) {
        let _ = perf_script("m", &bytes[..], |_| None);
    }

    #[test]
    fn no_words_make_it_panic(words in vec(select(WORDS.to_vec()), 0..40)) {
        let _ = perf_script("m", words.concat().as_bytes(), |_| None);
    }
}

const WORDS: [&str; 20] = [
    " ",
    " ",
    "\n",
    "\t",
    "ibs_op//:",
    "cycles:",
    "memory:",
    ":",
    "7.5:",
    "|OP LOAD",
    "|OP ",
    "|LVL ",
    "L1 hit",
    "|SNP ",
    "|",
    "ffffffffffffffff",
    "10000000000000000",
    "é",
    "0x",
    "(",
];
