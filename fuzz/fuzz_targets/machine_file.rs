//! Any text is a machine or a list of problems, each with a line of the text; a machine that is accepted is sound,
//! reads back as it was written, and can be scaled and described.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varve_machine::Machine;

fuzz_target!(|text: &str| {
    match Machine::parse(text, "here.toml") {
        Ok(m) => {
            assert!(m.check().is_empty());
            assert_eq!(Machine::parse(&m.to_toml(), "here.toml").unwrap(), m);
            m.scaled(7).summary().to_string();
        }
        Err(e) => {
            let lines = 1 + text.matches('\n').count();
            assert!(!e.problems().is_empty());
            assert!(e.problems().iter().all(|p| (1..=lines).contains(&p.line)));
        }
    }
});
