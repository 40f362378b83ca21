//! `varve machine`.

use super::list::hang;
use crate::args::{MachineAction, MachineArgs};
use crate::ui::{Done, Failure, failed, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_live::probe::Traffic;
use varve_live::{Available, Probe, ProbeOptions, doctor, probe};
use varve_machine::Machine;
use varve_machine::load::{self, ProbedCache, ProbedMachine, ProbedMemory};

pub fn machine(a: &MachineArgs) -> Done {
    if a.doctor {
        return examine(a.json);
    }
    match &a.action {
        None | Some(MachineAction::List) => list(a.json),
        Some(MachineAction::Show { machine, toml }) => show(machine, *toml, a.json),
        Some(MachineAction::Check { machine }) => check(machine.as_deref(), a.json),
        Some(MachineAction::Calibrate { machine, full }) => {
            super::calibrate::calibrate(machine, *full, a.json)
        }
    }
}

/// Where the texts of a machine's summary begin.
const SUMMARY_COLUMN: usize = 11;

/// A machine by name or file, or the one that this runs on.
pub fn named(name: &str) -> Result<Machine, Failure> {
    if name != "here" {
        return Machine::load(name).map_err(wrong);
    }
    Ok(here(&probe(&ProbeOptions::default())))
}

fn list(json: bool) -> Done {
    let mut all = Vec::new();
    for name in load::names(&[]) {
        all.push(Machine::load(&name).map_err(failed)?.summary());
    }
    if json {
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        for s in &all {
            print(hang(&s.name, 26, &s.about));
        }
        print(hang(
            "here",
            26,
            "the machine that this runs on, probed in a few seconds",
        ));
        print("\n`varve machine show NAME` says more; docs/machines.md how to write one.");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str, toml: bool, json: bool) -> Done {
    let machine = named(name)?;
    if json {
        print(serde_json::to_string_pretty(&machine.summary()).map_err(failed)?);
    } else if toml && name != "here" {
        print(load::file_text(name, &[]).map_err(wrong)?.0);
    } else if toml {
        print(machine.to_toml());
    } else {
        let text = machine.summary().to_string();
        for line in text.lines() {
            let (term, rest) = line.split_at_checked(SUMMARY_COLUMN).unwrap_or((line, ""));
            print(if term.starts_with(' ') {
                hang(term.trim_end(), SUMMARY_COLUMN, rest)
            } else {
                hang("", 0, line)
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(name: Option<&str>, json: bool) -> Done {
    let names = match name {
        Some(name) => vec![name.to_string()],
        None => load::names(&[]),
    };
    let mut bad = 0;
    let mut all = Vec::new();
    for name in &names {
        let loaded = Machine::load(name);
        if json {
            let problems: Vec<String> = match &loaded {
                Ok(_) => Vec::new(),
                Err(e) => e.to_string().lines().map(String::from).collect(),
            };
            bad += usize::from(!problems.is_empty());
            all.push(json!({"name": name, "problems": problems}));
            continue;
        }
        match loaded {
            Ok(m) => {
                let s = m.summary();
                print(format!(
                    "{name}: {} numbers, all with a source; {} are assumptions",
                    s.numbers, s.assumed
                ));
            }
            Err(e) => {
                bad += 1;
                eprintln!("{e}");
            }
        }
    }
    if json {
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    }
    if bad == 0 {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Failure::Quiet(2))
    }
}

fn examine(json: bool) -> Done {
    let checks = doctor();
    if json {
        print(serde_json::to_string_pretty(&checks).map_err(failed)?);
        return Ok(ExitCode::SUCCESS);
    }
    for c in &checks {
        let mark = match c.available {
            Available::Yes => "yes   ",
            Available::Partly => "partly",
            Available::No => "no    ",
        };
        let mut text = c.why.clone();
        if !c.remedy.is_empty() {
            text.push_str(&format!(" -> {}", c.remedy));
        }
        print(hang(&format!("{mark} {}", c.name), 30, &text));
    }
    Ok(ExitCode::SUCCESS)
}

/// Most bandwidth that a probe saw between a processor's node and a memory's.
fn gbps(p: &Probe, cpu: u32, memory: u32, traffic: Traffic) -> Option<f64> {
    p.bandwidth
        .iter()
        .filter(|b| (b.cpu_node, b.memory_node, b.traffic) == (cpu, memory, traffic))
        .map(|b| b.gb_per_s)
        .reduce(f64::max)
}

/// Latency of a chase: the largest one for memory, or the one that fits a cache of `bytes`.
fn chase(p: &Probe, cpu: u32, memory: u32, fits: Option<(u64, u64)>) -> Option<f64> {
    let of_nodes = p
        .latency
        .iter()
        .filter(|l| (l.cpu_node, l.memory_node) == (cpu, memory));
    match fits {
        None => of_nodes.max_by_key(|l| l.bytes).map(|l| l.ns),
        // Well beyond the level below, and not so large that other users of the cache matter.
        Some((above, bytes)) => of_nodes
            .filter(|l| l.bytes > above && l.bytes * 2 <= bytes)
            .max_by_key(|l| l.bytes)
            .map(|l| l.ns),
    }
}

/// A probe's findings as a machine.
fn here(p: &Probe) -> Machine {
    let t = &p.topology;
    let sockets = t.processor.sockets.max(1);
    let with_cpus: Vec<_> = t.nodes.iter().filter(|n| !n.cpus.is_empty()).collect();
    let near = with_cpus.first().map_or(0, |n| n.id);
    let cache = |level: u32, above: u64| {
        t.caches
            .iter()
            .find(|c| c.level == level && c.kind != "Instruction")
            .map(|c| ProbedCache {
                bytes: c.bytes,
                ways: c.ways,
                ns: chase(p, near, near, Some((above, c.bytes))),
            })
    };
    let memory = |id: u32, bytes: u64| ProbedMemory {
        bytes,
        // What firmware or a few common machines say, where nothing could be measured.
        read_ns: chase(p, near, id, None).unwrap_or(100.0),
        read_gbps: gbps(p, near, id, Traffic::Read).unwrap_or(10.0),
        write_gbps: gbps(p, near, id, Traffic::Write),
    };
    let l1 = cache(1, 0).unwrap_or(ProbedCache {
        bytes: 32 << 10,
        ways: 8,
        ns: None,
    });
    let l2 = cache(2, l1.bytes).unwrap_or(ProbedCache {
        bytes: 1 << 20,
        ways: 16,
        ns: None,
    });
    let node_bytes = |id: u32| {
        t.nodes
            .iter()
            .find(|n| n.id == id)
            .map_or(1 << 30, |n| n.bytes)
    };
    let slow = t.nodes.iter().find(|n| n.cpus.is_empty() && n.bytes > 0);
    Machine::from_probe(&ProbedMachine {
        cpu: t.processor.model.clone(),
        sockets,
        cores_per_socket: (t.processor.cores / sockets).max(1),
        threads_per_core: (t.processor.threads / t.processor.cores.max(1)).max(1),
        ghz: (t.processor.max_mhz > 0.0).then_some(t.processor.max_mhz / 1000.0),
        l1,
        l2,
        llc: cache(3, l2.bytes),
        dram: memory(near, node_bytes(near)),
        slow: slow.map(|n| memory(n.id, n.bytes)),
        remote: with_cpus.get(1).map(|n| memory(n.id, n.bytes)),
    })
}
