//! Every policy under the model of a machine: at the end both must agree where each page is, through all moves and
//! unmaps in between.

mod common;

use varve_access::{Kind, Op, Program};
use varve_machine::Machine;
use varve_machine::model::{self, Options};
use varve_pages::{Placement, Topology, policies};

/// Machine and pages are this many times smaller.
const SCALE: u32 = 4096;
const PAGE: u64 = 4096;
/// Pages of the program: about twice the DRAM cache, or 1.5 times the DRAM.
const PAGES: u64 = 6144;
const THREADS: usize = 4;
/// Updates of each thread.
const UPDATES: u64 = 30_000;

/// Hot pages, by their first and number: pairs that share a bin where memory is laid out in order, and some beyond the
/// end of DRAM.
const HOT: [(u64, u64); 3] = [(0, 200), (3072, 200), (5000, 200)];

/// The first thread touches all pages in order; then all update hot pages most of the time, and now and then give a
/// page back.
struct Churn {
    random: [u64; THREADS],
    left: [u64; THREADS],
    touched: u64,
    unmaps: bool,
}

impl Churn {
    fn below(&mut self, thread: usize, n: u64) -> u64 {
        let state = &mut self.random[thread];
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % n
    }
}

impl Program for Churn {
    fn name(&self) -> String {
        "churn".into()
    }

    fn threads(&self) -> usize {
        THREADS
    }

    fn fill(&mut self, thread: usize, _now: u64, out: &mut Vec<Op>) -> bool {
        if thread == 0 && self.touched < PAGES {
            let pages = self.touched..(self.touched + 64).min(PAGES);
            self.touched = pages.end;
            out.extend(pages.map(|page| Op::write(page * PAGE, 8, 20)));
            return true;
        }
        if self.left[thread] == UPDATES {
            out.push(Op::mark(Kind::Barrier, 0));
        }
        for _ in 0..64 {
            if self.left[thread] == 0 {
                return false;
            }
            self.left[thread] -= 1;
            let page = match self.below(thread, 4) {
                0 => self.below(thread, PAGES),
                _ => {
                    let (first, pages) = HOT[self.below(thread, 3) as usize];
                    first + self.below(thread, pages)
                }
            };
            let address = page * PAGE + self.below(thread, PAGE / 8) * 8;
            out.push(match self.below(thread, 50) {
                0 if self.unmaps => Op {
                    size: 1,
                    ..Op::mark(Kind::Unmap, page * PAGE)
                },
                _ => Op::new(Kind::Update, address, 8, 20),
            });
        }
        true
    }
}

fn run(spec: &str, machine: &Machine, unmaps: bool) -> Placement {
    let mut placement = Placement::on(spec, Topology::of(machine, PAGE).unwrap()).unwrap();
    let mut program = Churn {
        random: [1, 2, 3, 4],
        left: [UPDATES; THREADS],
        touched: 0,
        unmaps,
    };
    let options = Options::default();
    let outcome = model::run(
        machine,
        &mut placement,
        &mut [&mut program],
        &options,
        &mut |_| true,
    )
    .unwrap();
    let mut seen: Vec<(u64, u32)> = placement
        .mapping()
        .map(|(frame, page)| (page, frame))
        .collect();
    let mut model = outcome.mapping;
    seen.sort_unstable();
    model.sort_unstable();
    assert_eq!(seen, model, "{spec}");
    assert_eq!(outcome.pages, seen.len() as u64);
    placement
}

fn every_policy(unmaps: bool) {
    for name in ["optane-6230-memory-mode", "optane-6230"] {
        let machine = Machine::load_from(name, &[]).unwrap().scaled(SCALE);
        let topology = Topology::of(&machine, PAGE).unwrap();
        for entry in policies() {
            let given = common::spec(entry);
            if entry.name == "fast" || entry.needs.check(entry.name, &topology).is_err() {
                continue;
            }
            let daemon = entry
                .params
                .iter()
                .any(|param| param.key == "sample-period");
            let mut spec = match daemon {
                true => format!("{given}scale={SCALE},sample-period=20k"),
                false => given,
            };
            if daemon && entry.params.iter().any(|param| param.key == "seed") {
                // Equal bins in order: the hot pieces lie one cache apart, so that there is something to move.
                spec += ",seed=0";
            }
            let placement = run(&spec, &machine, unmaps);
            let (counters, dump) = (placement.counters(), placement.dump());
            assert_eq!(counters.stray_unmaps, 0, "{spec}");
            assert_eq!(unmaps, counters.unmaps > 0, "{spec}: {dump}");
            if daemon {
                // Fewer where a page that is about to move is unmapped.
                assert!(counters.moves_done > 30, "{spec}: {dump}");
            }
        }
    }
}

#[test]
fn the_model_and_every_policy_agree_where_pages_are() {
    every_policy(false);
}

#[test]
fn they_agree_when_pages_are_given_back_while_others_move() {
    every_policy(true);
}
