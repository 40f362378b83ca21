//! GUPS on ten times the cache (section 5.2.3, Figures 4 to 6): D7.

use super::claim;
use super::gups::{DYNAMIC_S, HEMEM_S, STATIC_S, line, oracle, over_time, rate};
use super::setup::{Setup, time_to_steady};
use crate::plan::{Plan, Results};
use varve_access::{Fault, Pager};
use varve_pages::{Conflicts, Placement};
use varve_report::{Claim, StudyResult, Value};
use varve_run::Error;
use varve_workloads::gups::hot_ranges;

const SYSTEMS: [&str; 3] = ["static", "dynamic", "hotset"];

/// One chart of the paper.
struct Case {
    /// The paper's figure.
    figure: &'static str,
    /// Group of its runs.
    group: &'static str,
    threads: u32,
    /// Share of the array that is hot, %.
    hot: u32,
    /// Hot items lie anywhere, and not on pages of their own.
    scattered: bool,
}

const CASES: [Case; 5] = [
    Case {
        figure: "4a",
        group: "480/2/8",
        threads: 8,
        hot: 2,
        scattered: false,
    },
    Case {
        figure: "4b",
        group: "480/2",
        threads: 16,
        hot: 2,
        scattered: false,
    },
    Case {
        figure: "5",
        group: "480/50",
        threads: 16,
        hot: 50,
        scattered: false,
    },
    Case {
        figure: "6",
        group: "480/scattered/2",
        threads: 16,
        hot: 2,
        scattered: true,
    },
    Case {
        figure: "6",
        group: "480/scattered/50",
        threads: 16,
        hot: 50,
        scattered: true,
    },
];

/// Where hot items are scattered no page is hotter than another, so that nothing is found however long one waits.
const SCATTERED_S: f64 = 20.0;

impl Case {
    fn work(&self, setup: &Setup, seconds: f64) -> String {
        let place = match self.scattered {
            true => "scattered,group=8",
            false => "shares",
        };
        let what = format!("place={place},bytes=480GiB,hot={}%", self.hot);
        line(setup, &what, self.threads, seconds)
    }

    fn seconds(&self, policy: &str) -> f64 {
        match policy {
            _ if self.scattered => SCATTERED_S,
            "hotset" => HEMEM_S,
            "dynamic" => DYNAMIC_S,
            _ => STATIC_S,
        }
    }

    /// All hot data can be placed in DRAM.
    fn fits(&self) -> bool {
        self.hot == 2 && !self.scattered
    }

    fn title(&self) -> String {
        let how = match self.scattered {
            true => "hot and scattered",
            false => "hot",
        };
        let (figure, hot, threads) = (self.figure, self.hot, self.threads);
        format!("Figure {figure}: GUPS {threads}+2 on 480 GB, {hot} % {how}")
    }
}

pub fn plan(setup: &Setup, plan: &mut Plan) -> Result<(), Error> {
    // Ten times the cache takes long to fill: not in the coarse version.
    if !setup.options.wants("D7") || setup.quick() {
        return Ok(());
    }
    for case in &CASES {
        let mut add = |key: &str, policy: &str, work: &str| {
            let spec = setup.spec(policy, work, setup.scale);
            plan.run(format!("{}/{key}", case.group), spec);
        };
        for key in SYSTEMS {
            add(key, key, &case.work(setup, case.seconds(key)));
        }
        if case.fits() {
            let work = case.work(setup, STATIC_S);
            add("dram", &oracle(setup, &work)?, &work);
        }
    }
    Ok(())
}

