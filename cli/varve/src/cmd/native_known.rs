//! Profiles of another build of a program that is there now.

use crate::ui::{Failure, wrong};
use std::ffi::OsStr;
use std::path::Path;
use varve_live::objects::{Modules, program_file};
use varve_sites::native::{Profile, stale};
use varve_symbols::rebuilt;

/// A profile for the build of a program that is there now, and what is to be said of it; refused if nothing of it is left.
pub fn for_this_build(profile: &Profile, program: &OsStr) -> Result<(Profile, String), Failure> {
    let file = program_file(program).map_err(wrong)?;
    let mut modules = Modules::new(&file, &[]);
    let own = file.canonicalize().unwrap_or_else(|_| file.clone());
    let rebuilt = rebuilt(profile, &mut |module| {
        let name = Path::new(module).file_name();
        match [file.file_name(), own.file_name()].contains(&name) {
            true => Some(own.clone()),
            false => modules.find(module),
        }
    });
    let anew = "make a new profile with `varve profile -o FILE.sites -- COMMAND`";
    let percent = 100.0 * rebuilt.found_bytes as f64 / rebuilt.bytes.max(1) as f64;
    let mut nameless: Vec<&str> = rebuilt.stripped.iter().map(String::as_str).collect();
    let profiled = stale::nameless(profile.sites.iter().map(|site| &site.key));
    let changed = |file: &&str| rebuilt.changed.iter().any(|changed| changed == file);
    nameless.extend(profiled.into_iter().filter(changed));
    nameless.sort_unstable();
    nameless.dedup();
    let nameless = nameless.join(" and ");
    if rebuilt.found == 0 {
        return Err(wrong(match nameless.is_empty() {
            true => {
                format!("--stale: no function of the profile's sites is unchanged: {anew}")
            }
            false => format!(
                "--stale: {nameless} has no function names to match by (it is stripped): {anew}"
            ),
        }));
    }
    let mut said = match rebuilt.changed.is_empty() {
        true => "no file is of another build than the profile's".to_string(),
        false => format!(
            "{} is of another build than the profile's",
            rebuilt.changed.join(" and ")
        ),
    };
    said += &format!(
        ": {percent:.1} % of the bytes of its sites are found; {} sites are gone or have changed, {} may be one of several and are left out",
        rebuilt.lost, rebuilt.ambiguous
    );
    if !nameless.is_empty() {
        said += &format!("; {nameless} has no function names (it is stripped)");
    }
    Ok((rebuilt.profile, said))
}
