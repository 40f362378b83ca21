//! The keys that say how a program's own memory is placed: `sites`, `plan` and `fast`.

use super::keys::Keys;
use super::{Live, Modelled};
use crate::inside::{Inside, Told};
use crate::kinds::Memory;
use std::path::{Path, PathBuf};
use varve_run::catalogue::LiveSupport;
use varve_run::jvm;
use varve_run::objects::{USUAL, site_plan};

/// The placement of a program that is this on a model and on a machine, and has this memory if a user insists.
pub fn inside(
    keys: &Keys,
    modelled: Option<&Modelled>,
    live: Option<&Live>,
    pinned: Option<Memory>,
) -> Option<Inside> {
    let sites = keys.text("sites").map(PathBuf::from);
    let plan = keys.text("plan");
    let fast = keys.bytes("fast");
    let key = match (&sites, &plan) {
        (Some(_), _) => "sites",
        (None, Some(_)) => "plan",
        (None, None) => {
            if fast.is_some() {
                let remedy = "it is how much `sites` or `plan` may use: add one, or take it out";
                keys.wrong("fast", "belongs to nothing", remedy);
            }
            return None;
        }
    };
    if let Some(memory) = pinned {
        let what = format!("`memory` says that all of it is in {}", memory.words());
        keys.wrong(key, what, "take one of both out");
    }
    let told = match (live, modelled) {
        (Some(Live::Managed(..)), _) | (None, Some(Modelled::Managed(..))) => Told::Heap,
        (None, Some(Modelled::Workload(_))) | (None, None) => {
            let remedy = "a workload has neither objects nor generations: give it `command`, `trace` or `managed`, or take the key out";
            keys.wrong(key, "places memory that does not exist", remedy);
            return None;
        }
        (Some(Live::Command(words)), _) if sites.is_some() && is_java(words) => {
            let remedy =
                "memory of a Java virtual machine is placed by generation: write plan = \"kg-n\"";
            keys.wrong("sites", "is for native and WebAssembly programs", remedy);
            return None;
        }
        _ if sites.is_some() => Told::Sites,
        _ => Told::Generations,
    };
    let plan = plan.or_else(|| (told == Told::Sites).then(|| USUAL.into()));
    let Some(plan) = plan else {
        let remedy = "say by which plan its objects are placed, such as plan = \"hot-sites\"";
        keys.wrong("sites", "is given without `plan`", remedy);
        return None;
    };
    if let Some((what, remedy)) = wrong(told, &plan) {
        keys.wrong("plan", format!("\"{plan}\": {what}"), remedy);
    }
    Some(Inside {
        told,
        plan,
        sites,
        fast,
    })
}

fn is_java(words: &[String]) -> bool {
    let name = words.first().map(Path::new).and_then(Path::file_name);
    name.is_some_and(|name| name == "java")
}

/// The problem of a plan for such a program, and the remedy. Plans of WebAssembly programs may need their profile: they are
/// checked before anything runs.
fn wrong(told: Told, plan: &str) -> Option<(String, &'static str)> {
    match told {
        Told::Heap => None,
        Told::Sites => {
            let remedy = "for a Java virtual machine leave `sites` out";
            Some((site_plan(plan).err()?.to_string(), remedy))
        }
        Told::Generations => {
            let remedy = "take kg-n or slow-scan; for a native program add `sites`";
            let found = match jvm::PLANS.find(plan) {
                Ok(found) => found,
                Err(e) => return Some((e.to_string(), remedy)),
            };
            let what = match found.by {
                _ if matches!(found.live, LiveSupport::Only(..)) => {
                    "takes whatever fast memory it finds, which the group's plan gives away"
                }
                jvm::By::Pages(_) => "places by page, and does not distinguish generations",
                _ if !found.by.by_generation() => {
                    "has all in one memory, which is what `memory` is for"
                }
                _ => return None,
            };
            Some((what.into(), remedy))
        }
    }
}
