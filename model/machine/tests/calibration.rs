//! Today's distance to published measurements, so that it cannot grow unseen. The factors are today's residuals,
//! rounded up; they are not aims. `docs/calibration.md` has their sources.

use varve_machine::Machine;
use varve_machine::calibrate::{Effort, Row, measurements, published, table};

/// Measures every quantity with published figures for `machine` and holds every curve to its factor.
fn hold(machine: &str, factors: &[(&str, f64)]) {
    let m = Machine::load(machine).unwrap();
    let theirs = published(machine);
    let ours: Vec<_> = measurements(&m, Effort::Quick)
        .iter()
        .filter(|q| theirs.iter().any(|p| p.curve == q.id))
        .map(|q| q.run())
        .collect();
    let rows = table(&ours, &theirs);
    for curve in theirs.iter().filter(|p| !p.is_input).map(|p| &p.curve) {
        let factor = factors.iter().find(|f| f.0 == curve);
        let factor = factor
            .unwrap_or_else(|| panic!("{machine}: {curve} has no factor"))
            .1;
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|r| r.curve == *curve && !r.is_input)
            .collect();
        assert!(!rows.is_empty(), "{machine}: {curve} was not measured");
        for r in &rows {
            let value = r
                .ours
                .unwrap_or_else(|| panic!("{curve} does not reach {}", r.at));
            let ratio = (value / r.published).max(r.published / value);
            assert!(
                ratio <= factor,
                "{machine}: {curve} at {}: published {}, ours {value:.2} {}: a factor of {ratio:.2}",
                r.at,
                r.published,
                r.unit
            );
        }
        same_order(machine, &rows);
    }
}

/// Where published figures differ clearly, ours differ in the same direction.
fn same_order(machine: &str, rows: &[&Row]) {
    for a in rows {
        for b in rows {
            if b.published > a.published * 2.2 {
                assert!(
                    b.ours > a.ours,
                    "{machine}: {}: published {} at {} and {} at {}, ours {:?} and {:?}",
                    a.curve,
                    a.published,
                    a.at,
                    b.published,
                    b.at,
                    a.ours,
                    b.ours
                );
            }
        }
    }
}

#[test]
fn the_optane_study() {
    hold(
        "optane-8260",
        &[
            ("idle-latency", 1.2),
            ("threads/dram/read", 1.5),
            ("threads/dram/ntstore", 1.25),
            ("threads/dram/clwb", 1.1),
            ("threads/pm/read", 1.2),
            ("threads/pm/ntstore", 1.3),
            ("threads/pm/clwb", 1.15),
            ("threads/pm-dimm/read", 1.3),
            ("threads/pm-dimm/ntstore", 2.15),
            ("threads/pm-dimm/clwb", 1.45),
            ("size/dram/read", 1.15),
            ("size/dram/ntstore", 1.2),
            ("size/dram/clwb", 1.4),
            ("size/pm/read", 1.3),
            ("size/pm/ntstore", 1.2),
            ("size/pm/clwb", 1.3),
            ("size/pm-dimm/read", 1.15),
            ("size/pm-dimm/ntstore", 1.1),
            ("size/pm-dimm/clwb", 1.25),
            // Published for 16 cores of a smaller part; 24 keep more requests waiting. With 16 ours is within 1.1 of it at the end.
            ("loaded/dram", 1.45),
            ("mix/dram", 1.2),
            ("remote-peak", 1.45),
            ("remote-latency", 1.4),
            ("traffic/pm", 1.35),
            // The real machine falls to 2 GB/s; by what is not known.
            ("traffic/remote-pm", 4.3),
        ],
    );
}

/// Moves of hot blocks delay only threads that write one block again and again.
#[test]
fn writes_stall_on_small_hot_regions_only() {
    let m = Machine::load("optane-8260").unwrap();
    let all = measurements(&m, Effort::Quick);
    let curve = all.iter().find(|q| q.id == "overwrite/pm-dimm").unwrap();
    for p in curve.run().points {
        match p.x <= f64::from(64 << 10) {
            true => assert!((49_000.0..54_000.0).contains(&p.value), "{p:?}"),
            false => assert!(p.value < 1000.0, "{p:?}"),
        }
    }
}

#[test]
fn random_writes_of_the_page_placement_paper() {
    hold("optane-6230", &[("access-latency", 2.1)]);
    hold("optane-6230-memory-mode", &[("access-latency", 2.9)]);
}

#[test]
fn interference_of_programs_in_dram_and_pm() {
    hold(
        "optane-6230n",
        &[
            ("interference/dram-write/pm-random-write", 3.7),
            ("interference/dram-read/pm-read", 1.2),
            ("interference/pm-read/dram-read", 1.25),
        ],
    );
}

#[test]
fn ddr5_and_an_expander() {
    hold(
        "cxl-spr",
        &[("loaded/dram", 2.1), ("mix/dram", 1.45), ("mix/cxl", 1.6)],
    );
}

#[test]
fn the_same_twice() {
    let m = Machine::load("optane-8260").unwrap();
    let of = |id: &str| {
        let all = measurements(&m, Effort::Quick);
        all.iter().find(|q| q.id == id).unwrap().run()
    };
    for id in ["threads/pm/ntstore", "loaded/dram", "idle-latency"] {
        assert_eq!(of(id), of(id));
    }
}
