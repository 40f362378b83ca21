//! `varve machine`.

use super::list::hang;
use crate::args::{MachineAction, MachineArgs};
use crate::ui::{Done, Failure, failed, print, wrong};
use serde_json::json;
use std::process::ExitCode;
use varve_machine::Machine;
use varve_machine::load;

pub fn machine(a: &MachineArgs) -> Done {
    if a.doctor {
        return super::doctor::examine(a);
    }
    match &a.action {
        None | Some(MachineAction::List) => list(a.json),
        Some(MachineAction::Show { machine, toml }) => show(machine, *toml, a.json),
        Some(MachineAction::Check { machine }) => check(machine.as_deref(), a.json),
        Some(MachineAction::Interference {
            machine,
            quick,
            nodes,
            out,
            jobs,
        }) => super::interference::interference(
            machine,
            *quick,
            nodes.as_deref(),
            out.as_deref(),
            *jobs,
            a.json,
        ),
        Some(MachineAction::Governor { machine, quick }) => {
            super::governor::governor(machine, *quick, a.json)
        }
        Some(MachineAction::Calibrate {
            machine,
            full,
            quick,
        }) => match (machine.as_str(), *quick) {
            ("here", quick) => super::calibrate_here::calibrate(quick, *full, a.json),
            (name, true) => Err(wrong(format!(
                "--quick goes with `here`; on the model of `{name}` a few points are the default, and --full takes all"
            ))),
            (name, false) => super::calibrate::calibrate(name, *full, a.json),
        },
    }
}

/// Where the texts of a machine's summary begin.
const SUMMARY_COLUMN: usize = 11;

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
        print("\n`varve machine show NAME` shows one; docs/machines.md explains how to write one.");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str, toml: bool, json: bool) -> Done {
    let (machine, notes) = varve_tier::machine_with_notes(name).map_err(wrong)?;
    for note in notes {
        crate::ui::message!("varve: note: {note}");
    }
    if json {
        print(serde_json::to_string_pretty(&machine.summary()).map_err(failed)?);
    } else if toml && name != "here" && load::changes(name).1.is_empty() {
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
                crate::ui::message!("{e}");
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
