//! Errors of options, in a line that names them as Python does.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;

/// The line.
pub fn line(e: &clap::Error) -> String {
    let text = |kind: ContextKind| match e.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    };
    let keys: Vec<String> = text(ContextKind::InvalidArg)
        .iter()
        .map(|a| key(a))
        .collect();
    let given = || {
        let value = text(ContextKind::InvalidValue).join(",");
        format!("{}={value}", keys.join(", "))
    };
    match (e.kind(), e.source()) {
        (ErrorKind::ValueValidation, Some(why)) => format!("{}: {why}", given()),
        (ErrorKind::InvalidValue, _) => {
            let known = text(ContextKind::ValidValue).join(", ");
            format!("{}: is none of {known}", given())
        }
        (ErrorKind::MissingRequiredArgument, _) => {
            let others: Vec<String> = keys.iter().map(|key| format!("{key}=...")).collect();
            format!(
                "{} is missing, which another option here needs",
                others.join(", ")
            )
        }
        // Of what one cannot write in Python, the reader's own first line.
        _ => {
            let said = e.to_string();
            let first = said.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).into()
        }
    }
}

/// `heap_max` of `--heap-max <SIZE>`.
fn key(arg: &str) -> String {
    let name = arg.trim_start_matches('-');
    let name = name.split([' ', '=']).next().unwrap_or(name);
    name.replace('-', "_")
}
