//! This machine, whatever it is.

use varve_live::{Available, ProbeOptions, doctor, probe};

#[test]
fn the_probe_measures_what_it_says_and_goes_through_json() {
    let options = ProbeOptions {
        seconds: 0.3,
        bytes: 32 << 20,
    };
    let here = probe(&options);
    for l in &here.latency {
        assert!(l.ns > 0.0 && l.bytes <= options.bytes as u64, "{l:?}");
    }
    for b in &here.bandwidth {
        assert!(b.gb_per_s > 0.0 && b.threads >= 1, "{b:?}");
    }
    assert!(!here.bandwidth.is_empty() || !here.notes.is_empty());
    let text = serde_json::to_string(&here).unwrap();
    let again: varve_live::Probe = serde_json::from_str(&text).unwrap();
    assert_eq!(again.topology, here.topology);
    assert_eq!(again.bandwidth.len(), here.bandwidth.len());
}

#[test]
fn without_time_nothing_is_measured() {
    let here = probe(&ProbeOptions {
        seconds: 0.0,
        ..ProbeOptions::default()
    });
    assert!(here.latency.is_empty() && here.bandwidth.is_empty());
}

#[test]
fn every_check_says_why_in_one_line_and_what_to_do_about_it() {
    let checks = doctor();
    assert!(checks.len() > 20);
    for c in &checks {
        assert!(
            !c.why.is_empty() && !c.why.contains('\n') && !c.used_for.is_empty(),
            "{c:?}"
        );
        assert_eq!(c.remedy.is_empty(), c.available == Available::Yes, "{c:?}");
    }
    let mut names: Vec<&str> = checks.iter().map(|c| c.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), checks.len());
}
