//! Recorded programs with their objects laid out by site: what sites are said to cost is what they cost, and budgets hold.

use std::path::{Path, PathBuf};
use varve_machine::{Machine, Op};
use varve_run::objects::{
    By, Groups, ObjectResult, ObjectSpec, PLANS, Placed, Quotas, keys, quotas, run_objects, truth,
};
use varve_sites::Counts;
use varve_trace::{CallSite, End, Event, FileHeader, TraceWriter};

const MIB: u64 = 1 << 20;

/// Bytes of the three sites of [`recorded`].
const HOT: u64 = MIB;
const COLD: u64 = 3 * MIB;
const READ: u64 = 2 * MIB;

/// A program that writes much memory once, reads some of it in order again and again, and follows pointers in a little.
fn recorded(folder: &Path) -> PathBuf {
    let path = folder.join("program.trace");
    let header = FileHeader {
        command: vec!["program".into()],
        ..FileHeader::default()
    };
    let mut writer = TraceWriter::create(&path, &header).unwrap();
    let mut next = 1 << 32;
    let mut object = |writer: &mut TraceWriter<_>, offset: u64, bytes: u64| {
        let site = writer.site(CallSite {
            module: "/bin/program".into(),
            offset,
            ..CallSite::default()
        });
        let addr = next;
        next += bytes + 64;
        let event = Event::Alloc { site, addr, bytes };
        writer.event(0, event).unwrap();
        addr
    };
    let cold = object(&mut writer, 0x10, COLD);
    let read = object(&mut writer, 0x20, READ);
    let hot = object(&mut writer, 0x30, HOT);
    let lines = |at: u64, bytes: u64| (at..at + bytes).step_by(64);
    let all = lines(cold, COLD)
        .chain(lines(read, READ))
        .chain(lines(hot, HOT));
    let mut ops: Vec<Op> = all.map(|at| Op::write(at, 8, 4)).collect();
    for _ in 0..3 {
        ops.extend(lines(read, READ).map(|at| Op::read(at, 8, 8)));
    }
    let mut random = 1u64;
    for _ in 0..60_000 {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ops.push(Op::read(hot + (random >> 33) % (HOT / 64) * 64, 8, 6).after_load());
    }
    writer.push(0, &ops).unwrap();
    writer.finish(End::default()).unwrap();
    path
}

struct Replay {
    machine: Machine,
    trace: PathBuf,
}

impl Replay {
    /// On a machine with small caches.
    fn new(folder: &Path) -> Replay {
        Replay {
            machine: Machine::load("optane-6230").unwrap().scaled(64),
            trace: recorded(folder),
        }
    }

    fn run(&self, placed: Placed, budget: Option<u64>, by_site: bool) -> ObjectResult {
        let spec = ObjectSpec {
            machine: self.machine.clone(),
            trace: self.trace.clone(),
            plan: "test".into(),
            placed,
            budget,
            seed: 1,
            by_site,
        };
        run_objects(&spec, &mut |_| true).unwrap()
    }

    /// Stacks as groups, and what they are worth.
    fn worth(&self) -> (Groups, Vec<Counts>, ObjectResult) {
        let fast = self.run(Placed::Fast, None, true);
        let slow = self.run(Placed::Slow, None, true);
        let counts = truth(&fast, &slow);
        let groups = Groups::by_heat(&keys(&self.trace).unwrap(), &counts);
        let sums = groups.sum(&counts);
        let costs: u64 = sums.iter().map(|c| c.slow_ns - c.fast_ns).sum();
        let difference = 1e9 * (slow.seconds - fast.seconds);
        let missing = difference - costs as f64;
        assert!(
            missing.abs() < 0.01 * difference,
            "{missing} of {difference} ns are nobody's"
        );
        (groups, sums, fast)
    }
}

#[test]
fn a_site_costs_what_it_is_said_to_cost() {
    let folder = tempfile::tempdir().unwrap();
    let replay = Replay::new(folder.path());
    let (groups, worth, _) = replay.worth();
    let all = |except: Option<usize>| {
        let mut bytes = vec![u64::MAX; worth.len()];
        if let Some(site) = except {
            bytes[site] = 0;
        }
        let placed = Placed::Sites(groups.clone(), Quotas { bytes });
        replay.run(placed, None, false).seconds * 1e9
    };
    let fast = all(None);
    let mut moved = 0;
    for (site, counts) in worth.iter().enumerate().filter(|(_, c)| c.objects > 0) {
        let costs = (counts.slow_ns - counts.fast_ns) as f64;
        let alone = all(Some(site)) - fast;
        let apart = (costs - alone).abs() / alone.max(costs);
        assert!(
            apart < 0.35,
            "site {site}: said to cost {costs} ns, alone in slow memory {alone} ns"
        );
        moved += 1;
    }
    assert_eq!(moved, 3);
}

#[test]
fn a_quarter_of_memory_is_enough_for_what_is_hot() {
    let folder = tempfile::tempdir().unwrap();
    let replay = Replay::new(folder.path());
    let (groups, worth, fast) = replay.worth();
    let budget = fast.most_bytes / 4;
    let mut seconds = std::collections::HashMap::new();
    for plan in PLANS {
        let placed = match plan.by {
            By::Fast | By::Slow => continue,
            By::Pages(policy) => Placed::Pages(policy.into()),
            By::Sites(_) | By::Truth => {
                let quotas = quotas(plan, &worth, &worth, budget).unwrap();
                Placed::Sites(groups.clone(), quotas)
            }
        };
        let result = replay.run(placed, Some(budget), false);
        // DIMMs have whole pages.
        assert!(
            result.fast_bytes <= budget + 4 * 4096,
            "{}: {}",
            plan.name,
            result.fast_bytes
        );
        assert!(
            result.fast_bytes + result.slow_bytes <= fast.most_bytes * 21 / 20,
            "{}: the layout takes no more pages than the program's own",
            plan.name
        );
        seconds.insert(plan.name, result.seconds);
    }
    // What is hot is allocated last, and fits.
    assert!(
        seconds["hot-sites"] < 0.8 * seconds["first-touch"],
        "{seconds:?}"
    );
    assert!(
        seconds["knapsack"] < 0.8 * seconds["first-touch"],
        "{seconds:?}"
    );
    assert!(
        seconds["oracle"] <= 1.01 * seconds["hot-sites"],
        "{seconds:?}"
    );
}
