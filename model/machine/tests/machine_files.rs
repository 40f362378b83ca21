//! Messages about wrong machine files: a story per kind of mistake. The file is the built-in `optane-6230-memory-mode`,
//! with one edit.

use proptest::prelude::*;
use varve_machine::load::{ProbedCache, ProbedMachine, ProbedMemory, builtin};
use varve_machine::{LoadError, Machine, Mode};

const NAME: &str = "optane-6230-memory-mode";

fn good() -> String {
    builtin()
        .iter()
        .find(|(n, _)| *n == NAME)
        .unwrap()
        .1
        .to_string()
}

/// The problems of the good file with one text replaced, without the file's name. `@` stands for the line of the edit,
/// `-` for another.
fn problems(from: &str, to: &str) -> Vec<String> {
    let text = good();
    assert_eq!(text.matches(from).count(), 1, "`{from}` must occur once");
    let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
    let edited = text.replace(from, to);
    let error = Machine::parse(&edited, &format!("lab/{NAME}.toml")).unwrap_err();
    assert!(matches!(error, LoadError::Invalid(_)));
    let file = format!("lab/{NAME}.toml:");
    let told = error.to_string();
    assert_eq!(
        told.lines().count(),
        error.problems().len(),
        "one line each: {told}"
    );
    told.lines()
        .map(|l| {
            let l = l.strip_prefix(&file).unwrap_or_else(|| panic!("{l}"));
            match l.strip_prefix(&format!("{line}:")) {
                Some(rest) => format!("@:{rest}"),
                None => {
                    let (other, rest) = l.split_once(':').unwrap();
                    assert!(other.parse::<usize>().unwrap() >= 1, "{l}");
                    format!("-:{rest}")
                }
            }
        })
        .collect()
}

#[track_caller]
fn story(from: &str, to: &str, told: &[&str]) {
    assert_eq!(problems(from, to), told);
}

#[test]
fn a_mistyped_key_is_answered_with_the_right_one() {
    story(
        "reorder_buffer = 224",
        "reorder_bufer = 224",
        &[
            "-: core.reorder_buffer: missing; add `reorder_buffer = …` under `[core]`: how far the core runs ahead of a missing load (instructions)",
            "@: core.reorder_bufer: unknown key; did you mean `core.reorder_buffer`?",
        ],
    );
}

#[test]
fn a_foreign_key_points_to_the_book() {
    story(
        "[l1]",
        "[turbo]\nboost = true\n[l1]",
        &["@: turbo: unknown key; remove it, or see docs/machines.md for the known keys"],
    );
}

#[test]
fn a_dotted_key_in_quotes_is_not_the_section() {
    story(
        "sockets = 2\n",
        "sockets = 2\n\"core.ghz\" = 3.0\n",
        &["-: core.ghz: unknown key; write dotted keys without quotes, or under their `[section]`"],
    );
}

#[test]
fn words_where_a_number_belongs() {
    story(
        "ghz = 2.1",
        "ghz = \"fast\"",
        &["@: core.ghz: is a string; write a number such as 14.25"],
    );
    story(
        "channels = 4",
        "channels = 4.5",
        &["@: dram.channels: is a float; write a whole number such as 16"],
    );
    story(
        "bytes = \"48GiB\"",
        "bytes = \"48 apples\"",
        &["@: dram_cache.bytes: `48 apples` is not a size; write a size such as \"16KiB\" or 4096"],
    );
    story(
        "mode = \"memory-mode\"",
        "mode = \"cached\"",
        &["@: mode: `cached` is unknown; write one of \"flat\", \"memory-mode\""],
    );
    let told = problems("[l1]\nbytes", "l1 = 3\n[l3]\nbytes");
    assert!(
        told.iter().any(|t| t.starts_with("@: tlb.l1: unknown key")),
        "{told:?}"
    );
}

