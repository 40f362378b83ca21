//! Groups on the model: they end, they are placed where the plan says, and the same again is the same.

use std::time::Instant;
use varve_jobs::compare::{Making, compare, demands, run_all};
use varve_jobs::model::{ModelSpec, run};
use varve_jobs::oracle::candidates;
use varve_jobs::{Demand, Error, Group, Host, Memory, Point, Strategy, explain, group, plan};
use varve_machine::Machine;
use varve_run::Keep;

fn spec() -> ModelSpec {
    let mut spec = ModelSpec::new(Machine::load("optane-6230n").unwrap());
    // Programs of a GiB are still larger than the caches.
    spec.scale = 1024;
    spec
}

fn read(text: &str) -> Group {
    group::parse(text, "g.toml").unwrap()
}

fn making<T>(work: impl FnOnce(&Making) -> T) -> T {
    work(&Making {
        workers: 2,
        keep: &Keep::nothing(),
        watch: &|_, _, _| true,
    })
}

const TWO: &str = "fast = \"1280MiB\"\nat_once = 1\ncores = 16\n\
    [[program]]\nname = \"freqmine\"\nworkload = \"freqmine:bytes=1GiB\"\n\
    [[program]]\nname = \"npb_mg\"\nworkload = \"npb_mg:bytes=1GiB,passes=40\"\n";

/// The program that streams comes last and finds fast memory full: by need it is there, the other's pages have moved, and the
/// group takes less time.
#[test]
fn a_program_that_needs_bandwidth_takes_the_place_of_one_that_does_not() {
    let group = read(TWO);
    let both = [Strategy::LINUX, "placement".parse().unwrap()];
    let c = making(|m| compare(&group, &spec(), &both, m)).unwrap();
    let [linux, placed] = &c.results[..] else {
        panic!()
    };
    assert_eq!(linux.programs[1].memory, Memory::Slow);
    assert_eq!(placed.programs[1].memory, Memory::Fast);
    assert_eq!(placed.programs[0].memory, Memory::Slow);
    assert_eq!(c.plans[1].evictions.len(), 1);
    // Pages are whole, so a few bytes more than the program has.
    assert!(placed.moved_bytes >= c.demands[0].bytes, "{placed:?}");
    assert!(placed.moving_s > 0.0);
    let ready = placed.programs[1].start_s.unwrap();
    assert!(ready >= placed.moving_s, "it waits for its room");
    let saved = placed.saves(linux).unwrap();
    assert!(saved > 20.0, "{saved:.1} %");
    assert!(linux.is_well() && placed.is_well());
}

#[test]
fn the_same_group_is_the_same_to_the_last_bit() {
    let group = read(TWO);
    let run = || making(|m| compare(&group, &spec(), &[Strategy::ALL], m)).unwrap();
    let (a, b) = (run(), run());
    assert_eq!(a.demands, b.demands);
    assert_eq!(a.plans, b.plans);
    assert_eq!(a.results, b.results);
}

/// Programs that run beside each other share the machine: each is slower than alone.
#[test]
fn programs_run_together_and_disturb_each_other() {
    let text = |both: bool| {
        let second =
            "[[program]]\nname = \"b\"\nworkload = \"npb_ft:bytes=256MiB\"\nmemory = \"slow\"\n";
        let first = "[[program]]\nname = \"a\"\nworkload = \"ocean_cp:bytes=1GiB,passes=4\"\nmemory = \"fast\"\n";
        read(&format!("{first}{}", if both { second } else { "" }))
    };
    let time = |both| {
        let c = making(|m| compare(&text(both), &spec(), &[Strategy::LINUX], m)).unwrap();
        assert!(!both || c.results[0].programs[1].start_s == Some(0.0));
        c.results[0].programs[0].seconds().unwrap()
    };
    let (both, alone) = (time(true), time(false));
    assert!(
        both > 1.05 * alone,
        "{both} s beside another, {alone} s alone"
    );
}

#[test]
fn programs_wait_for_those_that_they_follow_and_a_time_limit_ends_one() {
    let text = "[[program]]\nname = \"a\"\nworkload = \"npb_mg:bytes=512MiB\"\nafter = [\"b\"]\n\
        [[program]]\nname = \"b\"\nworkload = \"npb_mg:bytes=512MiB\"\ntime_limit = \"100ms\"\n";
    let group = read(text);
    let c = making(|m| compare(&group, &spec(), &[Strategy::LINUX], m)).unwrap();
    let [a, b] = &c.results[0].programs[..] else {
        panic!()
    };
    assert_eq!(
        b.failure.as_deref(),
        Some("it took longer than its time limit")
    );
    assert!(b.seconds().unwrap() < 0.2, "{b:?}");
    assert!(
        a.start_s >= b.end_s && a.failure.is_none(),
        "the other one goes on"
    );
    let stop = read(&format!("on_failure = \"stop\"\n{text}"));
    let c = making(|m| compare(&stop, &spec(), &[Strategy::LINUX], m)).unwrap();
    assert_eq!(c.results[0].programs[0].start_s, None);
    assert!(c.results[0].programs[0].failure.is_some());
}

