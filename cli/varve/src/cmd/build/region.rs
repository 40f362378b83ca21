//! Which classes a program must have for the objects of a region.

use crate::ui::{Failure, wrong};
use std::path::Path;
use varve_durable::Inspection;

/// Names of the classes that the regions' objects are of.
///
/// # Errors
/// If a file is no region, or damaged so that its objects cannot be found.
pub fn classes(regions: &[impl AsRef<Path>]) -> Result<Vec<String>, Failure> {
    let mut all = std::collections::BTreeSet::new();
    for path in regions {
        let region = Inspection::of_file(path.as_ref()).and_then(Inspection::whole);
        all.extend(region.map_err(|e| wrong(e.to_string()))?.classes());
    }
    Ok(all.into_iter().collect())
}
