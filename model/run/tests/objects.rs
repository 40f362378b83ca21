//! Recorded programs with their objects laid out by site: the predicted cost of sites is their real one, and budgets
//! hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use varve_access::Op;
use varve_machine::Machine;
use varve_run::TrayOptions;
use varve_run::objects::{
    By, Groups, ObjectResult, ObjectSpec, PLANS, Placed, Quotas, TraceSites, check_trays, colours,
    keys, run_objects, truth,
};
use varve_sites::Counts;
use varve_sites::native::Key;
use varve_trace::{CallSite, End, Event, FileHeader, StackRange, TraceWriter};

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
    sites: Arc<TraceSites>,
}

impl Replay {
    /// On a machine with small caches.
    fn new(folder: &Path) -> Replay {
        let trace = recorded(folder);
        Replay {
            machine: Machine::load("optane-6230").unwrap().scaled(64),
            sites: Arc::new(TraceSites::read(&trace).unwrap()),
            trace,
        }
    }

    fn run(&self, placed: Placed, budget: Option<u64>, by_site: bool) -> ObjectResult {
        let spec = ObjectSpec {
            machine: self.machine.clone(),
            trace: self.trace.clone(),
            sites: self.sites.clone(),
            plan: "test".into(),
            placed,
            budget,
            seed: 1,
            pictures: false,
            steady: None,
            whole: true,
            by_site,
        };
        run_objects(&spec, &mut |_| true).unwrap()
    }

    /// Stacks as groups, with their costs and benefits.
    fn worth(&self) -> (Groups, Vec<Counts>, ObjectResult) {
        let fast = self.run(Placed::Fast, None, true);
        let slow = self.run(Placed::Slow, None, true);
        let counts = truth(&fast, &slow);
        let groups = Groups::by_heat(&keys(&self.sites, &fast), &counts);
        let sums = groups.sum(&counts, &fast.live);
        let costs: u64 = sums.iter().map(|c| c.slow_ns - c.fast_ns).sum();
        let difference = 1e9 * (slow.seconds - fast.seconds);
        let missing = difference - costs as f64;
        assert!(
            missing.abs() < 0.01 * difference,
            "{missing} of {difference} ns have no owner"
        );
        (groups, sums, fast)
    }
}