pub fn claims(setup: &Setup, results: &Results, out: &mut StudyResult) -> Result<(), Error> {
    if !setup.options.wants("D7") {
        return Ok(());
    }
    let mut push = |what: &str, published: Value, ours: Option<f64>, unit: &str, note: &str| {
        out.claims
            .push(claim("D7", what, published, ours, unit, note));
    };
    push(
        "480 GB, 2 % hot: hot pages that meet a hot page",
        16.0.into(),
        Some(100.0 * hot_meets_hot(setup)?),
        "%",
        "placement alone: every page of the memory is in use",
    );
    let of_dram = |group: &str, key: &str| {
        results.of_two(
            &format!("{group}/{key}"),
            &format!("{group}/dram"),
            |a, b| 100.0 * rate(a) / rate(b),
        )
    };
    for (key, published, name) in [
        ("static", Value::Missing, "JC-static"),
        ("dynamic", 100.0.into(), "JC-dyn"),
        ("hotset", 100.0.into(), "HeMem"),
    ] {
        let what = format!("480 GB, 2 % hot: {name}");
        push(&what, published, of_dram("480/2", key), "% of DRAM", "");
    }
    for (key, name, note) in [
        ("static", "JC-static", ""),
        ("dynamic", "JC-dyn", ""),
        ("hotset", "HeMem", "published: not steady after 2 minutes"),
    ] {
        let what = format!("480 GB, 2 % hot, 8+2: {name}");
        let ours = of_dram("480/2/8", key);
        push(&what, Value::Missing, ours, "% of DRAM", note);
    }
    let faster = |group: &str| {
        results.of_two(
            &format!("{group}/static"),
            &format!("{group}/hotset"),
            |a, b| rate(a) / rate(b),
        )
    };
    for (group, what, published, note) in [
        ("480/50", "50 % hot", 1.0.into(), "all systems alike"),
        (
            "480/scattered/2",
            "2 % hot and scattered",
            Value::Missing,
            "published: HeMem reads most from PM, JC little",
        ),
        (
            "480/scattered/50",
            "50 % hot and scattered",
            1.0.into(),
            "published: the same",
        ),
    ] {
        let what = format!("480 GB, {what}: JC-static over HeMem");
        push(&what, published, faster(group), "x", note);
    }
    out.claims.push(sooner(results));
    for case in &CASES {
        let dram = format!("{}/dram", case.group);
        let full = results.get(&dram).map(rate);
        let chart = over_time(results, case.group, &case.title(), &SYSTEMS, full);
        out.charts.extend(chart);
    }
    Ok(())
}

/// Is JC-dyn steady before HeMem, with many threads?
fn sooner(results: &Results) -> Claim {
    let settled = |key: &str| {
        let r = results.get(&format!("480/2/{key}"))?;
        Some(time_to_steady(r, |p| p.updates))
    };
    let (answer, note) = match (settled("dynamic"), settled("hotset")) {
        (Some(jc), Some(hemem)) => (
            Value::from(jc < hemem),
            format!("{jc:.1} s and {hemem:.1} s"),
        ),
        _ => (Value::Missing, String::new()),
    };
    let what = "480 GB, 2 % hot: JC-dyn is steady before HeMem";
    Claim::new("D7", what, true, answer, "").with_note(note)
}

/// Share of hot pages that share a bin with another hot page when 480 GB in 2 MB pages are placed by `static` in the
/// order of their addresses, 2 % of them hot at the starts of 16 shares.
fn hot_meets_hot(setup: &Setup) -> Result<f64, Error> {
    const PAGE: u64 = 2 << 20;
    let shrink = u64::from(setup.shrink);
    let ranges = hot_ranges(&format!(
        "gups:place=shares,bytes=480GiB,hot=2%,threads=16,scale={shrink}"
    ))?;
    let first = ranges.iter().map(|r| r.0).min().unwrap_or(0) / PAGE;
    let mut placement = Placement::new("static", &setup.cached.scaled(setup.shrink), PAGE)?;
    for vpn in first..first + (480 << 9) / shrink {
        let fault = Fault {
            vpn,
            thread: 0,
            socket: 0,
            write: true,
            now: 0,
        };
        placement
            .fault(&fault)
            .map_err(varve_machine::model::RunError::from)?;
    }
    let is_hot = |vpn: u64| {
        let address = vpn * PAGE;
        ranges
            .iter()
            .any(|(base, bytes)| (*base..base + bytes).contains(&address))
    };
    let mapping = placement.mapping().map(|(frame, vpn)| (frame, is_hot(vpn)));
    Ok(Conflicts::count(placement.topology(), mapping).hot_conflict_share())
}
