//! `varve policy`, `varve plan` and `varve workload`: what there is, and its parameters.

use crate::args::ListArgs;
use crate::ui::{Done, print, wrong};
use serde_json::{Value, json};
use std::process::ExitCode;
use varve_pages::policies::{Live, SCALE};
use varve_runtime::plans;
use varve_spec::{Param, all_params};
use varve_workloads::registry::COMMON;

/// One thing with its parameters.
#[derive(Clone)]
struct Item {
    name: &'static str,
    about: String,
    params: Vec<Param>,
    /// Of page policies, by which command they are for this machine, or why they are not.
    live: Option<Live>,
}

pub fn policies(a: &ListArgs) -> Done {
    let items = varve_pages::policies()
        .iter()
        .map(|p| Item {
            name: p.name,
            about: match (p.live, a.name.is_some()) {
                (Live::Cache, _) => format!("{} ({}); live: run --live", p.about, p.source),
                (Live::Nodes | Live::Frames, _) => {
                    format!("{} ({}); live: tier", p.about, p.source)
                }
                (Live::No(why), true) => {
                    format!("{} ({}); not live: {why}", p.about, p.source)
                }
                (Live::No(_), false) => format!("{} ({})", p.about, p.source),
            },
            params: all_params(p.params, &[SCALE]),
            live: Some(p.live),
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
            params: all_params(p.params, &[plans::CODE]),
            live: None,
        })
        .chain(native())
        .collect();
    list(a, "plan", items)
}

/// Plans of native programs whose names no heap plan has.
fn native() -> impl Iterator<Item = Item> {
    let named = |name: &str| plans::plans().iter().any(|p| p.name == name);
    let own = varve_run::objects::PLANS.iter();
    own.filter(move |p| !named(p.name)).map(|p| Item {
        name: p.name,
        about: format!("native programs: {}", p.about),
        params: p.params.to_vec(),
        live: None,
    })
}

pub fn workloads(a: &ListArgs) -> Done {
    let items = varve_workloads::list()
        .iter()
        .map(|w| Item {
            name: w.name,
            about: w.about.into(),
            params: all_params(w.params, COMMON),
            live: None,
        })
        .collect();
    list(a, "workload", items)
}

fn list(a: &ListArgs, what: &'static str, items: Vec<Item>) -> Done {
    let items: Vec<Item> = match &a.name {
        None => items,
        Some(name) => {
            let found = varve_spec::find(what, name, &items, |i| i.name).map_err(wrong)?;
            vec![found.clone()]
        }
    };
    if a.json {
        let all: Vec<Value> = items
            .iter()
            .map(|i| {
                let params: Vec<Value> = i
                    .params
                    .iter()
                    .map(|p| json!({"key": p.key, "default": p.default, "about": p.about}))
                    .collect();
                let mut all = json!({"name": i.name, "about": i.about, "parameters": params});
                match i.live {
                    None => {}
                    Some(Live::Cache) => all["live"] = json!("run --live"),
                    Some(Live::Nodes | Live::Frames) => all["live"] = json!("tier"),
                    Some(Live::No(why)) => all["not_live"] = json!(why),
                }
                all
            })
            .collect();
        print(serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    for item in &items {
        print(hang(item.name, 14, &item.about));
        if a.name.is_some() {
            for p in &item.params {
                let default = match p.default {
                    "" => "(must be given)",
                    default => default,
                };
                print(hang(&format!("  {}={default}", p.key), 24, p.about));
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
