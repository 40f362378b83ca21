//! Heap plans as a user names them.

use varve_run::Error;
use varve_runtime::plans as catalogue;
use varve_sites::Profile;

/// The few plans that are compared if the user names none; if memories are `colours`, all that are about hot and cold. One that goes by
/// `intervals` of the program's work does as another where it reports none.
pub fn usual_plans(profile: Option<&Profile>, colours: bool, intervals: bool) -> Vec<String> {
    catalogue::plans()
        .iter()
        .filter(|p| p.is_for(profile.is_some(), colours) && (p.usual || colours))
        .filter(|p| intervals || !p.intervals || colours)
        .map(|p| p.name.to_string())
        .collect()
}

/// The plans that a list names: names and specifications, or `all` for every one that needs nothing but the program and, if
/// there is one, the profile; where memories are `colours`, those of them that are about hot and cold.
///
/// # Errors
/// A plan that is unknown or needs a profile where there is none, and a profile that no plan uses.
pub fn plans(specs: &str, profile: Option<&Profile>, colours: bool) -> Result<Vec<String>, Error> {
    let able = catalogue::plans().iter();
    let able = able.filter(|p| p.is_for(profile.is_some(), colours));
    let able: Vec<&str> = able.map(|p| p.name).collect();
    let all = varve_spec::expand(specs, &able);
    let goes_by_it = |spec: &String| catalogue::entry(spec).is_ok_and(|p| p.profile);
    for spec in &all {
        catalogue::by_name(spec, profile).map_err(|e| match e {
            catalogue::PlanError::NoProfile { .. } => Error::Asked(format!(
                "{e}: make one with `varve profile PROGRAM -o FILE.sites -- ARGUMENTS`, and give it with --profile"
            )),
            e => Error::Asked(e.to_string()),
        })?;
    }
    if profile.is_some() && !all.iter().any(goes_by_it) {
        return Err(Error::Asked(format!(
            "--plan {}: goes by no profile: leave --profile out, or take a plan such as cgz-f",
            all.join(",")
        )));
    }
    Ok(all)
}

/// How many memories a heap plan has; 0 if there is no such plan.
pub fn memories(spec: &str, profile: Option<&Profile>) -> u8 {
    catalogue::by_name(spec, profile).map_or(0, |chosen| chosen.plan.tiers())
}
