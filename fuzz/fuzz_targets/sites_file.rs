//! Any text is a site profile or one line of what is wrong; a profile that is accepted reads back as it was written, adds
//! up with itself, and every plan can be made from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varve_heap::plans::{by_name, plans};
use varve_sites::{Profile, classify};

fuzz_target!(|text: &str| {
    match Profile::parse("here.sites", text) {
        Ok(profile) => {
            assert_eq!(
                Profile::parse("here.sites", &profile.text())
                    .unwrap()
                    .text(),
                profile.text()
            );
            let mut twice = profile.clone();
            twice.merge(&profile).unwrap();
            assert_eq!(twice.sites.len(), profile.sites.len());
            assert!(profile.check("here.sites", "p.wasm", |_| true).is_ok());
            let _ = classify::cold_by_knapsack(&profile, 0.1);
            for entry in plans() {
                assert!(by_name(entry.name, Some(&profile)).is_ok());
            }
        }
        Err(e) => assert!(e.to_string().starts_with("here.sites: ")),
    }
});