#[test]
fn numbers_that_no_machine_has() {
    story(
        "ghz = 2.1",
        "ghz = -2.1",
        &["@: core.ghz: -2.1 is negative; write a number such as 14.25"],
    );
    story(
        "ghz = 2.1",
        "ghz = nan",
        &["@: core.ghz: NaN is not finite; write a number such as 14.25"],
    );
    story(
        "ghz = 2.1",
        "ghz = 0",
        &["@: core.ghz: is zero; write a number such as 14.25"],
    );
    story(
        "rp_ns = 14.25",
        "rp_ns = inf",
        &["@: dram.rp_ns: inf is not finite; write a number such as 14.25"],
    );
    story(
        "channels = 4",
        "channels = 5000000000",
        &[
            "@: dram.channels: 5000000000 is larger than any machine's (at most 256); write a whole number such as 16",
        ],
    );
    story(
        "channels = 4",
        "channels = 99999999999999999999",
        &[
            "@: dram.channels: 99999999999999999999 is out of range; write a whole number such as 16",
        ],
    );
}

#[test]
fn a_number_without_a_source_is_refused() {
    story(
        "\"core.ipc\" = ",
        "\"core.ipcs\" = ",
        &[
            "-: core.ipc: has no source; add `\"core.ipc\" = \"a citation\"` to [sources], or \"assumption: …\" with the reasoning",
            "@: sources.core.ipcs: names no number of this machine; remove it, or correct the key",
        ],
    );
}

#[test]
fn a_source_must_say_something() {
    let text = good();
    let line = text
        .lines()
        .find(|l| l.starts_with("\"tlb.l2_ways\""))
        .unwrap();
    story(
        line,
        "\"tlb.l2_ways\" = \" \"",
        &["@: sources.tlb.l2_ways: is empty; name the data sheet, paper or reasoning"],
    );
    story(
        line,
        "\"tlb.l2_ways\" = 12",
        &[
            "@: sources.tlb.l2_ways: is not text; name the data sheet, paper or reasoning, in quotes",
        ],
    );
}

#[test]
fn caches_that_cannot_be_built() {
    story(
        "bytes = \"27.5MiB\"",
        "bytes = \"27MiB\"",
        &[
            "@: llc.bytes: 27MiB is not a whole number of sets of 11 lines of 64 B; correct it, or llc.ways",
        ],
    );
    story(
        "bytes = \"27.5MiB\"",
        "bytes = \"704KiB\"",
        &[
            "@: llc.bytes: 704KiB is smaller than l2 (1MiB); each level must hold at least what the level above it does",
        ],
    );
    story(
        "ns = 19.5",
        "ns = 1.5",
        &[
            "@: llc.ns: 1.5 ns is faster than l2 (6.67 ns); latencies are load-to-use, from the core",
        ],
    );
    story(
        "l2_entries = 1536",
        "l2_entries = 1000",
        &["@: tlb.l2_entries: 1000 entries do not divide into 12 ways; correct one of the two"],
    );
    story(
        "l1_ways = 4",
        "l1_ways = 3",
        &["-: tlb.l1_entries: 64 entries do not divide into 3 ways; correct one of the two"],
    );
    story(
        "l1_entries = 64",
        "l1_entries = 96",
        &[
            "-: tlb.l1_ways: 24 sets are no power of two; the lowest bits of a page's number choose its set",
        ],
    );
    story(
        "distance = 20",
        "distance = 0",
        &[
            "@: prefetch.distance: is zero with the prefetcher on; set a distance, or prefetch.streams = 0",
        ],
    );
}

#[test]
fn caches_that_the_model_cannot_number() {
    story(
        "bytes = \"32KiB\"",
        "bytes = \"512B\"",
        &["@: l1.bytes: too few sets (1) for 1008GiB of memory; raise it, or lower l1.ways"],
    );
    story(
        "bytes = \"27.5MiB\"",
        "bytes = \"11GiB\"",
        &[
            "@: llc.bytes: 16777216 sets are more than the model numbers (16777215); lower it, or raise llc.ways",
        ],
    );
    story(
        "bytes = \"27.5MiB\"",
        "bytes = \"1TiB\"",
        &[
            "@: llc.bytes: 1TiB is larger than any machine's (at most 16GiB); write a size such as \"16KiB\" or 4096",
        ],
    );
    story(
        "line_bytes = 256",
        "line_bytes = 1024",
        &[
            "@: pm.line_bytes: 1KiB is larger than any machine's (at most 512); write a size such as \"16KiB\" or 4096",
        ],
    );
    story(
        "bytes = \"48GiB\"\nways = 1",
        "bytes = \"48GiB\"\nways = 16",
        &[
            "@: dram_cache.bytes: 168 stretches of slow memory meet in one set, at most 126 can be told apart; enlarge the cache, or lower its ways or the slow memory",
        ],
    );
}

