//! `varve policy`, `varve plan` and `varve workload`: what there is, and its parameters.

use crate::args::ListArgs;
use crate::ui::{Done, print, wrong};
use serde_json::{Value, json};
use std::process::ExitCode;
use varve_observed::registry::{self, Kind};
use varve_run::catalogue::LiveSupport;
use varve_spec::{Param, all_params};
use varve_workloads::registry::COMMON;

/// One thing with its parameters.
#[derive(Clone)]
struct Item {
    name: &'static str,
    about: String,
    params: Vec<Param>,
    /// Of plans, whose.
    whose: Option<&'static str>,
    /// Of policies, what they go by while the program runs, and how often they wake.
    observes: Vec<&'static str>,
    period: Option<&'static str>,
    /// Of policies and plans, by which command they are for this machine, or why they are not.
    live: Option<LiveSupport>,
}

pub fn policies(a: &ListArgs) -> Done {
    let items = registry::page_policies().into_iter().map(|p| {
        let about = format!("{} ({})", p.about, p.source);
        Item {
            about: match (p.live, a.name.is_some()) {
                (LiveSupport::By(how), _) => format!("{about}; live: {how}"),
                (LiveSupport::No(why), true) => format!("{about}; not live: {why}"),
                _ => about,
            },
            name: p.name,
            params: p.params,
            observes: p.observes.iter().map(|of| of.name()).collect(),
            period: p.period,
            whose: None,
            live: Some(p.live),
        }
    });
    list(a, "policy", items.collect())
}

pub fn plans(a: &ListArgs) -> Done {
    let all = match &a.name {
        Some(name) => registry::plans_named(name).map_err(wrong)?,
        None => registry::plans(),
    };
    let items = all.into_iter().map(|p| {
        let source = match p.source {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        let profile = if p.profile {
            "; needs a site profile"
        } else {
            ""
        };
        Item {
            about: format!("{}{source}{profile}", p.about),
            name: p.name,
            params: p.params,
            observes: p.observes.iter().map(|of| of.name()).collect(),
            period: p.period,
            whose: Some(match p.kind {
                Kind::Pages => "pages of native programs and of Java virtual machines",
                kind => kind.whose(),
            }),
            live: Some(p.live),
        }
    });
    list(a, "plan", items.collect())
}

pub fn workloads(a: &ListArgs) -> Done {
    let items = varve_workloads::list()
        .iter()
        .map(|w| Item {
            name: w.name,
            about: w.about.into(),
            params: all_params(w.params, COMMON),
            observes: Vec::new(),
            period: None,
            whose: None,
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
            let name = found.name;
            items.into_iter().filter(|item| item.name == name).collect()
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
                if !i.observes.is_empty() {
                    all["observes"] = json!(i.observes);
                }
                if let Some(period) = i.period {
                    all["period"] = json!(period);
                }
                if let Some(whose) = i.whose {
                    all["for"] = json!(whose);
                }
                match i.live {
                    None => {}
                    Some(LiveSupport::By(how) | LiveSupport::Only(how, _)) => {
                        all["live"] = json!(how)
                    }
                    Some(LiveSupport::No(why)) => all["not_live"] = json!(why),
                }
                all
            })
            .collect();
        print(serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    let mut whose = None;
    for item in &items {
        if item.whose != whose {
            whose = item.whose;
            print(format!("\nPlans for {}:", whose.unwrap_or_default()));
        }
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
