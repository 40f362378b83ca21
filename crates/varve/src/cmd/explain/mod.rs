//! `varve explain`: one plan, policy, machine or workload on half a screen: what it does, a picture of where things go, how to try
//! it, and what to read next.

mod machine;
mod native;
mod picture;
mod plan;
mod policy;

use super::list::{self, hang};
use crate::args::{ExplainArgs, Explained, ListArgs};
use crate::ui::{Done, print};
use std::process::ExitCode;

pub fn explain(a: &ExplainArgs) -> Done {
    page(a.what, &a.name)
}

/// One of them explained if it is named and nobody wants JSON; else the list.
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
        Explained::Plan => plan::explain(name),
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

/// What is explained, in parts.
struct Page {
    /// A sentence about it.
    about: String,
    /// What the picture shows.
    shows: String,
    picture: String,
    /// What the picture does not show.
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