/// The policies against the best of all plans, found by trying them.
#[test]
fn the_policies_are_near_the_oracle() {
    let group = read(TWO);
    let c = making(|m| compare(&group, &spec(), &[Strategy::LINUX, Strategy::ALL], m)).unwrap();
    let plans = candidates(&group, &c.demands, &c.host).unwrap();
    // Three of four placements fit; two orders where both are in one memory; two thread counts for each program.
    assert_eq!(plans.len(), (2 + 1 + 1) * 4);
    let best = making(|m| run_all(&group, &plans, &spec(), m)).unwrap();
    let best = best.iter().map(|r| r.seconds).fold(f64::INFINITY, f64::min);
    let [linux, all] = [&c.results[0], &c.results[1]].map(|r| r.seconds);
    // The candidates place each program once. One that begins in fast memory and makes room later gains a little.
    assert!(
        best <= 1.05 * all,
        "no plan is far ahead of the oracle: {best} s, {all} s"
    );
    assert!(all < 1.5 * best, "{all} s for {best} s");
    assert!(best < linux);
}

#[test]
fn groups_that_do_not_fit_are_refused_with_their_line() {
    let refused = |text: &str| {
        let group = read(text);
        let host = spec().host(&group);
        let planned = host.and_then(|h| {
            let d = making(|m| demands(&group, &spec(), &h, m))?;
            plan(&group, &d, &h, Strategy::ALL).map(|_| ())
        });
        planned.unwrap_err().to_string()
    };
    let program = "[[program]]\nname = \"a\"\nworkload = \"npb_mg:passes=1\"\n";
    let e = refused(&format!("fast = \"1GiB\"\nslow = \"1GiB\"\n{program}"));
    assert!(
        e.starts_with("g.toml:3: program `a`, bytes: needs 3"),
        "{e}"
    );
    let e = refused(&format!("fast = \"1TiB\"\n{program}"));
    assert!(e.contains("optane-6230n has 192 GiB"), "{e}");
    let e = refused(&format!("cores = 64\n{program}"));
    assert!(e.contains("64 cores, and optane-6230n has 20"), "{e}");
    let e = refused(&format!("{program}threads = 30\n"));
    assert!(
        e.starts_with("g.toml:1: program `a`, threads: 30 threads"),
        "{e}"
    );
    let e = refused("[[program]]\nname = \"a\"\ncommand = [\"true\"]\n");
    assert!(
        e.contains("run the group on this machine with --live"),
        "{e}"
    );
    let e = refused("[[program]]\nname = \"a\"\nworkload = \"npb_mg:threads=4\"\n");
    assert!(e.contains("the workload sets `threads=` itself"), "{e}");
    let mut one = spec();
    one.machine = Machine::load("haswell-2620v3").unwrap();
    let e = one.host(&read(program)).unwrap_err();
    assert!(matches!(e, Error::OneMemory(_)), "{e}");
}

#[test]
fn an_interrupt_ends_a_run() {
    let group = read(TWO);
    let c = making(|m| compare(&group, &spec(), &[Strategy::LINUX], m)).unwrap();
    let e = run(&group, &c.plans[0], &spec(), &mut |_| false).unwrap_err();
    assert!(e.is_interrupt());
}

/// Twenty programs, each known with 1 to 16 threads in both memories.
fn twenty() -> (Group, Vec<Demand>, Host) {
    let text: String = (0..20)
        .map(|i| {
            format!(
                "[[program]]\nname = \"p{i}\"\nworkload = \"gups\"\nthreads = {}\n",
                1 + i % 9
            )
        })
        .collect();
    let group = read(&format!("fast = \"40GiB\"\n{text}"));
    let host = spec().host(&group).unwrap();
    let point = |i: u32, slow: f64, threads: u32| Point {
        threads,
        seconds: slow * (1.0 + f64::from(i) / f64::from(threads)),
        read_gbps: Some(1.0),
        write_gbps: Some(f64::from(i % 3)),
        ..Point::default()
    };
    let demands = (0..20)
        .map(|i| Demand {
            part: None,
            name: format!("p{i}"),
            bytes: u64::from(1 + i % 7) << 30,
            curves: [1.0, 1.0 + f64::from(i % 5)]
                .map(|s| (1..=16).map(|t| point(i, s, t)).collect()),
            missing: Vec::new(),
        })
        .collect();
    (group, demands, host)
}

#[test]
fn every_decision_for_twenty_programs_has_its_sentence() {
    let (group, demands, host) = twenty();
    let begun = Instant::now();
    let plan = plan(&group, &demands, &host, Strategy::ALL).unwrap();
    eprintln!("planned 20 programs in {:?}", begun.elapsed());
    let fast: u64 = plan.programs.iter().map(|p| p.fast_bytes).sum();
    assert!(fast <= host.capacity.fast);
    assert!(plan.programs.iter().map(|p| p.threads).sum::<u32>() <= host.cores);
    let sentences = explain(&plan, &group, &host);
    // Class, place, threads and turn of each.
    assert_eq!(sentences.len(), 4 * 20);
    for p in &plan.programs {
        let about = sentences
            .iter()
            .filter(|s| s.starts_with(&format!("{} ", p.name)));
        assert_eq!(about.count(), 4, "{}", p.name);
    }
}