#[test]
fn queues_that_never_drain() {
    story(
        "drain_high = 24",
        "drain_high = 40",
        &[
            "@: controller.drain_high: 40 is more than the write queue holds (32); set it below controller.write_queue",
        ],
    );
    story(
        "drain_low = 8",
        "drain_low = 24",
        &[
            "@: controller.drain_low: 24 is not below drain_high (24); draining must end at a lower fill than it begins",
        ],
    );
}

#[test]
fn memories_that_do_not_fit_together() {
    story(
        "interleave_bytes = 256",
        "interleave_bytes = 300",
        &[
            "@: dram.interleave_bytes: 300 is not a power of two of at least 64 B; write 0, 256 or \"4KiB\", for example",
        ],
    );
    story(
        "interleave_bytes = 256",
        "interleave_bytes = \"32GiB\"",
        &[
            "@: dram.interleave_bytes: 32GiB is larger than a DIMM (16GiB); write a smaller interleave, or 0 for none",
        ],
    );
    story(
        "dimms = 4",
        "dimms = 6",
        &["@: pm.dimms: 6 PM DIMMs on 4 channels; a channel takes one PM DIMM beside its DRAM"],
    );
    story(
        "line_bytes = 256",
        "line_bytes = 100",
        &["@: pm.line_bytes: 100 is not a power of two of at least 64 B; Optane's is 256"],
    );
    story(
        "buffer_bytes = \"16KiB\"",
        "buffer_bytes = 1000",
        &[
            "@: pm.buffer_bytes: 1000 is not a whole number of media lines (256); Optane's is \"16KiB\"",
        ],
    );
    story(
        "row_bytes = \"8KiB\"",
        "row_bytes = 9000",
        &[
            "@: dram.row_bytes: 9000 is not a power of two of at least 64 B; a rank's row is 8KiB, usually",
        ],
    );
    story(
        "rfc_ns = 350.0",
        "rfc_ns = 9000.0",
        &[
            "@: dram.rfc_ns: a refresh of 9000 ns does not end before the next, 7800 ns later; tRFC is 260-550 ns and tREFI 7800 ns for DDR4",
        ],
    );
    story(
        "selfrefresh_after_ns = 1000000.0",
        "selfrefresh_after_ns = 10.0",
        &[
            "@: dram.selfrefresh_after_ns: 10 ns is earlier than power-down (1000 ns); self-refresh is the deeper state and comes later",
        ],
    );
    story(
        "dimm_bytes = \"126GiB\"",
        "dimm_bytes = 135291469825",
        &["@: pm.dimm_bytes: is not a whole number of 4 KiB pages; round it down to 4KiB"],
    );
    story(
        "sockets = 2\n",
        "sockets = 64\n",
        &[
            "@: sockets: 31.5TiB in all are more 4 KiB frames than 32 bits can number; describe fewer sockets or smaller memories: below 16TiB",
        ],
    );
}

