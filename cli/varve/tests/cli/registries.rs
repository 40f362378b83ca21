//! Every machine, policy, workload and study is found in the lists that the binary prints, and run: one that is added is
//! tested without anybody writing its name here.

use crate::common::{TINY, names, varve};
use serde_json::Value;
use std::collections::BTreeSet;

fn rows(report: &Value) -> Vec<String> {
    let rows = report["table"]["rows"].as_array().expect("rows");
    rows.iter()
        .map(|r| r["name"].as_str().expect("a name").to_string())
        .collect()
}

#[test]
fn every_policy_runs_on_every_machine_that_it_goes_with() {
    let policies = varve(&["policy", "--json"]).well().json();
    let machines = names(&varve(&["machine", "list", "--json"]).well().json());
    let mut ran = BTreeSet::new();
    for machine in &machines {
        let report = varve(&format!(
            "run {TINY} --machine {machine} --scale 256 --json"
        ))
        .well()
        .json();
        assert_eq!(report["machine"], machine.as_str());
        let names = rows(&report);
        assert!(names.len() >= 2, "{machine}: {names:?}");
        ran.extend(names);
    }
    for policy in policies.as_array().expect("a list") {
        let name = policy["name"].as_str().expect("a name");
        let asks = |p: &Value| p["default"].as_str().is_some_and(str::is_empty);
        let needs: Vec<&Value> = policy["parameters"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|p| asks(p))
            .collect();
        // `all` leaves out what must be told something about the program.
        assert!(
            ran.contains(name) || !needs.is_empty(),
            "{name} ran on no machine"
        );
    }
}

#[test]
fn every_policy_and_workload_shows_its_parameters() {
    for what in ["policy", "workload"] {
        let all = varve(&[what, "--json"]).well().json();
        for item in all.as_array().expect("a list") {
            let name = item["name"].as_str().expect("a name");
            let shown = varve(&[what, name]).well().out;
            assert!(
                shown.contains(
                    item["about"]
                        .as_str()
                        .expect("a text")
                        .split(' ')
                        .next()
                        .unwrap()
                ),
                "{name}"
            );
            for p in item["parameters"].as_array().expect("a list") {
                let key = p["key"].as_str().expect("a key");
                assert!(shown.contains(&format!("  {key}=")), "{what} {name}: {key}");
                assert!(
                    !p["about"].as_str().unwrap_or("").is_empty(),
                    "{what} {name}: {key}"
                );
            }
        }
    }
}

#[test]
fn every_workload_runs() {
    let all = varve(&["workload", "--json"]).well().json();
    for item in all.as_array().expect("a list") {
        let name = item["name"].as_str().expect("a name");
        let classed = item["parameters"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|p| p["key"] == "class");
        // What has classes of sizes runs its smallest as it is, the rest at a fraction of its size.
        let (work, scale) = match classed {
            true => (format!("{name}:class=S,threads=2"), "1"),
            false => (format!("{name}:threads=2"), "256"),
        };
        let words = [
            "run", &work, "--scale", scale, "--until", "0.2", "--policy", "static", "--json",
        ];
        let report = varve(&words).well().json();
        let speed = &report["table"]["rows"][0]["values"][1];
        assert!(speed.as_f64().is_some_and(|s| s > 0.0), "{name}: {report}");
    }
}

#[test]
fn every_study_is_listed_and_can_be_asked_for_one_claim() {
    let studies = names(&varve(&["study", "list", "--json"]).well().json());
    let listed = varve(&["study"]).well().out;
    assert!(!studies.is_empty());
    for name in &studies {
        assert!(listed.contains(name.as_str()));
        // No claim has this id, so nothing is run, and what comes out is still of the right shape.
        let said = varve(&[
            "study", name, "--quick", "--only", "Z0", "--keep", "none", "--json",
        ]);
        if said.code == 0 {
            let result = said.json();
            for key in ["study", "machine", "seed", "version", "claims"] {
                assert!(!result[key].is_null(), "{name}: no {key}");
            }
        } else {
            said.refuses(2, &["Z0"]);
        }
    }
}
