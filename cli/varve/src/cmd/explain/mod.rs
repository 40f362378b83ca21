//! `varve explain`: one plan, policy, machine or workload on half a screen: what it does, a picture of where things go, how to try
//! it, and what to read next.

mod java;
mod machine;
mod native;
mod picture;
mod plan;
mod policy;

use super::list::{self, hang};
use crate::args::{ExplainArgs, Explained, ListArgs};
use crate::ui::{Done, Failure, print, wrong};
use clap::ValueEnum;
use std::process::ExitCode;
use varve_machine::Machine;
use varve_observed::registry::{self, Kind};

pub fn explain(a: &ExplainArgs) -> Done {
    match (&a.first, &a.name) {
        (what, Some(name)) => {
            let what = Explained::from_str(what, true).map_err(|_| {
                wrong(format!(
                    "{what}: what is explained is a plan, a policy, a machine or a workload: write `varve explain {name}`"
                ))
            })?;
            page(what, name)
        }
        (name, None) => anything(name),
    }
}

/// Explains the thing of this name, of any kind.
fn anything(name: &str) -> Done {
    let (bare, _) = varve_spec::split(name);
    let plan = registry::plans().iter().any(|plan| plan.name == bare);
    let policy = registry::page_policies()
        .iter()
        .any(|policy| policy.name == bare);
    let workload = varve_workloads::list().iter().any(|w| w.name == bare);
    match (plan, policy, workload) {
        (true, ..) => page(Explained::Plan, name),
        (_, true, _) => page(Explained::Policy, name),
        (.., true) => page(Explained::Workload, name),
        _ if Machine::load(name).is_ok() || name == "here" => page(Explained::Machine, name),
        _ => {
            let plans = registry::plans();
            let policies = registry::page_policies();
            let names = plans.iter().chain(&policies).map(|item| item.name);
            let workloads = varve_workloads::list();
            let names = names.chain(workloads.iter().map(|w| w.name));
            let meant = varve_spec::nearest(bare, names);
            let meant = meant.map_or(String::new(), |meant| format!(" (did you mean `{meant}`?)"));
            Err(wrong(format!(
                "nothing is called `{name}`{meant}: `varve plan`, `policy`, `workload` and `machine list` show what there is"
            )))
        }
    }
}

/// Explains the named entry, or prints the list; with --json always the list.
pub fn or_list(what: Explained, a: &ListArgs) -> Done {
    match (&a.name, what) {
        (Some(name), _) if !a.json => page(what, name),
        (_, Explained::Plan) => list::plans(a),
        (_, Explained::Policy) => list::policies(a),
        (_, Explained::Machine | Explained::Workload) => list::workloads(a),
    }
}

fn page(what: Explained, name: &str) -> Done {
    let text = match what {
        Explained::Plan => plans(name),
        Explained::Policy => policy::explain(name),
        Explained::Machine => machine::explain(name),
        Explained::Workload => {
            let name = Some(name.to_string());
            return list::workloads(&ListArgs { name, json: false });
        }
    };
    print(text?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// A page for each kind of program that has such a plan.
fn plans(spec: &str) -> Result<String, Failure> {
    let pages = registry::plans_named(spec).map_err(wrong)?;
    let pages = pages.iter().map(|plan| match plan.kind {
        Kind::Pages => policy::explain(spec),
        Kind::Objects => plan::explain(spec),
        Kind::Sites => native::explain(plan, spec),
        Kind::Generations => java::explain(plan, spec),
    });
    let pages: Vec<String> = pages.collect::<Result<_, _>>()?;
    Ok(pages.join(&format!("\n{}\n\n", "─".repeat(78))))
}

/// The parts of an explanation.
struct Page {
    /// A sentence about it.
    about: String,
    /// The caption of the picture.
    shows: String,
    picture: String,
    /// Notes beside the picture.
    notes: Vec<String>,
    /// Parameters: how they are written, and what they mean.
    params: Vec<(String, String)>,
    /// A command to try.
    tries: String,
    /// Where the book says more.
    read: String,
}

impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n", hang("", 0, &self.about).trim_start())?;
        writeln!(
            f,
            "{}\n{}",
            hang("", 0, &self.shows).trim_start(),
            self.picture
        )?;
        for note in &self.notes {
            writeln!(f, "{}", hang("", 0, note).trim_start())?;
        }
        if !self.params.is_empty() {
            writeln!(f, "\nParameters, written NAME:key=value,...")?;
        }
        for (term, text) in &self.params {
            writeln!(f, "{}", hang(&format!("  {term}"), 24, text))?;
        }
        writeln!(f, "\nTry it:    {}", self.tries)?;
        writeln!(f, "Read next: {}", self.read)
    }
}

/// Parameters as they are shown.
fn shown(key: &str, default: &str, about: &str) -> (String, String) {
    let default = match default {
        "" => "(must be given)",
        default => default,
    };
    (format!("{key}={default}"), about.into())
}
