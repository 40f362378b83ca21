//! The JSON that scripts read.

use crate::sample;
use serde_json::{Value as Json, json};
use varve_report::{Claim, Kind, RunReport, Sensitivity, StudyResult, Value};

/// Faults of a printed study, by the format in the documentation.
fn faults(json: &Json) -> Vec<String> {
    let mut faults = Vec::new();
    let mut keys = |place: &str, value: &Json, expected: &[&str]| {
        let have: Vec<&str> = value
            .as_object()
            .map(|o| o.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let mut want = expected.to_vec();
        want.sort();
        if have != want {
            faults.push(format!("{place}: keys {have:?}"));
        }
    };
    keys(
        "study",
        json,
        &["study", "machine", "seed", "version", "claims"],
    );
    let claims = json["claims"].as_array().cloned().unwrap_or_default();
    for c in &claims {
        keys(
            "claim",
            c,
            &[
                "id",
                "what",
                "published",
                "ours",
                "unit",
                "ratio",
                "note",
                "kind",
            ],
        );
    }
    for key in ["study", "machine", "version"] {
        if !json[key].is_string() {
            faults.push(format!("{key} is no text"));
        }
    }
    if !json["seed"].is_u64() {
        faults.push("seed is no whole number".into());
    }
    for c in &claims {
        for key in ["id", "what", "unit", "note", "kind"] {
            if !c[key].is_string() {
                faults.push(format!("{key} is no text"));
            }
        }
        if !(c["ratio"].is_number() || c["ratio"].is_null()) {
            faults.push("ratio is no number".into());
        }
        for key in ["published", "ours"] {
            let v = &c[key];
            let numbers = |names: &[&str]| {
                v.as_object().is_some_and(|o| o.len() == names.len())
                    && names.iter().all(|n| v[n].is_number())
            };
            let object =
                numbers(&["low", "high"]) || numbers(&["at_most"]) || numbers(&["at_least"]);
            if !(v.is_number() || v.is_boolean() || v.is_string() || v.is_null() || object) {
                faults.push(format!("{key} is {v}"));
            }
        }
    }
    faults
}

#[test]
fn a_printed_study_has_exactly_the_promised_keys() {
    let printed: Json = serde_json::from_str(&sample::study().to_json()).unwrap();
    assert_eq!(faults(&printed), [""; 0]);
    assert_eq!(
        printed["claims"].as_array().unwrap().len(),
        sample::study().claims.len()
    );
}

#[test]
fn the_schema_check_itself_finds_what_is_wrong() {
    let good: Json = serde_json::from_str(&sample::study().to_json()).unwrap();
    for (pointer, wrong) in [
        ("/seed", json!("7")),
        ("/claims/0/ratio", json!("1x")),
        ("/claims/0/ours", json!([1, 2])),
        ("/claims/1/published", json!({"low": 1})),
        ("/claims/2", json!({"id": "M3"})),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(!faults(&bad).is_empty(), "{pointer}");
    }
    let mut bad = good;
    bad["series"] = json!([]);
    assert!(!faults(&bad).is_empty(), "an extra key");
}

#[test]
fn keys_come_in_the_promised_order() {
    let text = sample::study().to_json();
    let mut from = 0;
    for key in [
        "study",
        "machine",
        "seed",
        "version",
        "claims",
        "id",
        "what",
        "published",
        "ours",
        "unit",
        "ratio",
        "note",
        "kind",
    ] {
        let quoted = format!("\"{key}\":");
        from += text[from..]
            .find(&quoted)
            .unwrap_or_else(|| panic!("{key} is out of order in {text}"));
    }
}

#[test]
fn spread_and_sensitivity_are_told_where_they_are_known() {
    let mut s = sample::study();
    let mut claim = Claim::new("N", "a number", 10.0, 8.0, "s").of_kind(Kind::Input);
    claim.spread = Some((7.0, 9.0));
    claim.sensitivity = Some(Sensitivity {
        rule: "no prefetchers".into(),
        ours: 4.0.into(),
    });
    s.claims = vec![claim.clone()];
    let printed: Json = serde_json::from_str(&s.to_json()).unwrap();
    let told = &printed["claims"][0];
    assert_eq!(told["kind"], "input");
    assert_eq!(told["spread"], json!([7.0, 9.0]));
    assert_eq!(told["sensitivity"]["rule"], "no prefetchers");
    assert_eq!(told["sensitivity"]["ours"], 4.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    s.write(&path).unwrap();
    assert_eq!(StudyResult::read(&path).unwrap().claims, [claim]);
}

#[test]
fn a_value_that_is_not_finite_does_not_spoil_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let mut s = sample::study();
    s.claims
        .push(Claim::new("N", "not a number", 1.0, f64::NAN, "s"));
    s.write(&path).unwrap();
    let back = StudyResult::read(&path).unwrap();
    assert_eq!(back.claims.last().unwrap().ours, Value::Missing);
    // As text, because a gap in a series is NaN and equals nothing.
    assert!(
        back.to_full_json() == s.to_full_json(),
        "{}",
        back.to_full_json()
    );
}

#[test]
fn a_comparison_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.json");
    let report = sample::report();
    report.write(&path).unwrap();
    assert!(RunReport::read(&path).unwrap().to_json() == report.to_json());
    let json: Json = serde_json::from_str(&report.to_json()).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "charts", "command", "machine", "runs", "seed", "table", "version"
        ]
    );
}