#[test]
fn currents_that_would_give_energy_back() {
    story(
        "idd4r_ma = 146.0",
        "idd4r_ma = -146.0",
        &["@: dram.power.idd4r_ma: -146 is negative; write a number such as 14.25"],
    );
    story(
        "vdd = 1.2",
        "vdd = 0",
        &["@: dram.power.vdd: is zero; write a number such as 14.25"],
    );
    story(
        "idd2p_ma = 25.0",
        "idd2p_ma = 36.0",
        &[
            "@: dram.power.idd2p_ma: 36 mA is more than precharge stand-by (idd2n_ma, 35 mA); a rank that sleeps draws less",
        ],
    );
    story(
        "idd6_ma = 30.0",
        "idd6_ma = 300.0",
        &[
            "@: dram.power.idd6_ma: 300 mA is more than precharge stand-by (idd2n_ma, 35 mA); a rank that sleeps draws less",
        ],
    );
    story(
        "idd3p_ma = 39.0",
        "idd3p_ma = 47.0",
        &[
            "@: dram.power.idd3p_ma: 47 mA is more than active stand-by (idd3n_ma, 46 mA); a rank that sleeps draws less",
        ],
    );
    story(
        "idd2n_ma = 35.0",
        "idd2n_ma = 47.0",
        &[
            "@: dram.power.idd2n_ma: 47 mA is more than active stand-by (idd3n_ma, 46 mA); open rows draw more",
        ],
    );
    story(
        "idd5_ma = 250.0",
        "idd5_ma = 25.0",
        &[
            "@: dram.power.idd5_ma: 25 mA is less than active stand-by (idd3n_ma, 46 mA); a burst or refresh is drawn on top of stand-by",
        ],
    );
    story(
        "idd4w_ma = 132.0",
        "idd4w_ma = 13.2",
        &[
            "@: dram.power.idd4w_ma: 13.2 mA is less than active stand-by (idd3n_ma, 46 mA); a burst or refresh is drawn on top of stand-by",
        ],
    );
    story(
        "idd0_ma = 51.0",
        "idd0_ma = 42.0",
        &[
            "@: dram.power.idd0_ma: 42 mA is less than the stand-by of an activate and its precharge (42.6 mA); it is drawn on top of idd3n_ma for tRAS and idd2n_ma for tRP",
        ],
    );
}

#[test]
fn a_machine_may_lack_its_currents_but_not_some_of_them() {
    story(
        "idd6_ma = 30.0\n",
        "",
        &[
            "-: dram.power.idd6_ma: missing; add `idd6_ma = …` under `[dram.power]`: self-refresh (mA)",
        ],
    );
    let text = good();
    let start = text.find("[dram.power]").unwrap();
    let end = text[start..].find("[pm]").unwrap() + start;
    let lines = text[..start].lines().chain(text[end..].lines());
    let without: Vec<&str> = lines
        .filter(|l| !l.starts_with("\"dram.power\"") && !l.starts_with("\"dram.power."))
        .collect();
    let m = Machine::parse(&without.join("\n"), &format!("{NAME}.toml")).unwrap();
    assert_eq!(m.dram.power, None);
}

#[test]
fn energies_of_pm_come_together_or_not_at_all() {
    story(
        "write_nj = 1024.0\n",
        "",
        &[
            "-: pm.write_nj: missing, although pm.read_nj is given; energy needs all of pm.read_nj, pm.write_nj and pm.idle_w: add it, or leave out all three",
        ],
    );
    let text: Vec<String> = good()
        .lines()
        .filter(|l| {
            !["read_nj", "write_nj", "idle_w"]
                .iter()
                .any(|k| l.starts_with(k) || l.starts_with(&format!("\"pm.{k}")))
        })
        .map(String::from)
        .collect();
    let m = Machine::parse(&text.join("\n"), &format!("{NAME}.toml")).unwrap();
    assert_eq!(m.pm.unwrap().idle_w, None);
}

#[test]
fn two_sockets_need_a_link() {
    let text = good();
    let begin = text.find("[link]\n").unwrap();
    let section = &text[begin..begin + text[begin..].find("\n[os]").unwrap()];
    let told = problems(section, "");
    assert_eq!(
        told[0],
        "-: link: missing with 2 sockets; add `[link]` with ns and gbps, or set sockets = 1"
    );
    assert_eq!(
        told.len(),
        1,
        "the sources of the link are not called stale on top: {told:?}"
    );
}

