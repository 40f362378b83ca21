//! Any text is a site profile of one of the kinds or one line of what is wrong; a profile that is accepted reads back as it was written, adds
//! up with itself, and every plan can be made from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varve_heap::plans::{by_name, plans};
use varve_sites::{AnyProfile, SitesFile, classify, java::advice, native::names, select};

/// What holds of all kinds.
fn whole<P: SitesFile + Clone>(profile: &P) {
    let again = P::parse("here.sites", &profile.text()).unwrap();
    assert_eq!(again.text(), profile.text());
    let mut twice = profile.clone();
    twice.merge(profile).unwrap();
    assert_eq!(twice.sites().len(), profile.clone().sites().len());
}

fuzz_target!(|text: &str| {
    match AnyProfile::parse("here.sites", text) {
        Ok(AnyProfile::Managed(profile)) => {
            whole(&profile);
            assert!(profile.check("here.sites", "p.wasm", |_| true).is_ok());
            let _ = classify::cold_by_knapsack(&profile, 0.1);
            for entry in plans() {
                assert!(by_name(entry.name, Some(&profile)).is_ok());
            }
        }
        Ok(AnyProfile::Native(profile)) => {
            whole(&profile);
            whole(&profile.cut(2));
            let keys: Vec<_> = profile.sites.iter().map(|site| site.key.clone()).collect();
            assert_eq!(names::names(&keys).len(), keys.len());
            let candidates: Vec<_> = profile
                .sites
                .iter()
                .map(|site| select::Candidate::by_misses(&site.counts))
                .collect();
            select::hot_sites(&candidates, 1 << 20);
            select::knapsack(&candidates, 1 << 20);
        }
        Ok(AnyProfile::Java(profile)) => {
            whole(&profile);
            advice::young(&profile, &advice::sizes(&profile));
            advice::fills(&advice::lines(&profile));
        }
        Err(e) => assert!(e.to_string().starts_with("here.sites: ")),
    }
});
