//! `varve policy`, `varve plan` and `varve workload`: what there is, and its parameters.

use crate::args::ListArgs;
use crate::ui::{Done, print, wrong};
use serde_json::{Value, json};
use std::process::ExitCode;
use varve_runtime::plans;

/// One thing with its parameters.
struct Item {
    name: &'static str,
    about: String,
    params: Vec<(&'static str, &'static str, &'static str)>,
}

pub fn policies(a: &ListArgs) -> Done {
    let common = &varve_pages::params::SCALE;
    let items = varve_pages::policies()
        .iter()
        .map(|p| Item {
            name: p.name,
            about: format!("{} ({})", p.about, p.source),
            params: p
                .params
                .iter()
                .chain([common])
                .map(|q| (q.key, q.default, q.about))
                .collect(),
        })
        .collect();
    list(a, "policy", items)
}

pub fn plans(a: &ListArgs) -> Done {
    let items = plans::plans()
        .iter()
        .map(|p| Item {
            name: p.name,
            about: match p.profile {
                true => format!("{} ({}); needs a site profile", p.about, p.source),
                false => format!("{} ({})", p.about, p.source),
            },
            params: p
                .params
                .iter()
                .chain([&plans::CODE])
                .map(|q| (q.key, q.default, q.about))
                .collect(),
        })
        .collect();
    list(a, "plan", items)
}

pub fn workloads(a: &ListArgs) -> Done {
    let items = varve_workloads::list()
        .iter()
        .map(|w| Item {
            name: w.name,
            about: w.about.into(),
            params: w
                .params
                .iter()
                .chain(varve_workloads::params::COMMON)
                .map(|q| (q.key, q.default, q.about))
                .collect(),
        })
        .collect();
    list(a, "workload", items)
}

fn list(a: &ListArgs, what: &str, items: Vec<Item>) -> Done {
    let items: Vec<Item> = match &a.name {
        None => items,
        Some(name) => {
            let known: Vec<&str> = items.iter().map(|i| i.name).collect();
            let unknown = format!(
                "no {what} is called `{name}`; there are {}",
                known.join(", ")
            );
            let found: Vec<Item> = items.into_iter().filter(|i| i.name == name).collect();
            if found.is_empty() {
                return Err(wrong(unknown));
            }
            found
        }
    };
    if a.json {
        let all: Vec<Value> = items
            .iter()
            .map(|i| {
                let params: Vec<Value> = i
                    .params
                    .iter()
                    .map(|(key, default, about)| json!({"key": key, "default": default, "about": about}))
                    .collect();
                json!({"name": i.name, "about": i.about, "parameters": params})
            })
            .collect();
        print(serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    for item in &items {
        print(hang(item.name, 14, &item.about));
        if a.name.is_some() {
            for (key, default, about) in &item.params {
                let default = if default.is_empty() {
                    "(must be given)"
                } else {
                    default
                };
                print(hang(&format!("  {key}={default}"), 24, about));
            }
            print(format!("\nWritten `{}:key=value,...`", item.name));
        }
    }
    if a.name.is_none() {
        print(format!("\n`varve {what} NAME` shows its parameters."));
    }
    Ok(ExitCode::SUCCESS)
}

/// A term and its text, wrapped beside it to 80 columns.
pub fn hang(term: &str, column: usize, text: &str) -> String {
    let mut lines = vec![format!("{term:<column$}")];
    if term.len() >= column && column > 0 {
        lines.push(" ".repeat(column));
    }
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        if last.trim_end().len() > column && last.len() + 1 + word.len() > 80 {
            lines.push(" ".repeat(column));
        }
        let last = lines.last_mut().expect("there is always a line");
        if last.len() > column {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines.join("\n")
}
