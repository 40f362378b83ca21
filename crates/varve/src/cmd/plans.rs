//! Heap plans as a user names them.

use crate::ui::{Failure, wrong};
use varve_runtime::{GcSpace, plans};

/// One plan for a program that runs as it is.
pub fn named(spec: &str) -> Result<String, Failure> {
    let mut all = list(spec)?;
    match (all.len(), all.pop()) {
        (1, Some(one)) => Ok(one),
        _ => Err(wrong(format!(
            "--plan {spec}: several plans are compared on a modelled machine: give one with --machine, such as \
             optane-6242 (`varve machine list`)"
        ))),
    }
}

/// The plans that a list names, `all` for every one that needs nothing but the program.
pub fn list(specs: &str) -> Result<Vec<String>, Failure> {
    if specs == "all" {
        let able = plans::plans().iter().filter(|p| missing(p.name).is_none());
        return Ok(able
            .filter(|p| !p.profile)
            .map(|p| p.name.to_string())
            .collect());
    }
    // A comma also stands between the parameters of a plan.
    let mut all: Vec<String> = Vec::new();
    for part in specs.split(',').map(str::trim) {
        let name = part.split(':').next().unwrap_or_default();
        match all.last_mut() {
            Some(last) if name.contains('=') => *last = format!("{last},{part}"),
            _ => all.push(part.into()),
        }
    }
    for spec in &all {
        let name = spec.split(':').next().unwrap_or_default();
        if plans::plans().iter().any(|p| p.name == name && p.profile) {
            return Err(wrong(format!(
                "heap plan `{name}` needs a site profile, which cannot be made yet: take another one"
            )));
        }
        plans::by_name(spec, None).map_err(wrong)?;
        if let Some(what) = missing(name) {
            return Err(wrong(format!(
                "heap plan `{name}` needs {what}, which programs cannot give yet: take another one"
            )));
        }
        if spec.contains("code=") {
            return Err(wrong(format!(
                "heap plan `{spec}`: where code is counts for nothing yet: leave code= out"
            )));
        }
    }
    Ok(all)
}

/// What a plan goes by that no program tells yet.
fn missing(name: &str) -> Option<&'static str> {
    match name {
        "pima" | "hints+pima" | "cgz+pima" => Some("interval reports"),
        "hints" => Some("marks at allocation sites"),
        _ => None,
    }
}

/// MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The spaces at the end, one per line.
pub fn spaces(all: &[GcSpace]) -> String {
    let mut text = format!(
        "{:<11} {:>6} {:>9} {:>9}",
        "space", "memory", "used MiB", "held MiB"
    );
    for space in all {
        text.push_str(&format!(
            "\n{:<11} {:>6} {:>9.1} {:>9.1}",
            space.name,
            space.tier.0,
            mib(space.used),
            mib(space.held)
        ));
    }
    text
}
