//! Machines as a user meets them: listed, shown, checked, written anew.

use crate::common::{TINY, command, names, varve};
use std::fs;

#[test]
fn every_machine_is_listed_and_shown() {
    let all = names(&varve(&["machine", "list", "--json"]).well().json());
    let listed = varve(&["machine", "list"]).well().out;
    assert!(all.len() >= 7);
    for name in &all {
        assert!(listed.contains(name.as_str()));
        let shown = varve(&["machine", "show", name]).well().out;
        assert!(shown.starts_with(&format!("{name}: ")), "{shown}");
        let sheet = varve(&["machine", "show", name, "--json"]).well().json();
        assert_eq!(sheet["name"], name.as_str());
    }
}

#[test]
fn every_machine_keeps_the_rules() {
    let all = names(&varve(&["machine", "list", "--json"]).well().json());
    let said = varve(&["machine", "check"]).well().out;
    for name in &all {
        assert!(said.contains(&format!("{name}: ")), "{said}");
    }
    let sheet = varve(&["machine", "check", "--json"]).well().json();
    assert_eq!(names(&sheet), all);
    assert!(
        sheet
            .as_array()
            .expect("a list")
            .iter()
            .all(|m| m["problems"] == serde_json::json!([]))
    );
}

/// The way to a machine of one's own: the file of a built-in one, another name, one other number.
#[test]
fn a_machine_is_copied_changed_checked_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let text = varve(&["machine", "show", "cxl-spr", "--toml"]).well().out;
    let text = text.replace("name = \"cxl-spr\"", "name = \"lab\"");
    let file = folder.path().join("lab.toml");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    varve(&["machine", "check", path]).well();
    let run = varve(&["run", TINY, "--machine", path, "--policy", "first-touch"]).well();
    assert!(run.out.contains("on lab"), "{}", run.out);
    // Its folder in VARVE_MACHINES makes it known by name.
    let said = command(&["machine", "show", "lab"])
        .env("VARVE_MACHINES", folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("lab: "));
}

#[test]
fn a_bad_machine_file_is_refused_with_every_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let good = varve(&["machine", "show", "cxl-spr", "--toml"]).well().out;
    let good = good.replace("name = \"cxl-spr\"", "name = \"bad\"");
    let file = folder.path().join("bad.toml");
    let line_of = |text: &str, key: &str| {
        1 + text
            .lines()
            .position(|l| l.starts_with(key))
            .expect("the key is there")
    };

    let two_wrong: String = good
        .lines()
        .map(|l| match l.split(" =").next() {
            Some("ghz") => "ghz = -1\n".into(),
            Some("reorder_buffer") => "reorder_bufer = 5\n".into(),
            _ => format!("{l}\n"),
        })
        .collect();
    fs::write(&file, &two_wrong).unwrap();
    let said = varve(&["machine", "check", file.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    for (key, name) in [("ghz", "core.ghz"), ("reorder_bufer", "reorder_bufer")] {
        let place = format!("bad.toml:{}:", line_of(&two_wrong, key));
        let line = said
            .err
            .lines()
            .find(|l| l.contains(&place))
            .unwrap_or_else(|| panic!("no {place} in {}", said.err));
        assert!(line.contains(name), "{line}");
    }
    // The same file is refused by a run, and told as JSON.
    assert_eq!(varve(&["run", TINY, "-m", file.to_str().unwrap()]).code, 2);
    let said = varve(&["machine", "check", file.to_str().unwrap(), "--json"]);
    assert_eq!(said.code, 2);
    assert!(
        said.json()[0]["problems"]
            .as_array()
            .is_some_and(|p| p.len() >= 2),
        "{}",
        said.out
    );

    fs::write(&file, "this is not TOML [").unwrap();
    let said = varve(&["machine", "check", file.to_str().unwrap()]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("bad.toml:1"), "{}", said.err);
    let said = varve(&["machine", "check", "/etc/passwd"]);
    assert_eq!(
        (said.code, said.err.lines().count()),
        (2, 1),
        "{}",
        said.err
    );
}

#[test]
fn this_machine_is_examined() {
    let checks = varve(&["machine", "--doctor", "--json"]).well().json();
    let checks = checks["checks"].as_array().expect("a list").clone();
    let said = varve(&["machine", "--doctor"]).well().out;
    assert!(checks.len() >= 10);
    for check in &checks {
        let name = check["name"].as_str().expect("a name");
        assert!(said.contains(name), "{name}");
        // What is missing comes with a way to get it.
        let missing = check["available"] != "yes" && check["available"] != "Yes";
        assert!(
            !missing || check["remedy"].as_str().is_some_and(|r| !r.is_empty()),
            "{check}"
        );
    }
}

/// The classic curves of the machine that the test runs on. Its speed is not checked here: every curve has
/// points, every point a median between its least and its most run, and the model's figure beside it.
#[test]
fn this_machine_is_measured_beside_its_model() {
    let said = varve(&["machine", "calibrate", "here", "--quick", "--json"]);
    if said.code == 1 && said.err.contains("nothing was measured") {
        return varve_skip::skip!("{}", said.err);
    }
    let all = said.well().json();
    let measured = all["measured"].as_array().expect("curves");
    let ids: Vec<&str> = measured.iter().map(|c| c["id"].as_str().unwrap()).collect();
    for id in [
        "idle-latency",
        "chase/dram/random",
        "threads/dram/read",
        "size/dram/read",
    ] {
        assert!(ids.contains(&id), "no {id} in {ids:?}");
    }
    for curve in measured {
        let points = curve["points"].as_array().unwrap();
        assert!(!points.is_empty(), "{curve}");
        let x = points.iter().map(|p| p["x"].as_f64().unwrap());
        assert!(x.is_sorted(), "{curve}");
        for p in points {
            let of = |key: &str| p[key].as_f64().unwrap();
            assert!(0.0 < of("least") && of("least") <= of("median"), "{p}");
            assert!(of("median") <= of("most"), "{p}");
        }
    }
    // One row per measured point; only a load that the model does not reach has no figure.
    let rows = all["published"].as_array().expect("rows");
    let points: usize = measured
        .iter()
        .map(|c| c["points"].as_array().unwrap().len())
        .sum();
    assert_eq!(rows.len(), points);
    for row in rows {
        let ours = row["ours"].as_f64();
        let loaded = row["curve"].as_str().unwrap().starts_with("loaded/");
        assert!(loaded || ours.is_some_and(|v| v > 0.0), "{row}");
    }
    assert!(all["errors"].as_array().is_some_and(|e| !e.is_empty()));

    let table = varve(&["machine", "calibrate", "here", "--quick"])
        .well()
        .out;
    for word in [
        "measured",
        "spread",
        "model",
        "error",
        "Medians of 3 runs",
        "Errors",
    ] {
        assert!(
            table.to_lowercase().contains(&word.to_lowercase()),
            "no {word} in {table}"
        );
    }
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn a_quick_measurement_is_for_this_machine_alone() {
    varve(&["machine", "calibrate", "cxl-spr", "--quick"])
        .refuses(2, &["--quick", "here", "--full"]);
}
