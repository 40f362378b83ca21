//! The maps that `damo record` writes beside its records.

use serde::Deserialize;

use super::Mapping;
use crate::import::ImportError;

#[derive(Deserialize)]
struct Snapshot {
    procvmas: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    vmas: Vec<Vma>,
}

#[derive(Deserialize)]
struct Vma {
    start: u64,
    end: u64,
    name: Option<String>,
}

/// The last of damo's looks at the maps at which there was a process.
pub(super) fn read(file: &str, text: &[u8]) -> Result<Vec<Mapping>, ImportError> {
    let not_one = |e: serde_json::Error| ImportError::Line {
        file: file.into(),
        line: e.line() as u64,
        what: format!("no record of mappings as `damo record` writes it: {e}"),
    };
    let snapshots: Vec<Snapshot> = serde_json::from_slice(text).map_err(not_one)?;
    let last = snapshots
        .into_iter()
        .rev()
        .map(|look| look.procvmas)
        .find(|all| all.iter().any(|process| !process.vmas.is_empty()));
    let vmas = last.into_iter().flatten().flat_map(|process| process.vmas);
    let mapping = |vma: Vma| Mapping {
        range: vma.start..vma.end.max(vma.start),
        rights: String::new(),
        offset: None,
        name: vma.name.unwrap_or_default().into_bytes(),
    };
    Ok(vmas.map(mapping).collect())
}