#[test]
fn memory_mode_needs_a_cache_that_fits() {
    let told = problems("[dram_cache]\nbytes = \"48GiB\"\nways = 1\n", "");
    assert_eq!(
        told[0],
        "-: mode: \"memory-mode\" without a DRAM cache; add `[dram_cache]` with bytes and ways"
    );
    story(
        "bytes = \"48GiB\"",
        "bytes = \"65GiB\"",
        &[
            "@: dram_cache.bytes: 65GiB is more than the socket's DRAM (64GiB); the cache lives in the DRAM: lower it, or enlarge dram",
        ],
    );
    story(
        "bytes = \"48GiB\"",
        "bytes = \"3GiB\"",
        &[
            "@: dram_cache.bytes: 168 stretches of slow memory meet in one set, at most 126 can be told apart; enlarge the cache, or lower its ways or the slow memory",
        ],
    );
    story(
        "bytes = \"48GiB\"\nways = 1",
        "bytes = \"48GiB\"\nways = 5",
        &[
            "@: dram_cache.bytes: 48GiB is not a whole number of 4 KiB pages in 5 ways; correct it, or dram_cache.ways",
        ],
    );
    story(
        "mode = \"memory-mode\"",
        "mode = \"flat\"",
        &[
            "-: dram_cache: has no use in mode \"flat\"; remove the section, or set mode = \"memory-mode\"",
        ],
    );
}

#[test]
fn memory_mode_needs_one_slow_memory() {
    let mut m = Machine::load_from(NAME, &[]).unwrap();
    let cxl = Machine::load_from("cxl-spr", &[]).unwrap();
    m.cxl = cxl.cxl.clone();
    m.sources.insert("cxl".into(), "test".into());
    let told: Vec<String> = m.check().iter().map(|p| p.to_string()).collect();
    assert_eq!(
        told,
        [format!(
            "{NAME}: cxl: memory mode with both PM and CXL behind the DRAM cache; remove one of the two"
        )]
    );
    let mut m = cxl;
    m.mode = Mode::MemoryMode;
    m.cxl = None;
    m.sources.retain(|k, _| !k.starts_with("cxl"));
    let told: Vec<String> = m.check().iter().map(|p| p.to_string()).collect();
    assert_eq!(
        told,
        [
            "cxl-spr: mode: \"memory-mode\" without slow memory; add `[pm]` or `[cxl]`, or set mode = \"flat\"",
            "cxl-spr: mode: \"memory-mode\" without a DRAM cache; add `[dram_cache]` with bytes and ways",
        ]
    );
}

#[test]
fn a_machine_is_called_like_its_file() {
    story(
        "name = \"optane-6230-memory-mode\"",
        "name = \"mine\"",
        &[
            "@: name: `mine` is not the file's name; write name = \"optane-6230-memory-mode\", or rename the file",
        ],
    );
}

#[test]
fn a_missing_section_is_told_once() {
    let text = good();
    let start = text.find("[tlb]").unwrap();
    let end = text.find("[l1]").unwrap();
    let told = problems(&text[start..end], "");
    assert_eq!(
        told,
        ["-: tlb: missing; add `[tlb]`; see docs/machines.md for its keys"]
    );
}

#[test]
fn what_is_not_toml_is_told_with_its_line() {
    let told = problems("ghz = 2.1", "ghz = = 2.1");
    assert!(told[0].starts_with("@: not TOML: "), "{told:?}");
    let told = problems("sockets = 2\n", "sockets = 2\nsockets = 2\n");
    assert!(told[0].contains("duplicate key"), "{told:?}");
    assert!(
        Machine::parse("", "empty.toml")
            .unwrap_err()
            .to_string()
            .contains("empty.toml:1: name: missing; add `name = …` at the top")
    );
}

