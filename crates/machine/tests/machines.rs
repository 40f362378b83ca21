//! Every machine file loads, checks clean and reads back as it was written.

use varve_machine::load::builtin;
use varve_machine::{Bytes, Machine, Mode, NodeKind};

fn machine(name: &str) -> Machine {
    Machine::load(name).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_built_in_machine_is_sound() {
    assert!(!builtin().is_empty());
    for (name, text) in builtin() {
        let m = Machine::parse(text, &format!("machines/{name}.toml"))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(m.check(), [], "{name}");
        assert_eq!(
            Machine::parse(&m.to_toml(), &format!("{name}.toml")).unwrap(),
            m,
            "{name}"
        );
        assert!(m.total_bytes() > 0);
    }
}