#[test]
fn a_site_costs_what_it_is_said_to_cost() {
    let folder = tempfile::tempdir().unwrap();
    let replay = Replay::new(folder.path());
    let (groups, worth, in_fast) = replay.worth();
    let all = |except: Option<usize>| {
        let mut bytes = vec![u64::MAX; worth.len()];
        if let Some(site) = except {
            bytes[site] = 0;
        }
        let placed = Placed::Sites(groups.clone(), Quotas { bytes }, in_fast.most_bytes);
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
    for plan in PLANS.list("all", |_| true).unwrap() {
        let placed = match &plan.by {
            By::Fast | By::Slow | By::Arenas | By::Colours(_) | By::Hints => continue,
            By::Pages(policy) => Placed::Pages(policy.clone()),
            By::Sites(choose) | By::Truth(choose) => {
                let quotas = choose.quotas(&worth, budget);
                Placed::Sites(groups.clone(), quotas, fast.most_bytes)
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
    // The hot objects are allocated last, and fit.
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

/// Memory that the program maps itself is a site, and so is a stack whose range the trace knows.
#[test]
fn mappings_and_stacks_are_sites_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("maps.trace");
    let mut writer = TraceWriter::create(&path, &FileHeader::default()).unwrap();
    let site = writer.site(CallSite {
        module: "/bin/program".into(),
        offset: 0x40,
        ..CallSite::default()
    });
    let (mapping, stack) = (1u64 << 33, 1u64 << 34);
    let map = |writer: &mut TraceWriter<_>, event| writer.event(0, event).unwrap();
    map(
        &mut writer,
        Event::Map {
            addr: mapping,
            bytes: MIB,
        },
    );
    map(
        &mut writer,
        Event::MapSite {
            site,
            addr: mapping,
            bytes: MIB,
        },
    );
    let pages = (0..64).map(|page| Op::write(mapping + page * 4096, 8, 1));
    let deep = (0..8).map(|page| Op::write(stack - 8 - page * 4096, 8, 1));
    let elsewhere = (0..4).map(|page| Op::read((1 << 35) + page * 4096, 8, 1));
    let ops: Vec<Op> = pages.chain(deep).chain(elsewhere).collect();
    writer.push(0, &ops).unwrap();
    let stacks = vec![StackRange {
        process: 0,
        start: stack - MIB,
        end: stack,
    }];
    let end = End {
        stacks,
        ..End::default()
    };
    writer.finish(end).unwrap();
    let sites = Arc::new(TraceSites::read(&path).unwrap());
    let replay = Replay {
        machine: Machine::load("cxl-spr").unwrap(),
        trace: path,
        sites,
    };
    let fast = replay.run(Placed::Fast, None, true);
    let found = keys(&replay.sites, &fast);
    assert!(
        matches!(found[..], [Key::Rest, Key::Mapping(_), Key::Stacks]),
        "{found:?}"
    );
    let peaks: Vec<u64> = fast
        .sites
        .iter()
        .map(|s| s.tally.peak_bytes / 4096)
        .collect();
    assert_eq!(peaks, [4, 64, 8], "pages that were touched");
    // The mapping alone is slow.
    let groups = Groups::by_heat(&found, &truth(&fast, &fast));
    let bytes = vec![u64::MAX, 0, u64::MAX];
    let placed = Placed::Sites(groups, Quotas { bytes }, fast.most_bytes);
    let apart = replay.run(placed, None, false);
    assert_eq!((apart.fast_bytes / 4096, apart.slow_bytes / 4096), (12, 64));
}

/// Hot sites share one DIMM, cold ones another, and the two that are left over sleep.
#[test]
fn cold_sites_let_dimms_sleep() {
    let folder = tempfile::tempdir().unwrap();
    let replay = Replay {
        machine: Machine::load("haswell-2620v3").unwrap().scaled(64),
        ..Replay::new(folder.path())
    };
    let spread = replay.run(Placed::Spread, None, true);
    let counts = truth(&spread, &spread);
    let groups = Groups::by_heat(&keys(&replay.sites, &spread), &counts);
    let quotas = colours::colours(&groups.sum(&counts, &spread.live), 0.3);
    assert_eq!(
        quotas.bytes.iter().filter(|&&bytes| bytes == 0).count(),
        2,
        "what is only written and what is read in order have few misses: {quotas:?}"
    );
    let settings = TrayOptions::default();
    let placed = Placed::Coloured(groups.clone(), quotas.clone(), settings.clone());
    let coloured = replay.run(placed, None, false);
    let dimms = |r: &ObjectResult| {
        let all = &r.trays.as_ref().unwrap().dimms;
        let held: Vec<(u64, u64)> = all.iter().map(|d| (d.hot_bytes, d.cold_bytes)).collect();
        let asleep = all.iter().map(|d| d.states[2] + d.states[3]).collect();
        (held, asleep)
    };
    let (held, _): (_, Vec<f64>) = dimms(&spread);
    assert!(held.iter().all(|d| d.0 > MIB && d.1 == 0), "{held:?}");
    let (held, asleep): (_, Vec<f64>) = dimms(&coloured);
    assert!(
        held[0].0 >= HOT && held[0].0 < HOT + MIB && held[0].1 == 0,
        "{held:?}"
    );
    assert!(held[1].0 == 0 && held[1].1 >= COLD + READ, "{held:?}");
    assert_eq!(held[2..], [(0, 0), (0, 0)]);
    assert!(asleep[2] > 0.9 && asleep[3] > 0.9, "{asleep:?}");
    assert_eq!(
        (coloured.fast_bytes, coloured.slow_bytes),
        (held[0].0, held[1].1)
    );
    let saved = 1.0 - coloured.energy_j.unwrap() / spread.energy_j.unwrap();
    assert!(saved > 0.1, "{saved}");
    assert!(coloured.cpu_j.is_some() && !coloured.power.is_empty());
    // Two hot DIMMs share the hot objects.
    let two = TrayOptions { hot: 2, ..settings };
    let two = replay.run(Placed::Coloured(groups, quotas, two), None, false);
    let (held, _): (_, Vec<f64>) = dimms(&two);
    assert!(held[0].0.abs_diff(held[1].0) <= 4096, "{held:?}");
}

#[test]
fn trays_are_refused_where_no_dimm_can_be_cold() {
    let says = |machine: &str| {
        let machine = Machine::load(machine).unwrap();
        check_trays(&machine, &TrayOptions::default())
            .unwrap_err()
            .to_string()
    };
    let two = says("cxl-spr");
    assert!(
        two.contains("has slow memory") && two.contains("haswell-2620v3"),
        "{two}"
    );
    let mut interleaved = Machine::load("haswell-2620v3").unwrap();
    interleaved.dram.interleave_bytes = Machine::load("cxl-spr").unwrap().dram.interleave_bytes;
    let said = check_trays(&interleaved, &TrayOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("interleaved") && said.contains("haswell-2620v3"),
        "{said}"
    );
    let five = TrayOptions {
        hot: 5,
        ..TrayOptions::default()
    };
    let said = check_trays(&Machine::load("haswell-2620v3").unwrap(), &five).unwrap_err();
    assert!(said.to_string().contains("has 4"), "{said}");
}