#[test]
fn what_is_no_machine_file_is_told_in_one_line() {
    for text in [
        "root:x:0:0:root:/root:/bin/bash\nbin:x:2:2:bin:/bin:/usr/sbin/nologin\n",
        "[package]\nversion = \"1\"\nedition = \"2024\"\n[dependencies]\n",
        "\u{7f}ELF\n\n\0",
    ] {
        let error = Machine::parse(text, "passwd").unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(
            error.starts_with("passwd:1: this is not a machine file; "),
            "{error}"
        );
    }
    // One line that belongs there, and all problems are reported.
    let error = Machine::parse("[core]\nx\ny\n", "lab.toml").unwrap_err();
    assert!(error.problems().len() > 1, "{error}");
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_lines() {
    let text = good()
        .replace("ghz = 2.1", "ghz = -1.0")
        .replace("drain_low = 8", "drain_low = 99")
        .replace("dimms = 4", "dimms = 5");
    let text = text.replace("fault_ns = 700.0\n", "fault_ns = 700.0\nswap_ns = 1.0\n");
    let error = Machine::parse(&text, &format!("{NAME}.toml")).unwrap_err();
    let keys: Vec<&str> = error.problems().iter().map(|p| p.key.as_str()).collect();
    assert_eq!(
        keys,
        ["core.ghz", "controller.drain_low", "pm.dimms", "os.swap_ns"]
    );
    assert!(error.problems().windows(2).all(|w| w[0].line < w[1].line));
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:?}").to_lowercase()),
        (0u64..5).prop_map(|n| n.to_string()),
        (
            0u32..64,
            prop_oneof![Just("B"), Just("KiB"), Just("GiB"), Just("TiB")]
        )
            .prop_map(|(n, u)| format!("\"{n}{u}\"")),
        "[ -~]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done to a few lines, reading answers, every problem names a line of the file, and a machine that
    /// is accepted is sound, can be scaled and described.
    #[test]
    fn edited_files_never_panic(which in 0usize..64, edits in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(number())), 1..4)) {
        let (name, text) = builtin()[which % builtin().len()];
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        for (at, value) in edits {
            let i = at.index(lines.len());
            match value {
                None => { lines.remove(i); }
                Some(v) => {
                    let key = lines[i].split('=').next().unwrap_or("").to_string();
                    lines[i] = format!("{key}= {v}");
                }
            }
        }
        let text = lines.join("\n");
        match Machine::parse(&text, &format!("{name}.toml")) {
            Ok(m) => {
                prop_assert_eq!(m.check(), []);
                prop_assert_eq!(&Machine::parse(&m.to_toml(), &format!("{name}.toml")).unwrap(), &m);
                m.scaled(3).summary().to_string();
                m.scaled(u32::MAX).check();
            }
            Err(e) => {
                prop_assert!(!e.problems().is_empty());
                for p in e.problems() {
                    prop_assert!(p.line >= 1 && p.line <= lines.len() + 1, "{}", p);
                }
            }
        }
    }

    /// However odd the machine that a probe sees, the description of it is sound.
    #[test]
    fn probes_of_odd_machines_are_sound(
        counts in prop::array::uniform3(prop_oneof![0u32..8, any::<u32>()]),
        caches in prop::array::uniform3((prop_oneof![0u64..1 << 28, any::<u64>()], 0u32..100, prop::option::of(any::<f64>()))),
        memories in prop::array::uniform3((any::<u64>(), any::<f64>(), any::<f64>(), prop::option::of(any::<f64>()))),
        ghz in prop::option::of(any::<f64>()),
    ) {
        let cache = |i: usize| ProbedCache { bytes: caches[i].0, ways: caches[i].1, ns: caches[i].2 };
        let memory = |i: usize| ProbedMemory { bytes: memories[i].0, read_ns: memories[i].1, read_gbps: memories[i].2, write_gbps: memories[i].3 };
        let m = Machine::from_probe(&ProbedMachine {
            cpu: "odd".into(), sockets: counts[0], cores_per_socket: counts[1], threads_per_core: counts[2], ghz,
            l1: cache(0), l2: cache(1), llc: Some(cache(2)), dram: memory(0), slow: Some(memory(1)), remote: Some(memory(2)),
        });
        prop_assert_eq!(m.check(), []);
        prop_assert_eq!(&Machine::parse(&m.to_toml(), "here.toml").unwrap(), &m);
    }

    /// Text that is no machine at all.
    #[test]
    fn noise_never_panics(text in "[ -~\\n\\t\u{e9}]{0,200}") {
        prop_assert!(Machine::parse(&text, "noise.toml").is_err());
    }
}
