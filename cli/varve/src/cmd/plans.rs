//! Heap plans as a user names them.

use crate::ui::{Failure, wrong};
use varve_observed::request;
use varve_runtime::{GcSpace, plans};
use varve_sites::Profile;

/// One plan for a program that runs as it is.
pub struct Planned {
    /// The plan as the user wrote it.
    pub spec: String,
    /// How many memories it has.
    pub tiers: u8,
}

/// The plan of a program that runs as it is.
pub fn named(spec: &str, profile: Option<&Profile>) -> Result<Planned, Failure> {
    let mut all = list(spec, profile, false)?;
    let (1, Some(spec)) = (all.len(), all.pop()) else {
        return Err(wrong(format!(
            "--plan {spec}: several plans are compared on a modelled machine: give one with --machine, such as \
             optane-6242 (`varve machine list`)"
        )));
    };
    let tiers = plans::by_name(&spec, profile).map_or(2, |chosen| chosen.plan.tiers());
    Ok(Planned { spec, tiers })
}

/// The plans that a list names; see [`request::plans`].
pub fn list(specs: &str, profile: Option<&Profile>, colours: bool) -> Result<Vec<String>, Failure> {
    request::plans(specs, profile, colours).map_err(wrong)
}

/// Whether any of the plans tries both memories.
fn any_samples(specs: &[String]) -> bool {
    let samples = |spec: &String| plans::entry(spec).is_ok_and(|plan| plan.intervals);
    specs.iter().any(samples)
}

/// The error for `--pima-log`, if no plan writes to it.
pub fn check_log(log: bool, specs: &[String]) -> Result<(), Failure> {
    if !log || any_samples(specs) {
        return Ok(());
    }
    let able = plans::plans().iter().filter(|plan| plan.intervals);
    let able: Vec<&str> = able.map(|plan| plan.name).collect();
    Err(wrong(format!(
        "--pima-log: none of these heap plans samples: give --plan {}",
        able.join(" or ")
    )))
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
