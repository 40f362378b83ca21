//! One policy on one pattern of accesses, live and on the model: which pages each has in fast memory. In a guest with memory alone
//! on a node (`.ci/run`); elsewhere this says that it is skipped.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use varve_access::{Kind, Op, Program};
use varve_live::nodes::Kinds;
use varve_live::probe::Topology;
use varve_live::tier::{Target, TierOptions, Way, tier};
use varve_machine::Machine;
use varve_machine::model::{self, Options};
use varve_pages::Placement;
use varve_spec::Bytes;
use varve_tier::pages::{PagePolicy, live_spec};

const TOTAL_MIB: u64 = 40;
const HOT_MIB: u64 = 8;
const FAST_MIB: u64 = 16;
/// Pages of a MiB.
const MIB: u64 = 256;
const PAGE: u64 = 4096;

/// Every fifth MiB, as `tiered.c` has it.
fn is_hot(page: u64) -> bool {
    let mib = page / MIB;
    (0..HOT_MIB).any(|i| i * TOTAL_MIB / HOT_MIB == mib)
}

/// Touches all its pages once, and then the hot ones every 10 ms.
struct Pattern {
    round: u64,
    next: u64,
}

const BASE: u64 = 1 << 30;
const ROUNDS: u64 = 60;

impl Program for Pattern {
    fn name(&self) -> String {
        "tiered".into()
    }

    fn threads(&self) -> usize {
        1
    }

    fn fill(&mut self, _: usize, _: u64, out: &mut Vec<Op>) -> bool {
        for _ in 0..256 {
            if self.next == TOTAL_MIB * MIB {
                (self.next, self.round) = (0, self.round + 1);
                out.push(Op::mark(Kind::Sleep, 10_000_000));
            }
            let page = self.next;
            self.next += 1;
            if self.round == 0 || is_hot(page) {
                // Another line each time, so that no cache has it.
                out.push(Op::write(BASE + page * PAGE + self.round % 64 * 64, 8, 10));
            }
        }
        self.round < ROUNDS
    }
}

/// For each page whether the model has it in fast memory.
fn on_the_model() -> Vec<bool> {
    let mut machine = Machine::load("cxl-spr").unwrap().scaled(4096);
    machine.sockets = 1;
    let dimms = u64::from(machine.dram.channels * machine.dram.dimms_per_channel);
    machine.dram.dimm_bytes = Bytes((FAST_MIB << 20) / dimms);
    let spec = "hotset:sample-period=1,period=10ms";
    let mut placement = Placement::new(spec, &machine, PAGE).unwrap();
    let mut pattern = Pattern { round: 0, next: 0 };
    let options = Options::default();
    model::run(
        &machine,
        &mut placement,
        &mut [&mut pattern],
        &options,
        &mut |_| true,
    )
    .unwrap();
    let mut fast = vec![false; (TOTAL_MIB * MIB) as usize];
    for (frame, page) in placement.mapping() {
        fast[(page - BASE / PAGE) as usize] = placement.frames().is_fast(frame);
    }
    fast
}

/// The same of a program that runs; hot pages first.
fn live(kinds: Kinds) -> Option<Vec<bool>> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tiered");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guest/tiered.c");
    let mut build = Command::new("cc");
    build.args(["-O1", source, "-o"]).arg(&program);
    if !build.status().is_ok_and(|status| status.success()) {
        varve_skip::skip!("needs cc");
        return None;
    }
    // It ends once that is so, however long it takes where other work goes on.
    let memory =
        format!("total={TOTAL_MIB} hot={HOT_MIB} budget={FAST_MIB} percent=99 seconds=200");
    let words = memory.split(' ').chain(["do=write", "do=map"]);
    let mut child = Command::new(&program)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let fast = kinds.fast.clone();
    let options = TierOptions {
        policy: "hotset",
        kinds,
        fast_bytes: Some(FAST_MIB << 20),
        page_bytes: Some(PAGE),
        way: Some(Way::Writes),
        period: Duration::from_millis(300),
        rate: 256 << 20,
        core: 0.5,
        hold: Duration::from_secs(1),
        time: None,
        stop: &AtomicBool::new(false),
        name: None,
        heat: None,
        say: &|_| {},
        beat: &|| (),
    };
    let spec = live_spec("hotset:period=300ms").unwrap();
    let target = Target::Processes(vec![child.id()]);
    tier(
        &target,
        &options,
        |room| PagePolicy::new(&spec, room),
        |_| {},
    )
    .unwrap();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    child.wait().unwrap();
    let digits = |word: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("{text}")).to_string()
    };
    let all = digits("hot ") + &digits("cold ");
    let is_fast = |digit: char| digit.to_digit(10).is_some_and(|node| fast.contains(&node));
    Some(all.chars().map(is_fast).collect())
}

#[test]
fn the_same_pages_are_in_fast_memory_live_and_on_the_model() {
    let kinds = match Kinds::probe(&Topology::read(Path::new("/")).0) {
        Ok(kinds) => kinds,
        Err(why) => return varve_skip::skip!("{why}"),
    };
    // In a guest, which is ours, the kernel moves no used pages by itself.
    if Path::new("/.guest").exists() {
        std::fs::write("/proc/sys/kernel/numa_balancing", "0").unwrap();
    }
    let model = on_the_model();
    let pages = || 0..TOTAL_MIB * MIB;
    let hot = pages().filter(|page| is_hot(*page));
    let order = hot.chain(pages().filter(|page| !is_hot(*page)));
    let model: Vec<bool> = order.map(|page| model[page as usize]).collect();
    let Some(live) = live(kinds) else { return };
    let hot = (HOT_MIB * MIB) as usize;
    let differ = |of: std::ops::Range<usize>| of.filter(|&i| model[i] != live[i]).count();
    let fast = |all: &[bool]| all.iter().filter(|fast| **fast).count();
    let (hot_differ, cold_differ) = (differ(0..hot), differ(hot..model.len()));
    eprintln!(
        "hot pages in fast memory: model {}, live {}, of {hot}; {hot_differ} differ. Cold ones: model {}, live {}, of {}; {cold_differ} differ",
        fast(&model[..hot]),
        fast(&live[..hot]),
        fast(&model[hot..]),
        fast(&live[hot..]),
        model.len() - hot,
    );
    // The model's hot pages are all in fast memory; live a page in a hundred may be on its way.
    assert_eq!(fast(&model[..hot]), hot);
    assert!(
        hot_differ * 100 <= hot,
        "{hot_differ} of {hot} hot pages differ"
    );
    // Both fill fast memory, with cold pages where hot ones leave room; live some of it is stacks and the like.
    let budget = (FAST_MIB * MIB) as usize;
    assert_eq!(fast(&model), budget);
    assert!(
        fast(&live).abs_diff(budget) * 50 <= budget,
        "{}",
        fast(&live)
    );
}
