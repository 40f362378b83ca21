//! `varve machine --doctor`: what this machine lets us do, how its memories are set up; `--fix` and `--undo`.

use super::list::hang;
use crate::args::MachineArgs;
use crate::ui::{Done, Failure, failed, print, wrong};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use varve_live::doctor::setup::{
    Changed, Finding, Measured, Record, Root, Setup, Step, change, judge, undo,
};
use varve_live::{Available, doctor};

/// Where the text of a finding begins.
const INDENT: usize = 3;

pub fn examine(a: &MachineArgs) -> Done {
    if a.undo {
        return take_back(a.json);
    }
    let measured = match &a.calibrated {
        None => None,
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|e| e.to_string())
                .and_then(|text| Measured::parse(&text).map_err(|e| e.to_string()))
                .map_err(|why| wrong(format!("--calibrated {}: {why}", file.display())))?,
        ),
    };
    let root = a.root.as_deref().unwrap_or(Path::new("/"));
    if !root.join("sys/devices/system").is_dir() {
        return Err(wrong(format!(
            "--root {}: no copy of a machine's /sys and /proc: there is no sys/devices/system in it",
            root.display()
        )));
    }
    let findings = judge(&Setup::read(root), measured.as_ref());
    if a.fix {
        return fix(&findings, a.yes, a.json);
    }
    let checks = match a.root {
        // Of another machine nothing can be tried.
        Some(_) => Vec::new(),
        None => doctor(),
    };
    if a.json {
        let all = json!({"checks": checks, "findings": findings});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
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
    if !checks.is_empty() {
        print("");
    }
    said(&findings).iter().for_each(print);
    if findings.iter().any(|f| !f.steps.is_empty()) && a.root.is_none() {
        print(
            "\n`varve machine --doctor --fix` makes the automatic fixes, and `--undo` reverts them.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Findings in lines.
fn said(findings: &[Finding]) -> Vec<String> {
    let mut lines = vec![match findings.len() {
        0 => "Set-up of memories: nothing wrong was found".into(),
        1 => "Set-up of memories: 1 thing is wrong".into(),
        n => format!("Set-up of memories: {n} things are wrong"),
    }];
    let indent = " ".repeat(INDENT);
    for (i, f) in findings.iter().enumerate() {
        lines.push(String::new());
        let number = format!("{}.", i + 1);
        lines.push(hang(&number, INDENT, &format!("{}: {}", f.name, f.what)));
        lines.push(hang("", INDENT, &format!("Why it matters: {}", f.why)));
        if !f.by_hand.is_empty() {
            lines.push(hang("", INDENT, &format!("By hand: {}", f.by_hand)));
        }
        // Commands are to be copied, and stay in one line.
        lines.extend(
            f.commands
                .iter()
                .map(|command| format!("{indent}$ {command}")),
        );
    }
    lines
}

fn fix(findings: &[Finding], yes: bool, as_json: bool) -> Done {
    let steps: Vec<&Step> = findings.iter().flat_map(|f| &f.steps).collect();
    if !as_json {
        said(findings).iter().for_each(print);
    }
    if steps.is_empty() {
        match as_json {
            true => print(json!({"findings": findings, "changes": []})),
            false => print("\nThere is nothing to fix."),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !yes {
        if as_json || !std::io::stdin().is_terminal() {
            return Err(wrong(
                "there is no terminal to ask on: --yes fixes without asking",
            ));
        }
        eprint!("\nDo this ({} writes)? [y/N] ", steps.len());
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let _ = std::io::stdin().read_line(&mut answer);
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            print("Nothing was changed.");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let root = Path::new("/");
    let mut record = Record::open(root).map_err(failed)?;
    record.can_be_kept().map_err(failed)?;
    if !as_json {
        print("");
    }
    let mut all = Changes::new(as_json);
    'findings: for finding in findings {
        for step in &finding.steps {
            let became = change(&Root(root.into()), &mut record, step);
            let went_on = matches!(became, Ok(Changed::Done | Changed::Already));
            all.add(step, &step.then, became);
            if !went_on {
                // Steps that build on it would fail, too.
                continue 'findings;
            }
        }
    }
    if all.refused == 0 && !as_json {
        print("`varve machine --doctor --undo` reverts this, until the next boot.");
        if findings
            .iter()
            .any(|f| f.name == "device-dax memory" && !f.steps.is_empty())
        {
            print("New memory is available: run --doctor again.");
        }
    }
    all.end(json!({"findings": findings}))
}

fn take_back(as_json: bool) -> Done {
    let root = Path::new("/");
    let mut record = Record::open(root).map_err(failed)?;
    if record.steps().is_empty() && !as_json {
        print("There is nothing to revert: nothing was changed since this machine started.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = Changes::new(as_json);
    let files = Root(root.into());
    undo(&files, &mut record, &mut |step, became| {
        all.add(step, &step.was, became)
    })
    .map_err(failed)?;
    all.end(json!({}))
}

/// The outcomes of steps, printed as they happen.
struct Changes {
    as_json: bool,
    all: Vec<Value>,
    refused: usize,
}

impl Changes {
    fn new(as_json: bool) -> Changes {
        Changes {
            as_json,
            all: Vec::new(),
            refused: 0,
        }
    }

    /// `to` is what was to show afterwards.
    fn add(&mut self, step: &Step, to: &str, became: Result<Changed, String>) {
        let file = &step.shows;
        let (word, line) = match became {
            Ok(Changed::Done) => ("done", format!("done: /{file} is `{to}`")),
            Ok(Changed::Already) => ("already", format!("already so: /{file} is `{to}`")),
            Ok(Changed::Others(now)) => (
                "changed by others",
                format!("not changed: /{file} is `{now}`: another program changed it"),
            ),
            Err(why) => ("refused", why),
        };
        if word == "refused" {
            self.refused += 1;
            crate::ui::message!("varve: {line}");
        } else if !self.as_json {
            print(&line);
        }
        self.all
            .push(json!({"file": format!("/{file}"), "to": to, "became": word, "said": line}));
    }

    fn end(self, mut more: Value) -> Done {
        if self.as_json {
            more["changes"] = Value::Array(self.all);
            print(serde_json::to_string_pretty(&more).map_err(failed)?);
        }
        match self.refused {
            0 => Ok(ExitCode::SUCCESS),
            _ => Err(Failure::Quiet(1)),
        }
    }
}
