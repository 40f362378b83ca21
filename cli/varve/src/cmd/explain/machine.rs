//! A machine: its memories, how far away and how fast they are.

use super::Page;
use super::picture::{Memory, boxes};
use crate::ui::{Failure, wrong};
use varve_machine::NodeKind;

pub fn explain(name: &str) -> Result<String, Failure> {
    let machine = varve_tier::machine(name).map_err(wrong)?;
    let s = machine.summary();
    let memory = |m: &varve_machine::load::Tier| {
        let cached = s.dram_cache.is_some();
        let (title, role) = match m.kind {
            NodeKind::Dram if cached => ("DRAM", "cache of slow memory; programs do not see it"),
            NodeKind::Dram => ("DRAM", "fast memory"),
            NodeKind::Pm => ("Optane", "slow memory that keeps what it holds"),
            NodeKind::Cxl => ("CXL", "slow memory behind a link"),
        };
        Memory {
            title: title.into(),
            holds: vec![
                role.into(),
                format!("{} per socket", m.bytes),
                format!("a read takes {:.0} ns", m.idle_read_ns),
                format!("reads {:.0} GB/s", m.peak_read_gbps),
                format!("writes {:.0} GB/s", m.peak_write_gbps),
            ],
        }
    };
    let pictures: Vec<Memory> = s.memories.iter().map(memory).collect();
    let mut notes = Vec::new();
    if let [fast, slow] = &s.memories[..] {
        notes.push(format!(
            "A read of slow memory takes {:.1} times as long as one of DRAM; writes have {:.1} times less bandwidth.",
            slow.idle_read_ns / fast.idle_read_ns,
            fast.peak_write_gbps / slow.peak_write_gbps
        ));
    }
    notes.push(format!(
        "{} numbers describe it; {} of them are assumptions (`varve machine show {name} --toml` has the sources).",
        s.numbers, s.assumed
    ));
    Ok(Page {
        about: format!("Machine {}: {}.", s.name, s.about),
        shows: format!(
            "{} socket{} with {} cores each at {} GHz, and on each socket:",
            s.sockets,
            if s.sockets == 1 { "" } else { "s" },
            s.cores_per_socket,
            s.ghz
        ),
        picture: boxes(&pictures),
        notes,
        params: Vec::new(),
        tries: format!("varve run gups:hot=10% --machine {name}"),
        read: "docs/machines.md".into(),
    }
    .to_string())
}
